package config

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
)

// SlotsPerRunner is what wasm.slots auto means.
const SlotsPerRunner = 8

// Machine is what the host may use.
type Machine struct {
	Cores       int
	MemoryBytes int64  // 0 = not known
	MemoryFrom  string // "the cgroup" or "RAM"
}

// ThisMachine reads the cores that Go may use and the smaller of RAM and the cgroup's memory limit (version 2, and 1).
func ThisMachine() Machine {
	m := Machine{Cores: runtime.GOMAXPROCS(0)}
	if data, err := os.ReadFile("/proc/meminfo"); err == nil {
		for line := range strings.Lines(string(data)) {
			if f := strings.Fields(line); len(f) >= 2 && f[0] == "MemTotal:" {
				kib, _ := strconv.ParseInt(f[1], 10, 64)
				m.MemoryBytes, m.MemoryFrom = kib<<10, "RAM"
			}
		}
	}
	for _, limit := range cgroupLimits() {
		if limit > 0 && (m.MemoryBytes == 0 || limit < m.MemoryBytes) {
			m.MemoryBytes, m.MemoryFrom = limit, "the cgroup"
		}
	}
	return m
}

func cgroupLimits() []int64 {
	var limits []int64
	read := func(file string) {
		if data, err := os.ReadFile(file); err == nil {
			if n, err := strconv.ParseInt(strings.TrimSpace(string(data)), 10, 64); err == nil {
				limits = append(limits, n)
			}
		}
	}
	data, _ := os.ReadFile("/proc/self/cgroup")
	for line := range strings.Lines(string(data)) {
		if dir, ok := strings.CutPrefix(strings.TrimSpace(line), "0::"); ok {
			for d := dir; ; d = filepath.Dir(d) { // a parent's limit binds as well
				read(filepath.Join("/sys/fs/cgroup", d, "memory.max"))
				if d == "/" || d == "." {
					break
				}
			}
		}
	}
	read("/sys/fs/cgroup/memory/memory.limit_in_bytes")
	return limits
}

// Capacity is what a host with this configuration can do at once.
type Capacity struct {
	Runners        int   `json:"runners"`
	SlotsPerRunner int   `json:"slots_per_runner"`
	Jobs           int   `json:"jobs"` // at once
	MemoryPerJob   Size  `json:"memory_per_job_bytes"`
	WorstCase      int64 `json:"worst_case_bytes"`    // if all of them use their whole limit
	MemoryBudget   int64 `json:"memory_budget_bytes"` // for all of them; 0 = no bound
	MemoryBytes    int64 `json:"memory_bytes"`        // of the machine; 0 = not known
}

// Capacity computes what the configuration means on a machine.
func (c *Config) Capacity(m Machine) Capacity {
	out := Capacity{Runners: int(c.Wasm.Runners), SlotsPerRunner: int(c.Wasm.Slots), MemoryPerJob: c.Defaults.Memory, MemoryBytes: m.MemoryBytes}
	if out.Runners == 0 {
		out.Runners = max(m.Cores, 1)
	}
	if out.SlotsPerRunner == 0 {
		out.SlotsPerRunner = SlotsPerRunner
	}
	out.Jobs = out.Runners * out.SlotsPerRunner
	if n := int(c.Worker.Concurrency); n > 0 {
		out.Jobs = min(out.Jobs, n)
	}
	for _, h := range c.Handlers {
		out.MemoryPerJob = max(out.MemoryPerJob, h.Memory)
	}
	out.MemoryBudget = int64(c.Wasm.MemoryBudget)
	if out.MemoryBudget == 0 && m.MemoryBytes > 0 { // one job must fit, be the machine ever so small
		out.MemoryBudget = max(m.MemoryBytes/2, int64(out.MemoryPerJob))
	}
	if b := out.MemoryBudget; b > 0 && c.Defaults.Memory > 0 {
		out.Jobs = min(out.Jobs, int(b/int64(c.Defaults.Memory)))
	}
	out.WorstCase = int64(out.Jobs) * int64(out.MemoryPerJob)
	if out.MemoryBudget > 0 {
		out.WorstCase = min(out.WorstCase, out.MemoryBudget)
	}
	return out
}

// Warnings says what is allowed but probably not meant.
func (c *Config) Warnings(m Machine) []string {
	var out []string
	warn := func(format string, args ...any) { out = append(out, fmt.Sprintf(format, args...)) }
	if c.HasRole(RoleWorker) {
		capacity := c.Capacity(m)
		if m.MemoryBytes > 0 && capacity.WorstCase > m.MemoryBytes {
			warn("%d jobs at once × %s each are up to %s, more than the %s of %s; lower wasm.slots, worker.concurrency or defaults.memory",
				capacity.Jobs, capacity.MemoryPerJob, mib(capacity.WorstCase), mib(m.MemoryBytes), m.MemoryFrom)
		}
		if n := int(c.Worker.Concurrency); n > capacity.Runners*capacity.SlotsPerRunner {
			warn("worker.concurrency %d is more than the %d slots (%d runners × %d)", n, capacity.Runners*capacity.SlotsPerRunner,
				capacity.Runners, capacity.SlotsPerRunner)
		}
	}
	if c.Defaults.Timeout > c.Worker.Drain {
		warn("defaults.timeout (%s) is longer than worker.drain (%s): a job that is still running when the drain ends is interrupted and runs again from its start",
			FormatDuration(c.Defaults.Timeout), FormatDuration(c.Worker.Drain))
	}
	for i, h := range c.Handlers {
		if h.Timeout > c.Worker.Drain {
			warn("handlers[%d].timeout (%s) is longer than worker.drain (%s)", i, FormatDuration(h.Timeout), FormatDuration(c.Worker.Drain))
		}
	}
	if c.Wasm.Sandbox == "off" {
		warn("wasm.sandbox is off: child processes are not locked down; do not run handlers of people you do not trust")
	}
	return out
}

func mib(n int64) string { return fmt.Sprintf("%d MiB", n/int64(MiB)) }

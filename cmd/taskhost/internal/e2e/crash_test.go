package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/taskhost/taskhost/cmd/taskhost/internal/samples"
)

// samplesConfig writes the sample module into dir and returns the part of a configuration that serves it.
func samplesConfig(t testing.TB, dir string) string {
	t.Helper()
	if err := os.WriteFile(filepath.Join(dir, "samples.wasm"), samples.Module(), 0o600); err != nil {
		t.Fatal(err)
	}
	config := "handlers:\n"
	for _, typ := range samples.Types() {
		config += fmt.Sprintf("  - {type: %s, wasm: samples.wasm}\n", typ)
	}
	return config
}

// kill -9 with 200 jobs queued and 20 running: after a restart all 220 finish, none is accepted twice, and what was running runs
// again within a lease and two seconds.
func TestKillNineLosesNothing(t *testing.T) {
	t.Parallel()
	const (
		jobs, slots = 220, 20
		lease       = 3 * time.Second
	)
	dir := t.TempDir()
	config := samplesConfig(t, dir) + fmt.Sprintf("worker: {concurrency: %d, lease: %s}\nwasm: {runners: 2, slots: %d}\ndefaults: {memory: 4MiB}\n",
		slots, lease, slots/2)
	s := serve(t, dir, config)
	ids := s.enqueue(jobs, `{"type":"sleep","payload":{"ms":500}}`)
	s.running("default", slots)
	children := childrenOf(t, s.cmd.Process.Pid)
	if len(children) < 2 {
		t.Errorf("the server has %d child processes, want 2 runners", len(children))
	}
	s.kill()
	waitGone(t, children, 5*time.Second)

	restart := time.Now()
	s = serve(t, dir, config)
	crashed, latest := 0, time.Duration(0)
	for _, id := range ids {
		j := s.wait(id)
		succeeded := 0
		for _, a := range j.Attempts {
			if a.Outcome == "succeeded" {
				succeeded++
			}
		}
		if j.State != "succeeded" || succeeded != 1 {
			t.Errorf("%s is %s with %d succeeded attempts, want succeeded with 1", id, j.State, succeeded)
		}
		if j.Crashes > 0 {
			crashed++
			late := j.StartedAt.Sub(restart)
			latest = max(latest, late)
			if late > lease+2*time.Second {
				t.Errorf("%s ran again %s after the restart, want at most %s", id, late, lease+2*time.Second)
			}
		}
	}
	t.Logf("%d jobs succeeded once; the %d that were running ran again at most %s after the restart (lease %s)", jobs, crashed, latest, lease)
	if crashed != slots {
		t.Errorf("%d jobs count a crash, want the %d that were running", crashed, slots)
	}
	s.signal(os.Interrupt)
	if code, _ := s.waitExit(10 * time.Second); code != 0 {
		t.Errorf("exit code %d, want 0", code)
	}
	out, errs, code := runProgram(t, nil, "store", "check", "--data-dir", filepath.Join(dir, "data"))
	if code != 0 {
		t.Errorf("store check: exit code %d\n%s%s", code, out, errs)
	}
}

// childrenOf lists the living child processes of a process.
func childrenOf(t *testing.T, pid int) []int {
	t.Helper()
	var list []int
	stats, err := filepath.Glob("/proc/[0-9]*/stat")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range stats {
		child, state, parent := readStat(name)
		if parent == pid && state != "Z" {
			list = append(list, child)
		}
	}
	return list
}

// readStat reads the first fields of /proc/PID/stat; zeros for a process that is gone.
func readStat(name string) (pid int, state string, parent int) {
	data, err := os.ReadFile(name)
	if err != nil {
		return 0, "", 0
	}
	// The name of the program is in parentheses and may hold anything.
	head, tail, _ := strings.Cut(string(data), " (")
	rest := tail[strings.LastIndexByte(tail, ')')+1:]
	if _, err := fmt.Sscan(head, &pid); err != nil {
		return 0, "", 0
	}
	if _, err := fmt.Sscan(rest, &state, &parent); err != nil {
		return 0, "", 0
	}
	return pid, state, parent
}

// waitGone waits until processes are gone, or dead and only not yet collected by whoever adopted them.
func waitGone(t *testing.T, pids []int, within time.Duration) {
	t.Helper()
	again, deadline := time.NewTicker(10*time.Millisecond), time.After(within)
	defer again.Stop()
	for _, pid := range pids {
		for {
			_, state, _ := readStat(fmt.Sprintf("/proc/%d/stat", pid))
			if state == "" || state == "Z" || state == "X" {
				break
			}
			select {
			case <-again.C:
			case <-deadline:
				t.Errorf("process %d outlives its server, in state %s", pid, state)
				return
			}
		}
	}
}

package runner

import (
	"fmt"
	"os"
	"strings"
	"syscall"
)

// setRlimits bounds writable memory, beyond what the process has, and forbids core dumps, which would hold tenants' data.
func setRlimits(data uint64) error {
	used, err := dataUsed()
	if err != nil {
		return err
	}
	for _, l := range []struct {
		name     string
		resource int
		value    uint64
	}{{"RLIMIT_DATA", syscall.RLIMIT_DATA, used + data}, {"RLIMIT_CORE", syscall.RLIMIT_CORE, 0}} {
		var now syscall.Rlimit
		if err := syscall.Getrlimit(l.resource, &now); err != nil {
			return fmt.Errorf("%s: %w", l.name, os.NewSyscallError("getrlimit", err))
		}
		value := min(l.value, now.Max)
		if err := syscall.Setrlimit(l.resource, &syscall.Rlimit{Cur: value, Max: value}); err != nil {
			return fmt.Errorf("%s = %d: %w", l.name, value, os.NewSyscallError("setrlimit", err))
		}
	}
	return nil
}

// dataUsed is what RLIMIT_DATA counts now, in bytes. A build with the race detector maps terabytes of shadow memory at its start.
func dataUsed() (uint64, error) {
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return 0, err
	}
	for line := range strings.Lines(string(status)) {
		var kib uint64
		if n, _ := fmt.Sscanf(line, "VmData: %d kB", &kib); n == 1 {
			return kib << 10, nil
		}
	}
	return 0, fmt.Errorf("/proc/self/status has no VmData")
}

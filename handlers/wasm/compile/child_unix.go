//go:build unix

package compile

import (
	"fmt"
	"os"
	"os/signal"

	"golang.org/x/sys/unix"
)

// cpuGrace is what a child may use beyond its limit to say so, in seconds, before the kernel kills it.
const cpuGrace = 2

// maxFileBytes bounds what the child can write into one file.
const maxFileBytes = 1 << 30

// nice is behind everything else that runs, and no further: beside a thread that never rests a child still gets a sixth of the
// processor (215 to 1024 on Linux). At 19 it got a seventieth, and a busy host could not compile a module within Limits.Wall.
const nice = 7

// lowerLimits sets the limits of this process and puts it behind others at the processor. Hard limits are set too: what takes
// the process over cannot raise them again.
func lowerLimits(h header) error {
	for _, l := range []struct {
		name       string
		resource   int
		soft, hard uint64
	}{
		{"core size", unix.RLIMIT_CORE, 0, 0},
		{"processor time", unix.RLIMIT_CPU, h.CPUSeconds, h.CPUSeconds + cpuGrace},
		{"data size", unix.RLIMIT_DATA, uint64(h.DataBytes), uint64(h.DataBytes)},
		{"file size", unix.RLIMIT_FSIZE, maxFileBytes, maxFileBytes},
	} {
		if err := unix.Setrlimit(l.resource, &unix.Rlimit{Cur: l.soft, Max: l.hard}); err != nil {
			return fmt.Errorf("%s: %w", l.name, err)
		}
	}
	// By process group: on Linux a process is many threads here, and PRIO_PROCESS would reach one of them.
	if err := unix.Setpriority(unix.PRIO_PGRP, 0, nice); err != nil {
		return fmt.Errorf("priority: %w", err)
	}
	return nil
}

// watchCPU calls over when the soft limit of processor time is reached. The Go runtime ignores the signal otherwise.
func watchCPU(over func()) (stop func()) {
	c, done := make(chan os.Signal, 1), make(chan struct{})
	signal.Notify(c, unix.SIGXCPU)
	go func() {
		select {
		case <-c:
			over()
		case <-done:
		}
	}()
	return func() { signal.Stop(c); close(done) }
}

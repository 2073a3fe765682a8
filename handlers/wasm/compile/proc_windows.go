package compile

import (
	"fmt"
	"os/exec"
	"syscall"

	"golang.org/x/sys/windows"
)

// reap waits for the child.
func reap(cmd *exec.Cmd) error { return cmd.Wait() }

// rssBytes is the largest resident size, which the usage of a process does not tell here.
func rssBytes(*syscall.Rusage) int64 { return 0 }

// lowerLimits puts this process behind others at the processor. The limits of memory and files have no counterpart here: what bounds the
// child is the supervisor's clock.
func lowerLimits(header) error {
	if err := windows.SetPriorityClass(windows.CurrentProcess(), windows.BELOW_NORMAL_PRIORITY_CLASS); err != nil {
		return fmt.Errorf("priority: %w", err)
	}
	return nil
}

// watchCPU has no signal to wait for.
func watchCPU(func()) (stop func()) { return func() {} }

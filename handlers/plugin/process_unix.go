//go:build unix && !linux

package plugin

import (
	"os"
	"os/exec"

	"golang.org/x/sys/unix"
)

// awaitExit returns false at once: there is no way to wait here that leaves the process to be reaped.
func awaitExit(*exec.Cmd) bool { return false }

// killGroup kills a process and its group.
func killGroup(p *os.Process) { _ = unix.Kill(-p.Pid, unix.SIGKILL) }

// killLeftovers kills what a process that was reaped has left behind.
func killLeftovers(p *os.Process) { killGroup(p) }

func startHint(err error) string { return err.Error() }

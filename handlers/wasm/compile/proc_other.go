//go:build unix && !linux

package compile

import (
	"os/exec"
	"syscall"
)

// reap waits for the child.
func reap(cmd *exec.Cmd) error { return cmd.Wait() }

// rssBytes is the largest resident size; outside Linux its unit differs between systems, so it is not reported.
func rssBytes(*syscall.Rusage) int64 { return 0 }

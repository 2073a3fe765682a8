//go:build unix && !linux

package compile

import (
	"os/exec"
	"syscall"
)

// isolate gives the child a process group of its own. Only Linux ties a child's life to its parent's; elsewhere a child whose
// supervisor was killed ends by itself, at its limit of processor time at the latest.
func isolate(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} }

// reap waits for the child.
func reap(cmd *exec.Cmd) error { return cmd.Wait() }

// rssBytes is the largest resident size; outside Linux its unit differs between systems, so it is not reported.
func rssBytes(*syscall.Rusage) int64 { return 0 }

//go:build !unix

package plugin

import (
	"os"
	"os/exec"
)

// awaitExit returns false at once.
func awaitExit(*exec.Cmd) bool { return false }

// killGroup kills the process; there are no groups here.
func killGroup(p *os.Process) { _ = p.Kill() }

// killLeftovers has nothing to do.
func killLeftovers(*os.Process) {}

func startHint(err error) string { return err.Error() }

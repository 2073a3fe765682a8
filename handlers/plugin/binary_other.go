//go:build !linux

package plugin

import (
	"os/exec"
	"runtime"
)

// hasModes: files say by their mode whether they are programs.
const hasModes = runtime.GOOS != "windows"

// command executes the path: here is no way to execute an open file, so that the file could be replaced after it was hashed.
func (b *binary) command(args []string) *exec.Cmd {
	return &exec.Cmd{Path: b.path, Args: append([]string{b.path}, args...)}
}

package plugin

import (
	"os"
	"os/exec"
)

// hasModes: files say by their mode whether they are programs.
const hasModes = true

// command executes the open file itself: descriptor 3 of the child, which a script's interpreter reads as well.
func (b *binary) command(args []string) *exec.Cmd {
	return &exec.Cmd{Path: "/proc/self/fd/3", Args: append([]string{b.path}, args...), ExtraFiles: []*os.File{b.file}}
}

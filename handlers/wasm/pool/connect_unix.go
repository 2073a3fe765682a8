//go:build unix

package pool

import (
	"net"
	"os"
	"os/exec"

	"github.com/taskhost/taskhost/handlers/wasm/link"
)

// connect makes a socket pair and gives cmd one end as descriptor 3 (runner.FD). theirs are to be closed once it has started.
func connect(cmd *exec.Cmd) (ours net.Conn, theirs []*os.File, err error) {
	fds, err := socketPair()
	if err != nil {
		return nil, nil, os.NewSyscallError("socketpair", err)
	}
	end := os.NewFile(uintptr(fds[1]), "supervisor")
	if ours, err = link.FileConn(os.NewFile(uintptr(fds[0]), "runner")); err != nil {
		end.Close()
		return nil, nil, err
	}
	cmd.ExtraFiles = []*os.File{end}
	return ours, []*os.File{end}, nil
}

package pool

import (
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"time"

	"github.com/taskhost/taskhost/handlers/wasm/child"
	"github.com/taskhost/taskhost/handlers/wasm/link"
)

// process is a started runner process.
type process struct {
	cmd  *exec.Cmd
	conn net.Conn
}

// startProcess starts a process with one end of a socket pair as descriptor 3, nothing else open, and an empty environment; apart gives it
// namespaces of its own. It dies with this process. Its stderr goes to stderr.
func startProcess(s *child.Spawner, apart bool, command []string, stderr io.Writer) (*process, error) {
	fds, err := socketPair()
	if err != nil {
		return nil, fmt.Errorf("socket pair: %w", os.NewSyscallError("socketpair", err))
	}
	ours, theirs := os.NewFile(uintptr(fds[0]), "runner"), os.NewFile(uintptr(fds[1]), "supervisor")
	defer theirs.Close()
	conn, err := link.FileConn(ours)
	if err != nil {
		return nil, fmt.Errorf("socket pair: %w", err)
	}
	cmd := exec.Command(command[0], command[1:]...)
	cmd.Env = []string{}
	cmd.Stderr = stderr
	cmd.ExtraFiles = []*os.File{theirs}
	cmd.WaitDelay = time.Second
	start := s.Start
	if apart {
		start = s.StartApart
	}
	if err := start(cmd); err != nil {
		return nil, errors.Join(fmt.Errorf("start %s: %w", command[0], err), conn.Close())
	}
	return &process{cmd, conn}, nil
}

// kill ends the process. On Linux this goes through a pidfd, so it cannot hit another process that was given the same number.
func (p *process) kill() error {
	if err := p.cmd.Process.Kill(); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("kill process %d: %w", p.cmd.Process.Pid, err)
	}
	return nil
}

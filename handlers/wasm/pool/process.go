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
)

// process is a started runner process.
type process struct {
	cmd  *exec.Cmd
	conn net.Conn
}

// startProcess starts a process with the other end of a connection, nothing else open, and an empty environment; apart gives it namespaces of
// its own. It dies with this process. Its stderr goes to stderr.
func startProcess(s *child.Spawner, apart bool, command []string, stderr io.Writer) (*process, error) {
	cmd := exec.Command(command[0], command[1:]...)
	cmd.Env = []string{}
	cmd.Stderr = stderr
	cmd.WaitDelay = time.Second
	conn, theirs, err := connect(cmd)
	if err != nil {
		return nil, fmt.Errorf("connection for %s: %w", command[0], err)
	}
	defer func() {
		for _, f := range theirs {
			f.Close()
		}
	}()
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

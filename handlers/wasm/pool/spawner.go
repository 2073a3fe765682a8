package pool

import (
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"runtime"
	"time"

	"github.com/taskhost/taskhost/handlers/wasm/link"
)

// spawner starts processes from one thread that lives as long as the pool: the death signal of a child is tied to the thread that started
// it, and the Go runtime ends threads at will unless they are locked.
type spawner struct {
	requests chan func()
	stopped  chan struct{}
}

func newSpawner() *spawner {
	s := &spawner{requests: make(chan func()), stopped: make(chan struct{})}
	go func() {
		defer close(s.stopped)
		runtime.LockOSThread() // never unlocked: the thread ends with this goroutine
		for f := range s.requests {
			f()
		}
	}()
	return s
}

// close ends the thread. All children must be gone, or they are killed now.
func (s *spawner) close() {
	close(s.requests)
	<-s.stopped
}

// process is a started runner process.
type process struct {
	cmd  *exec.Cmd
	conn net.Conn
}

// start starts a process with one end of a socket pair as descriptor 3, nothing else open, and an empty environment. It dies with this
// process. Its stderr goes to stderr.
func (s *spawner) start(command []string, stderr io.Writer) (*process, error) {
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
	cmd.SysProcAttr = processAttributes()
	done := make(chan error, 1)
	s.requests <- func() { done <- cmd.Start() }
	if err := <-done; err != nil {
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

// Package child holds what the supervisor's child processes have in common: how they are started so that none outlives the
// supervisor, and how they close what they were started with.
package child

import (
	"os/exec"
	"runtime"
)

// Spawner starts processes from one operating system thread that lives as long as it does. The kernel sends a child's parent
// death signal when the *thread* that started it ends, and Go ends threads as it likes unless they are locked.
type Spawner struct {
	requests chan request
	done     chan struct{}
}

type request struct {
	cmd   *exec.Cmd
	reply chan error
}

// NewSpawner starts the thread. Close ends it.
func NewSpawner() *Spawner {
	s := &Spawner{requests: make(chan request), done: make(chan struct{})}
	go func() {
		defer close(s.done)
		runtime.LockOSThread() // never unlocked: the thread ends with the goroutine
		for r := range s.requests {
			r.reply <- r.cmd.Start()
		}
	}()
	return s
}

// Start starts the command in a process group of its own, so that a signal from a terminal does not reach it. On Linux it is
// killed when the spawner's thread ends, at the latest with the process; elsewhere it must notice by itself. cmd.SysProcAttr
// is set here. Start must not be called after or during Close.
func (s *Spawner) Start(cmd *exec.Cmd) error { return s.start(cmd, false) }

// StartApart is Start in user, process, network, IPC, host name and mount namespaces of its own. Linux only, elsewhere it is Start; an
// error may mean that the kernel, or the container this runs in, does not allow that.
func (s *Spawner) StartApart(cmd *exec.Cmd) error { return s.start(cmd, true) }

func (s *Spawner) start(cmd *exec.Cmd, apart bool) error {
	cmd.SysProcAttr = attributes(apart)
	r := request{cmd, make(chan error, 1)}
	s.requests <- r
	return <-r.reply
}

// Close ends the thread. The children must be gone: on Linux they may be killed now (not when the runtime had chosen the main
// thread, which lives on).
func (s *Spawner) Close() {
	close(s.requests)
	<-s.done
}

package compile

import (
	"os/exec"
	"runtime"
)

// spawner starts processes from one operating system thread that lives as long as it does. The kernel sends a child's parent
// death signal when the *thread* that started it ends, and Go ends threads as it likes.
type spawner struct {
	requests chan spawnRequest
	done     chan struct{}
}

type spawnRequest struct {
	cmd   *exec.Cmd
	reply chan error
}

func startSpawner() *spawner {
	s := &spawner{requests: make(chan spawnRequest), done: make(chan struct{})}
	go func() {
		defer close(s.done)
		runtime.LockOSThread() // and never unlocked: the thread ends with the goroutine
		for r := range s.requests {
			r.reply <- r.cmd.Start()
		}
	}()
	return s
}

// start starts the command. It must not be called after or during close.
func (s *spawner) start(cmd *exec.Cmd) error {
	r := spawnRequest{cmd, make(chan error, 1)}
	s.requests <- r
	return <-r.reply
}

// close ends the thread, which kills the children that are left.
func (s *spawner) close() {
	close(s.requests)
	<-s.done
}

//go:build unix && !linux

package pool

import "syscall"

func socketPair() (fds [2]int, err error) {
	syscall.ForkLock.RLock() // no child may inherit the pair before it is marked
	defer syscall.ForkLock.RUnlock()
	if fds, err = syscall.Socketpair(syscall.AF_UNIX, syscall.SOCK_STREAM, 0); err == nil {
		syscall.CloseOnExec(fds[0])
		syscall.CloseOnExec(fds[1])
	}
	return fds, err
}

// processAttributes puts a runner into a process group of its own. Only Linux can have it killed when its parent dies; elsewhere it notices
// the end of its connection, and goes on until then.
func processAttributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true}
}

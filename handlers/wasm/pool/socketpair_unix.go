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

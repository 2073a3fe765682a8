//go:build unix

package artifact

import (
	"errors"
	"os"
	"syscall"
)

var errLocked = errors.New("in use")

// lockDir takes the lock of a directory, which the kernel gives back when its holder dies.
func lockDir(dir string) (*os.File, error) {
	f, err := os.Open(dir)
	if err != nil {
		return nil, err
	}
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		f.Close()
		if errors.Is(err, syscall.EWOULDBLOCK) {
			return nil, errLocked
		}
		return nil, err
	}
	return f, nil
}

package sqliteq

import (
	"errors"
	"fmt"
	"os"
)

// LockedError says that another process has the store open.
type LockedError struct {
	Path string // of the database
}

func (e *LockedError) Error() string {
	return fmt.Sprintf("%s is in use by another process; one process at a time may open an embedded store (stop the other, or give this one its own data directory)", e.Path)
}

// fileLock keeps other processes out. It is a lock of the operating system on a file beside the database, so that it goes
// with the process, however that ends. The file itself stays.
type fileLock struct{ f *os.File }

// errLocked is tryLock's answer when somebody else has the lock.
var errLocked = errors.New("locked")

func lockFile(path string) (*fileLock, error) {
	f, err := os.OpenFile(path+".lock", os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	if err := tryLock(f); err != nil {
		_ = f.Close()
		if errors.Is(err, errLocked) {
			return nil, &LockedError{Path: path}
		}
		return nil, fmt.Errorf("lock %s: %w", f.Name(), err)
	}
	return &fileLock{f: f}, nil
}

// release ends the lock: closing the file does.
func (l *fileLock) release() error { return l.f.Close() }

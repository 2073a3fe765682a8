package plugin

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
)

// sockets is the private folder of one host process for the sockets of its plugins.
type sockets struct {
	root string
	lock *os.File // held as long as the folder is in use
}

// The library puts a folder "plugin-dir" and a socket "plugin", each with a number of up to ten digits, into the folder.
const (
	socketTail = len("/plugin-dir4294967295/plugin4294967295")
	rootTail   = len("/0123456789abcdef")
	lockName   = "lock"
)

// maxSocketPath is the longest path of a socket in bytes.
func maxSocketPath() int {
	if runtime.GOOS == "linux" {
		return 107
	}
	return 103
}

// openSockets makes the folder, in the first of some places that is private and short enough, and removes those of dead processes.
func openSockets(dataDir string) (*sockets, error) {
	var tried []error
	for _, parent := range socketPlaces(dataDir) {
		parent, err := filepath.Abs(parent)
		if err == nil {
			if n := len(parent) + rootTail + socketTail; n > maxSocketPath() && runtime.GOOS != "windows" {
				err = fmt.Errorf("%s is too long: sockets in it would have paths of %d bytes, at most %d are possible", parent, n, maxSocketPath())
			}
		}
		if err == nil {
			err = privateDir(parent)
		}
		if err == nil {
			sweep(parent)
			var s *sockets
			if s, err = makeSockets(parent); err == nil {
				return s, nil
			}
		}
		tried = append(tried, err)
	}
	return nil, fmt.Errorf("plugin: no place for sockets; give the host a shorter data_dir or TMPDIR: %w", errors.Join(tried...))
}

// socketPlaces are the candidates, best first. The host's own folder is not cleaned up by others, as temporary ones are.
func socketPlaces(dataDir string) []string {
	own := "taskhost-" + strconv.Itoa(os.Getuid())
	places := []string{filepath.Join(dataDir, "plugins")}
	if dir := os.Getenv("XDG_RUNTIME_DIR"); dir != "" {
		places = append(places, filepath.Join(dir, "taskhost"))
	}
	places = append(places, filepath.Join(os.TempDir(), own))
	if runtime.GOOS != "windows" {
		places = append(places, filepath.Join("/tmp", own))
	}
	return places
}

// privateDir makes a folder that only this user can enter, or checks that it is one.
func privateDir(dir string) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	info, err := os.Lstat(dir)
	switch {
	case err != nil:
		return err
	case !info.IsDir():
		return fmt.Errorf("%s is no folder", dir)
	case runtime.GOOS == "windows":
		return nil
	case !ownedByUs(info):
		return fmt.Errorf("%s belongs to another user", dir)
	case info.Mode().Perm() != 0o700:
		return os.Chmod(dir, 0o700)
	}
	return nil
}

func makeSockets(parent string) (*sockets, error) {
	var b [8]byte
	_, _ = rand.Read(b[:]) // never fails
	s := &sockets{root: filepath.Join(parent, hex.EncodeToString(b[:]))}
	if err := os.Mkdir(s.root, 0o700); err != nil {
		return nil, err
	}
	var err error
	if s.lock, err = os.OpenFile(filepath.Join(s.root, lockName), os.O_CREATE|os.O_RDWR, 0o600); err != nil {
		return nil, err
	}
	if !tryLock(s.lock) {
		return nil, errors.Join(fmt.Errorf("%s is locked by somebody else", s.lock.Name()), s.lock.Close())
	}
	return s, nil
}

// sweep removes the folders of processes that are gone: nobody holds their lock. What cannot be removed is left; it harms nobody.
func sweep(parent string) {
	locks, _ := filepath.Glob(filepath.Join(parent, "*", lockName)) // the pattern is sound
	for _, name := range locks {
		f, err := os.OpenFile(name, os.O_RDWR, 0)
		if err != nil {
			continue
		}
		if tryLock(f) {
			_ = os.RemoveAll(filepath.Dir(name))
		}
		_ = f.Close()
	}
}

func (s *sockets) close() error {
	return errors.Join(os.RemoveAll(s.root), s.lock.Close())
}

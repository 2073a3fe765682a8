package artifact

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// HostKey is the host's secret for authenticating its own files. It never leaves the host and is given to no child process.
type HostKey [32]byte

// LoadHostKey reads the key in the file, and makes the file (mode 0600, 32 random bytes) when there is none. It refuses a file
// that others may read or write, or of another length. Processes that make it at the same time agree on one key.
func LoadHostKey(path string) (HostKey, error) {
	key, err := readHostKey(path)
	if !errors.Is(err, fs.ErrNotExist) {
		return key, err
	}
	if err := writeHostKey(path); err != nil && !errors.Is(err, fs.ErrExist) {
		return HostKey{}, fmt.Errorf("make host key: %w", err)
	}
	return readHostKey(path)
}

func readHostKey(path string) (key HostKey, err error) {
	f, err := os.Open(path)
	if err != nil {
		return key, err
	}
	defer f.Close()
	st, err := f.Stat()
	if err != nil {
		return key, err
	}
	if st.Mode().Perm()&0o077 != 0 {
		return key, fmt.Errorf("host key %s has mode %04o; others may use it: set 0600, and make a new key if it may have leaked", path, st.Mode().Perm())
	}
	if st.Size() != int64(len(key)) {
		return key, fmt.Errorf("host key %s has %d bytes; %d are needed: remove the file to get a new key", path, st.Size(), len(key))
	}
	if _, err := f.ReadAt(key[:], 0); err != nil {
		return key, fmt.Errorf("host key: %w", err)
	}
	return key, nil
}

// writeHostKey makes the whole file under another name first: a key must never be seen half written.
func writeHostKey(path string) error {
	var key HostKey
	rand.Read(key[:]) // never fails
	f, err := os.CreateTemp(filepath.Dir(path), ".host.key-")
	if err != nil {
		return err
	}
	defer os.Remove(f.Name())
	_, err = f.Write(key[:])
	if err := errors.Join(err, f.Sync(), f.Close()); err != nil {
		return err
	}
	return os.Link(f.Name(), path)
}

package plugin

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"
)

// binary is a program that was opened and hashed. On Linux it is executed through the open descriptor, so that what was hashed is what
// runs, whatever happens to the path in between.
type binary struct {
	path string
	file *os.File
	sum  string // hex
}

// openBinary opens and hashes the command of a plugin, and compares it with want unless that is empty. The caller closes it.
func openBinary(path, want string) (*binary, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("plugin failed to start: %w", err)
	}
	b := &binary{path: path, file: f}
	if err := b.check(want); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return b, nil
}

func (b *binary) check(want string) error {
	info, err := b.file.Stat()
	if err != nil {
		return fmt.Errorf("plugin failed to start: %w", err)
	}
	if !info.Mode().IsRegular() || !executable(info.Mode()) {
		return fmt.Errorf("plugin failed to start: %s is no executable file (mode %s)", b.path, info.Mode())
	}
	if b.sum, err = digest(b.file); err != nil {
		return fmt.Errorf("plugin failed to start: read %s: %w", b.path, err)
	}
	if want != "" && !strings.EqualFold(want, b.sum) {
		return &digestError{b.path, want, b.sum}
	}
	return nil
}

func (b *binary) close() error { return b.file.Close() }

// digestError says that a file is not the one that was configured.
type digestError struct{ path, want, got string }

func (e *digestError) Error() string {
	return fmt.Sprintf("plugin failed to start: %s has the sha256 %s, the configuration wants %s", e.path, e.got, e.want)
}

// checkFiles compares further files of a plugin with their digests. Unlike the command they are opened again by whoever reads them.
func checkFiles(files map[string]string) error {
	for path, want := range files {
		sum, err := fileDigest(path)
		if err != nil {
			return fmt.Errorf("plugin failed to start: %w", err)
		}
		if !strings.EqualFold(want, sum) {
			return &digestError{path, want, sum}
		}
	}
	return nil
}

func fileDigest(path string) (string, error) {
	f, err := os.Open(path)
	if err != nil {
		return "", err
	}
	sum, err := digest(f)
	return sum, errors.Join(err, f.Close())
}

func digest(r io.Reader) (string, error) {
	h := sha256.New()
	if _, err := io.Copy(h, r); err != nil {
		return "", err
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}

func executable(mode fs.FileMode) bool { return !hasModes || mode.Perm()&0o111 != 0 }

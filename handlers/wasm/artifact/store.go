package artifact

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

const tmpDir = "tmp"

// Store is a directory of artifacts. Any number of goroutines and processes may use one directory at once.
type Store struct {
	dir string
	key HostKey
}

// Artifact is a verified artifact.
type Artifact struct {
	Key      string
	Dir      string // absolute; read only from here on
	Manifest *Manifest
}

// ModulePath is the file of the module to run.
func (a *Artifact) ModulePath() string { return filepath.Join(a.Dir, ModuleFile) }

// HasLines tells whether there is line information.
func (a *Artifact) HasLines() bool { return indexOf(a.Manifest.Files, LinesFile) >= 0 }

// CachePath is the directory of the engine's compiled code.
func (a *Artifact) CachePath() string { return filepath.Join(a.Dir, CacheDir) }

// TamperedError says that an artifact is not what was published. It is also what a power cut or a failing disk leaves.
type TamperedError struct {
	Key    string
	File   string // inside the artifact
	Reason string
}

func (e *TamperedError) Error() string {
	return fmt.Sprintf("artifact %.12s: %s: %s", e.Key, e.File, e.Reason)
}

// NewStore opens the directory, making it with mode 0700 when there is none, and removes the drafts of processes that died. It
// refuses a directory that others may write to.
func NewStore(dir string, key HostKey) (*Store, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return nil, err
	}
	if err := os.MkdirAll(filepath.Join(dir, tmpDir), 0o700); err != nil {
		return nil, fmt.Errorf("artifact store: %w", err)
	}
	st, err := os.Stat(dir)
	if err != nil {
		return nil, fmt.Errorf("artifact store: %w", err)
	}
	if st.Mode().Perm()&0o077 != 0 {
		return nil, fmt.Errorf("artifact store %s has mode %04o; it holds native code that the host runs: set 0700", dir, st.Mode().Perm())
	}
	s := &Store{dir: dir, key: key}
	return s, s.sweep()
}

// Dir is the folder of the store, as an absolute path.
func (s *Store) Dir() string { return s.dir }

// sweep removes drafts whose maker is gone.
func (s *Store) sweep() error {
	entries, err := os.ReadDir(filepath.Join(s.dir, tmpDir))
	if err != nil {
		return fmt.Errorf("artifact store: %w", err)
	}
	var errs []error
	for _, e := range entries {
		path := filepath.Join(s.dir, tmpDir, e.Name())
		lock, err := lockDir(path)
		if errors.Is(err, errLocked) || errors.Is(err, fs.ErrNotExist) {
			continue
		}
		errs = append(errs, removeAll(path))
		if lock != nil {
			lock.Close()
		}
	}
	return errors.Join(errs...)
}

// Draft is an artifact being made, or any scratch directory of a compile.
type Draft struct {
	Dir  string
	lock *os.File
}

// NewDraft makes an empty directory, mode 0700, on the file system of the store. End it with Publish or Discard.
func (s *Store) NewDraft() (*Draft, error) {
	dir, err := os.MkdirTemp(filepath.Join(s.dir, tmpDir), "draft-")
	if err != nil {
		return nil, fmt.Errorf("artifact draft: %w", err)
	}
	lock, err := lockDir(dir)
	if err != nil {
		os.RemoveAll(dir)
		return nil, fmt.Errorf("artifact draft: lock: %w", err)
	}
	return &Draft{Dir: dir, lock: lock}, nil
}

// Discard removes the draft. After Publish it does nothing.
func (d *Draft) Discard() error {
	if d.lock == nil {
		return nil
	}
	err := removeAll(d.Dir)
	d.lock.Close()
	d.lock = nil
	return err
}

// Has reports whether there is an artifact under the key, verified or not.
func (s *Store) Has(key string) bool {
	if !ValidKey(key) {
		return false
	}
	_, err := os.Stat(filepath.Join(s.dir, key, manifestFile))
	return err == nil
}

// Remove removes the artifact under the key, if there is one. Runners that have loaded it go on.
func (s *Store) Remove(key string) error {
	if !ValidKey(key) {
		return fmt.Errorf("artifact: %q is no key", key)
	}
	d, err := s.NewDraft()
	if err != nil {
		return err
	}
	err = os.Rename(filepath.Join(s.dir, key), filepath.Join(d.Dir, key))
	if errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	return errors.Join(err, d.Discard())
}

// removeAll is os.RemoveAll for trees whose maker may have taken away the right to enter directories.
func removeAll(dir string) error {
	if os.RemoveAll(dir) == nil {
		return nil
	}
	// Parents come before their children, so each directory is opened up before it is read.
	_ = filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if e != nil && e.IsDir() && err == nil {
			_ = os.Chmod(path, 0o700)
		}
		return nil
	})
	return os.RemoveAll(dir)
}

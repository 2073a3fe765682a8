package artifact

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"sort"
	"strings"
)

// Open verifies the artifact under the key: the signature of its manifest, and the digest of every file. It reads all bytes of it.
// Without an artifact the error is fs.ErrNotExist; one that is not as published gives a *TamperedError.
func (s *Store) Open(key string) (*Artifact, error) {
	if !ValidKey(key) {
		return nil, fmt.Errorf("artifact: %q is no key", key)
	}
	dir := filepath.Join(s.dir, key)
	if _, err := os.Stat(dir); err != nil {
		return nil, fmt.Errorf("artifact %.12s: %w", key, err)
	}
	bad := func(file, format string, args ...any) (*Artifact, error) {
		return nil, &TamperedError{Key: key, File: file, Reason: fmt.Sprintf(format, args...)}
	}
	data, err := readSmall(filepath.Join(dir, manifestFile))
	if err != nil {
		return bad(manifestFile, "%v", err)
	}
	sum, err := readSmall(filepath.Join(dir, macFile))
	if err != nil {
		return bad(macFile, "%v", err)
	}
	m, err := decodeManifest(&s.key, data, sum)
	if err != nil {
		return bad(manifestFile, "%v", err)
	}
	if m.Identity.Key() != key {
		return bad(manifestFile, "it belongs to artifact %.12s", m.Identity.Key())
	}
	have, err := listFiles(dir)
	if err != nil {
		return bad(".", "%v", err)
	}
	for _, f := range have {
		if f.Path == manifestFile || f.Path == macFile {
			continue
		}
		i := indexOf(m.Files, f.Path)
		switch {
		case i < 0:
			return bad(f.Path, "it was not published")
		case m.Files[i] != f:
			return bad(f.Path, "its content is not what was published")
		}
	}
	for _, f := range m.Files {
		if indexOf(have, f.Path) < 0 {
			return bad(f.Path, "it is missing")
		}
	}
	return &Artifact{Key: key, Dir: dir, Manifest: m}, nil
}

func indexOf(files []File, path string) int {
	i := sort.Search(len(files), func(i int) bool { return files[i].Path >= path })
	if i < len(files) && files[i].Path == path {
		return i
	}
	return -1
}

// listFiles returns every file below dir with its digest, sorted by path. It refuses whatever is not a plain file or directory:
// a link would let its maker change, or show, a file outside. Reads go through a root that links cannot leave.
func listFiles(dir string) ([]File, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	files := []File{}
	var total int64
	entries := 0
	err = fs.WalkDir(root.FS(), ".", func(path string, e fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case path == ".":
			return nil
		}
		if entries++; entries > 2*maxFiles {
			return fmt.Errorf("more than %d files and directories", 2*maxFiles)
		}
		if len(e.Name()) > maxName || strings.Count(path, "/") >= maxDepth || !printable(path) {
			return fmt.Errorf("the name %.80q is too long, too deep or not plain ASCII", path)
		}
		if e.IsDir() {
			return nil
		}
		f, err := digest(root, path, maxBytes-total)
		if err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
		if total += f.Size; len(files) >= maxFiles {
			return fmt.Errorf("more than %d files", maxFiles)
		}
		files = append(files, f)
		return nil
	})
	sort.Slice(files, func(i, j int) bool { return files[i].Path < files[j].Path })
	return files, err
}

func digest(root *os.Root, path string, most int64) (File, error) {
	st, err := root.Lstat(path)
	if err != nil {
		return File{}, err
	}
	if !st.Mode().IsRegular() {
		return File{}, fmt.Errorf("it is a %s, not a plain file", st.Mode().Type())
	}
	if st.Size() > most {
		return File{}, fmt.Errorf("the files are larger than %d bytes together", maxBytes)
	}
	f, err := root.Open(path)
	if err != nil {
		return File{}, err
	}
	defer f.Close()
	h := sha256.New()
	n, err := io.Copy(h, io.LimitReader(f, st.Size()+1))
	if err == nil && n != st.Size() {
		err = errors.New("its size changed while it was read")
	}
	return File{Path: path, Size: n, SHA256: hex.EncodeToString(h.Sum(nil))}, err
}

func readSmall(path string) ([]byte, error) {
	st, err := os.Lstat(path)
	if err != nil {
		return nil, err
	}
	if !st.Mode().IsRegular() || st.Size() > maxControl {
		return nil, fmt.Errorf("it is no plain file of at most %d bytes", maxControl)
	}
	return os.ReadFile(path)
}

func printable(s string) bool {
	for _, c := range []byte(s) {
		if c <= ' ' || c >= 0x7f || c == '\\' {
			return false
		}
	}
	return true
}

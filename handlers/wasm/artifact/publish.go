package artifact

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// Publish signs a draft and puts it in place under the key of the manifest's identity, which it returns opened. What lies in
// the draft is examined as hostile: regular files only, a bounded number and size of them, the module among them. The maker
// must have ended. When another publisher was first, its artifact is returned if it verifies, and replaced if not. The draft is
// gone after success; after an error the caller discards it.
func (s *Store) Publish(d *Draft, m Manifest) (*Artifact, error) {
	files, err := listFiles(d.Dir)
	if err != nil {
		return nil, fmt.Errorf("artifact: %w", err)
	}
	m.Format, m.Files = formatNow, files
	for _, name := range []string{manifestFile, macFile} {
		if indexOf(files, name) >= 0 {
			return nil, fmt.Errorf("artifact: the draft already holds a %s", name)
		}
	}
	i := indexOf(files, ModuleFile)
	if i < 0 || files[i].Size == 0 {
		return nil, fmt.Errorf("artifact: the draft holds no %s", ModuleFile)
	}
	if m.Module == "" {
		m.Module = files[i].SHA256
	} else if m.Module != files[i].SHA256 {
		return nil, fmt.Errorf("artifact: %s in the draft has sha256 %.12s; %.12s is expected", ModuleFile, files[i].SHA256, m.Module)
	}
	data, err := json.MarshalIndent(&m, "", "\t")
	if err != nil {
		return nil, fmt.Errorf("artifact: manifest: %w", err)
	}
	if int64(len(data)) > maxControl {
		return nil, fmt.Errorf("artifact: the manifest has %d bytes; at most %d are written", len(data), maxControl)
	}
	for name, content := range map[string][]byte{manifestFile: data, macFile: []byte(mac(&s.key, data))} {
		if err := os.WriteFile(filepath.Join(d.Dir, name), content, 0o400); err != nil {
			return nil, fmt.Errorf("artifact: %w", err)
		}
	}
	return s.place(d, m.Identity.Key())
}

// place renames the draft to its key. A directory cannot be renamed over one that is not empty, so the loser of a race sees it.
func (s *Store) place(d *Draft, key string) (*Artifact, error) {
	for range 5 {
		err := os.Rename(d.Dir, filepath.Join(s.dir, key))
		if err == nil {
			d.lock.Close()
			d.lock = nil
			return s.Open(key)
		}
		if !errors.Is(err, fs.ErrExist) { // which ENOTEMPTY is
			return nil, fmt.Errorf("artifact: %w", err)
		}
		if a, err := s.Open(key); err == nil {
			return a, d.Discard()
		}
		if err := s.Remove(key); err != nil {
			return nil, fmt.Errorf("artifact: replace a damaged one: %w", err)
		}
	}
	return nil, fmt.Errorf("artifact %.12s: other publishers kept replacing it with damaged ones", key)
}

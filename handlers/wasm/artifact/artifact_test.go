package artifact

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/taskhost/taskhost/handlers"
)

var testIdentity = ThisMachine(strings.Repeat("ab", 32), "none", "test 1")

func newStore(t *testing.T) *Store {
	t.Helper()
	dir := t.TempDir()
	key, err := LoadHostKey(filepath.Join(dir, "host.key"))
	if err != nil {
		t.Fatal(err)
	}
	s, err := NewStore(filepath.Join(dir, "artifacts"), key)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// draft makes a draft with a module and one file of native code.
func draft(t *testing.T, s *Store) *Draft {
	t.Helper()
	d, err := s.NewDraft()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { d.Discard() })
	write(t, filepath.Join(d.Dir, ModuleFile), "module")
	write(t, filepath.Join(d.Dir, CacheDir, "engine-1", "0123"), "native code")
	return d
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func publish(t *testing.T, s *Store) *Artifact {
	t.Helper()
	a, err := s.Publish(draft(t, s), Manifest{Identity: testIdentity, Kind: handlers.KindReactor})
	if err != nil {
		t.Fatal(err)
	}
	return a
}

func TestPublishAndOpen(t *testing.T) {
	t.Parallel()
	s := newStore(t)
	key := testIdentity.Key()
	if _, err := s.Open(key); !errors.Is(err, fs.ErrNotExist) || s.Has(key) {
		t.Errorf("an artifact that was never published: %v, has %v", err, s.Has(key))
	}
	publish(t, s)
	a, err := s.Open(key)
	if err != nil || !s.Has(key) {
		t.Fatalf("open: %v, has %v", err, s.Has(key))
	}
	if data, err := os.ReadFile(a.ModulePath()); err != nil || string(data) != "module" {
		t.Errorf("the module is %q, %v", data, err)
	}
	if data, err := os.ReadFile(filepath.Join(a.CachePath(), "engine-1", "0123")); err != nil || string(data) != "native code" {
		t.Errorf("the code is %q, %v", data, err)
	}
	if a.Manifest.Kind != handlers.KindReactor || len(a.Manifest.Files) != 2 {
		t.Errorf("the manifest is %+v", a.Manifest)
	}
	if left, err := os.ReadDir(filepath.Join(s.dir, tmpDir)); err != nil || len(left) != 0 {
		t.Errorf("drafts are left: %v, %v", left, err)
	}
	if err := s.Remove(key); err != nil || s.Has(key) {
		t.Errorf("remove: %v, has %v", err, s.Has(key))
	}
}

func TestTamperedFilesAreNamed(t *testing.T) {
	t.Parallel()
	code := filepath.Join(CacheDir, "engine-1", "0123")
	for name, tc := range map[string]struct {
		harm func(t *testing.T, dir string)
		file string
	}{
		"flipped byte of code":   {func(t *testing.T, dir string) { flip(t, filepath.Join(dir, code)) }, code},
		"flipped byte of module": {func(t *testing.T, dir string) { flip(t, filepath.Join(dir, ModuleFile)) }, ModuleFile},
		"flipped byte of list":   {func(t *testing.T, dir string) { flip(t, filepath.Join(dir, manifestFile)) }, manifestFile},
		"flipped byte of MAC":    {func(t *testing.T, dir string) { flip(t, filepath.Join(dir, macFile)) }, manifestFile},
		"no MAC":                 {func(t *testing.T, dir string) { remove(t, filepath.Join(dir, macFile)) }, macFile},
		"no module":              {func(t *testing.T, dir string) { remove(t, filepath.Join(dir, ModuleFile)) }, ModuleFile},
		"cut short, as by a crash": {func(t *testing.T, dir string) {
			if err := os.Truncate(filepath.Join(dir, code), 3); err != nil {
				t.Fatal(err)
			}
		}, code},
		"a file more": {func(t *testing.T, dir string) { write(t, filepath.Join(dir, CacheDir, "more"), "x") }, filepath.Join(CacheDir, "more")},
		"a link for a file": {func(t *testing.T, dir string) {
			remove(t, filepath.Join(dir, ModuleFile))
			if err := os.Symlink("/etc/hostname", filepath.Join(dir, ModuleFile)); err != nil {
				t.Fatal(err)
			}
		}, "."},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newStore(t)
			a := publish(t, s)
			tc.harm(t, a.Dir)
			_, err := s.Open(a.Key)
			var tampered *TamperedError
			if !errors.As(err, &tampered) || tampered.File != tc.file || tampered.Key != a.Key {
				t.Fatalf("the error is %v; want a TamperedError of %s", err, tc.file)
			}
			// The caller compiles again and publishes over it.
			publish(t, s)
			if _, err := s.Open(a.Key); err != nil {
				t.Errorf("after publishing again: %v", err)
			}
		})
	}
}

func flip(t *testing.T, path string) {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	data[len(data)/2] ^= 1
	remove(t, path)
	write(t, path, string(data))
}

func remove(t *testing.T, path string) {
	t.Helper()
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
}

// Another host's artifact, or one under another key, is not accepted although it is sound in itself.
func TestSoundButForeign(t *testing.T) {
	t.Parallel()
	s, other := newStore(t), newStore(t)
	a := publish(t, other)
	if err := os.CopyFS(filepath.Join(s.dir, a.Key), os.DirFS(a.Dir)); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Open(a.Key); err == nil || !strings.Contains(err.Error(), "signature") {
		t.Errorf("another host's artifact: %v", err)
	}
	wrong := Identity{SHA256: "other"}.Key()
	if err := os.CopyFS(filepath.Join(other.dir, wrong), os.DirFS(a.Dir)); err != nil {
		t.Fatal(err)
	}
	if _, err := other.Open(wrong); err == nil || !strings.Contains(err.Error(), "belongs to artifact") {
		t.Errorf("an artifact under another key: %v", err)
	}
	if _, err := s.Open("../" + a.Key); err == nil || errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a path for a key: %v", err)
	}
}

func TestHostileDrafts(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		make func(t *testing.T, dir string)
		want string
	}{
		"link": {func(t *testing.T, dir string) {
			if err := os.Symlink("/etc/passwd", filepath.Join(dir, CacheDir, "x")); err != nil {
				t.Fatal(err)
			}
		}, "not a plain file"},
		"linked directory": {func(t *testing.T, dir string) {
			if err := os.Symlink("/etc", filepath.Join(dir, "d")); err != nil {
				t.Fatal(err)
			}
		}, "not a plain file"},
		"many files": {func(t *testing.T, dir string) {
			for i := range maxFiles + 1 {
				write(t, filepath.Join(dir, CacheDir, strings.Repeat("x", i+1)), "")
			}
		}, "more than 64 files"},
		"deep":         {func(t *testing.T, dir string) { write(t, filepath.Join(dir, "a/b/c/d/e/f"), "") }, "too deep"},
		"strange name": {func(t *testing.T, dir string) { write(t, filepath.Join(dir, "a\nb"), "") }, "not plain ASCII"},
		"own manifest": {func(t *testing.T, dir string) { write(t, filepath.Join(dir, manifestFile), "{}") }, "already holds"},
		"no module":    {func(t *testing.T, dir string) { remove(t, filepath.Join(dir, ModuleFile)) }, "holds no module.wasm"},
		"huge": {func(t *testing.T, dir string) {
			if err := os.Truncate(filepath.Join(dir, ModuleFile), maxBytes+1); err != nil {
				t.Fatal(err)
			}
		}, "larger than"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newStore(t)
			d := draft(t, s)
			tc.make(t, d.Dir)
			if a, err := s.Publish(d, Manifest{Identity: testIdentity}); err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("published %+v, error %v; want %q", a, err, tc.want)
			}
			if s.Has(testIdentity.Key()) {
				t.Error("something is in place")
			}
		})
	}
}

func TestPublishChecksTheModule(t *testing.T) {
	t.Parallel()
	s := newStore(t)
	const expected = "0123456789abcdef"
	if _, err := s.Publish(draft(t, s), Manifest{Identity: testIdentity, Module: expected}); err == nil || !strings.Contains(err.Error(), "is expected") {
		t.Errorf("another module than expected: %v", err)
	}
}

func TestConcurrentPublishers(t *testing.T) {
	t.Parallel()
	s := newStore(t)
	var wg sync.WaitGroup
	for range 8 {
		d := draft(t, s)
		wg.Go(func() {
			if _, err := s.Publish(d, Manifest{Identity: testIdentity}); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if _, err := s.Open(testIdentity.Key()); err != nil {
		t.Error(err)
	}
}

func TestSweepKeepsLivingDrafts(t *testing.T) {
	t.Parallel()
	s := newStore(t)
	living := draft(t, s)
	stale := filepath.Join(s.dir, tmpDir, "draft-of-the-dead")
	write(t, filepath.Join(stale, "sub", "x"), "x")
	if err := os.Chmod(filepath.Join(stale, "sub"), 0); err != nil {
		t.Fatal(err)
	}
	if _, err := NewStore(s.dir, s.key); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(stale); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the stale draft: %v", err)
	}
	if _, err := os.Stat(filepath.Join(living.Dir, ModuleFile)); err != nil {
		t.Errorf("the living draft: %v", err)
	}
}

func TestHostKey(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "host.key")
	keys := make([]HostKey, 8)
	var wg sync.WaitGroup
	for i := range keys {
		wg.Go(func() {
			var err error
			if keys[i], err = LoadHostKey(path); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	for _, k := range keys {
		if k != keys[0] || k == (HostKey{}) {
			t.Fatalf("keys differ or are empty: %x", keys)
		}
	}
	if left, _ := filepath.Glob(filepath.Join(filepath.Dir(path), ".host*")); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
	if err := os.Chmod(path, 0o640); err != nil {
		t.Fatal(err)
	}
	if _, err := LoadHostKey(path); err == nil || !strings.Contains(err.Error(), "mode 0640") {
		t.Errorf("a key that others can read: %v", err)
	}
	if err := errors.Join(os.Chmod(path, 0o600), os.WriteFile(path, bytes.Repeat([]byte{1}, 31), 0o600)); err != nil {
		t.Fatal(err)
	}
	if _, err := LoadHostKey(path); err == nil || !strings.Contains(err.Error(), "has 31 bytes") {
		t.Errorf("a short key: %v", err)
	}
}

func TestStoreRefusesAnOpenDirectory(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "a")
	if err := errors.Join(os.Mkdir(dir, 0o755), os.Chmod(dir, 0o755)); err != nil {
		t.Fatal(err)
	}
	if _, err := NewStore(dir, HostKey{}); err == nil || !strings.Contains(err.Error(), "mode 0755") {
		t.Errorf("the error is %v", err)
	}
}

func TestIdentityDecidesTheKey(t *testing.T) {
	t.Parallel()
	base := Identity{"a", "b", "c", "d", "e"}
	seen := map[string]Identity{}
	for _, id := range []Identity{base, {"x", "b", "c", "d", "e"}, {"a", "x", "c", "d", "e"}, {"a", "b", "x", "d", "e"},
		{"a", "b", "c", "x", "e"}, {"a", "b", "c", "d", "x"}, {"ab", "", "c", "d", "e"}, {"", "ab", "c", "d", "e"}} {
		k := id.Key()
		if other, ok := seen[k]; ok || !ValidKey(k) {
			t.Errorf("%+v and %+v have the key %q", id, other, k)
		}
		seen[k] = id
	}
}

package artifact

import (
	"context"
	"errors"
	"path/filepath"
	"strings"
	"testing"

	"github.com/taskhost/taskhost/handlers"
)

// What an earlier version of the host made is removed; what this one can use stays, and so does what was tampered with.
func TestPrune(t *testing.T) {
	t.Parallel()
	s := newStore(t)
	kept := publish(t, s).Key
	keys := map[string]string{}
	for name, change := range map[string]func(*Identity){
		"another module": func(id *Identity) { id.SHA256 = strings.Repeat("cd", 32) },
		"rewriter":       func(id *Identity) { id.Rewriter = "older" },
		"engine":         func(id *Identity) { id.Engine = "test 0" },
		"processor":      func(id *Identity) { id.CPU = "none" },
		"tampered":       func(id *Identity) { id.Engine = "test -1" },
	} {
		id := testIdentity
		change(&id)
		a, err := s.Publish(draft(t, s), Manifest{Identity: id, Kind: handlers.KindReactor})
		if err != nil {
			t.Fatal(err)
		}
		keys[name] = a.Key
	}
	flip(t, filepath.Join(s.dir, keys["tampered"], manifestFile))
	stopped, stop := context.WithCancel(t.Context())
	stop()
	if n, err := s.Prune(stopped, testIdentity); n != 0 || !errors.Is(err, context.Canceled) {
		t.Errorf("%d removed though it was stopped, %v", n, err)
	}
	if n, err := s.Prune(t.Context(), testIdentity); n != 3 || err != nil {
		t.Errorf("%d removed, %v", n, err)
	}
	if _, err := s.Open(kept); err != nil {
		t.Error(err)
	}
	for name, key := range keys {
		if want := name == "another module" || name == "tampered"; s.Has(key) != want {
			t.Errorf("%s: is there %t, want %t", name, s.Has(key), want)
		}
	}
	if n, err := s.Prune(t.Context(), testIdentity); n != 0 || err != nil {
		t.Errorf("the second time: %d removed, %v", n, err)
	}
}

package engine

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestCompileWritesOneArtifact(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := Compile(t.Context(), nopReactor, dir); err != nil {
		t.Fatal(err)
	}
	files, err := filepath.Glob(filepath.Join(dir, "wazero-*", "*"))
	if err != nil || len(files) != 1 {
		t.Fatalf("files %v, error %v; want exactly one", files, err)
	}
}

func TestCompileRefusesInvalid(t *testing.T) {
	t.Parallel()
	bad := append([]byte(nil), nopReactor...)
	bad[len(bad)-1] = 0xff
	for name, module := range map[string][]byte{"empty": nil, "text": []byte("hello"), "flipped": bad, "truncated": nopReactor[:len(nopReactor)-3]} {
		dir := t.TempDir()
		if err := Compile(t.Context(), module, dir); err == nil || !strings.Contains(err.Error(), "compile: ") {
			t.Errorf("%s: error %v", name, err)
		}
		if left, _ := filepath.Glob(filepath.Join(dir, "wazero-*", "*")); len(left) != 0 {
			t.Errorf("%s: left %v behind", name, left)
		}
	}
	if err := Compile(t.Context(), nopReactor, filepath.Join(t.TempDir(), "none")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("missing directory: %v", err)
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	cause := errors.New("told to stop")
	cancel(cause)
	if err := Compile(ctx, nopReactor, t.TempDir()); !errors.Is(err, cause) {
		t.Errorf("cancelled: %v", err)
	}
}

// nopReactor exports memory, the marker and a handler that returns 0.
var nopReactor = []byte{
	0, 'a', 's', 'm', 1, 0, 0, 0,
	1, 8, 2, 0x60, 0, 0, 0x60, 0, 1, 0x7f,
	3, 3, 2, 0, 1,
	5, 3, 1, 0, 1,
	7, 46, 3, 6, 'm', 'e', 'm', 'o', 'r', 'y', 2, 0,
	15, 't', 'a', 's', 'k', 'h', 'o', 's', 't', '_', 'a', 'b', 'i', '_', 'v', '1', 0, 0,
	15, 't', 'a', 's', 'k', 'h', 'o', 's', 't', '_', 'h', 'a', 'n', 'd', 'l', 'e', 0, 1,
	10, 9, 2, 2, 0, 0x0b, 4, 0, 0x41, 0, 0x0b,
}

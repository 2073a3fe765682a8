package srcline_test

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/taskhost/taskhost/handlers/wasm/srcline"
	wt "github.com/taskhost/taskhost/handlers/wasm/wasmtest"
)

// guest is a metered module with line information.
func guest(tb testing.TB) []byte {
	tb.Helper()
	out := filepath.Join(tb.TempDir(), "guest.wasm")
	cmd := exec.CommandContext(tb.Context(), "clang", "--target=wasm32", "-O1", "-gdwarf-4", "-nostdlib", "-Wl,--no-entry", "-o", out, "../meter/testdata/lines/trap.c")
	if msg, err := cmd.CombinedOutput(); err != nil {
		tb.Skipf("no clang that builds for WebAssembly: %v\n%s", err, msg)
	}
	module, err := os.ReadFile(out)
	if err != nil {
		tb.Fatal(err)
	}
	return wt.Metered(tb, module)
}

func TestSplitAndFind(t *testing.T) {
	t.Parallel()
	module := guest(t)
	stubbed, table, err := srcline.Split(module)
	if err != nil || table == nil || bytes.Contains(stubbed, []byte("trap.c")) || len(stubbed) >= len(module)+200 {
		t.Fatalf("%d bytes became %d and %d, %v", len(module), len(stubbed), len(table), err)
	}
	places := make([]uint64, 400)
	for i := range places {
		places[i] = uint64(i)
	}
	found, err := srcline.Find(table, places)
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{}
	for _, at := range found {
		if !strings.HasPrefix(at, "lines/trap.c:") {
			t.Fatalf("a place is in %q", at)
		}
		seen[at] = true
	}
	if len(seen) < 5 || found[0] != "" {
		t.Errorf("%d places are found, in %d lines; place 0 in %q", len(found), len(seen), found[0])
	}
	// Without line information a module is left as it is.
	plain := wt.Metered(t, wt.EchoReactor())
	if same, none, err := srcline.Split(plain); err != nil || none != nil || !bytes.Equal(same, plain) {
		t.Errorf("a module without lines: %d bytes, %d of lines, %v", len(same), len(none), err)
	}
}

// What a compile child leaves is read by runners: whatever it is, Find answers or gives an error.
func FuzzFind(f *testing.F) {
	f.Add([]byte("\x00asm\x01\x00\x00\x00"))
	if _, table, err := srcline.Split(guest(f)); err == nil {
		f.Add(table)
	}
	f.Fuzz(func(t *testing.T, table []byte) {
		if _, err := srcline.Find(table, []uint64{1, 60, 1 << 40}); err != nil && !errors.Is(err, srcline.ErrFormat) {
			t.Error(err)
		}
	})
}

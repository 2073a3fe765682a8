package guest_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"
)

// TestReactorExports builds a module with the command of the package documentation and reads its export section.
func TestReactorExports(t *testing.T) {
	t.Parallel()
	wasm := filepath.Join(t.TempDir(), "handler.wasm")
	build := exec.CommandContext(t.Context(), "go", "build", "-buildmode=c-shared", "-o", wasm, "./testdata/handler")
	build.Env = append(os.Environ(), "GOOS=wasip1", "GOARCH=wasm", "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	module, err := os.ReadFile(wasm)
	if err != nil {
		t.Fatal(err)
	}
	got := exports(t, module)
	for _, name := range []string{"memory", "_initialize", "taskhost_handle", "taskhost_abi_v1"} {
		if !slices.Contains(got, name) {
			t.Errorf("export %q is missing among %q", name, got)
		}
	}
	if slices.Contains(got, "_start") {
		t.Error("a reactor must not export _start")
	}
}

// exports lists the names in the export section of a module the compiler made.
func exports(t *testing.T, module []byte) (names []string) {
	t.Helper()
	number := func() (n int) {
		for shift := 0; ; shift += 7 {
			b := module[0]
			module = module[1:]
			n |= int(b&0x7f) << shift
			if b < 0x80 {
				return n
			}
		}
	}
	module = module[8:] // magic and version
	for len(module) > 0 {
		id := module[0]
		module = module[1:]
		size := number()
		if id != 7 {
			module = module[size:]
			continue
		}
		for range number() {
			n := number()
			names = append(names, string(module[:n]))
			module = module[n+1:] // the name and the kind
			number()
		}
		return names
	}
	t.Fatal("no export section")
	return nil
}

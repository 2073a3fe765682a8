package wasm

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/taskhost/taskhost/abi"
	"github.com/taskhost/taskhost/handlers"
	"github.com/taskhost/taskhost/handlers/handlertest"
)

const abortC = `#include <stdio.h>
#include <stdlib.h>
__attribute__((noinline)) static int check(int n) {
	if (n > 1) {
		fprintf(stderr, "check failed: n is %d\n", n);
		abort();
	}
	return n;
}
__attribute__((noinline)) static int twice(int n) { return check(n) + 1; }
int main(int argc, char **argv) { return twice(argc + 3); }
`

// A trap says what the guest said itself, in which functions it was, and where these are in the source.
func TestTrapsNameSourceLines(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "check.c"), []byte(abortC), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), "clang", "--target=wasm32-wasi", "-O1", "-g", "-o", "check.wasm", "check.c")
	cmd.Dir = dir
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Skipf("no clang that builds for WASI: %v\n%s", err, out)
	}
	module, err := os.ReadFile(filepath.Join(dir, "check.wasm"))
	if err != nil {
		t.Fatal(err)
	}
	r := newRuntime(t, nil)
	found, err := r.Admit(t.Context(), handlers.AdmitRequest{Tenant: "acme", Type: "check", Module: module})
	if err != nil || !found.Metered || !found.SourceLines || len(found.Exports) == 0 {
		t.Fatalf("%+v, %v", found, err)
	}
	out := r.Invoke(t.Context(), handlertest.Harness{Runtime: r, Version: upload(t, r, "check", module)}.Invocation(nil, time.Minute))
	if out.Error == nil || out.Error.Kind != abi.KindTrap || !strings.HasPrefix(out.Error.Message, "check failed: n is 4 (unreachable)\n") {
		t.Fatalf("%s %v", out.Kind, out.Error)
	}
	for _, frame := range []string{"at check(i32) i32 (", "check.c:6:3)", "at twice(i32) i32 (", "check.c:10:"} {
		if !strings.Contains(out.Error.Message, frame) {
			t.Errorf("no %q in %s", frame, out.Error.Message)
		}
	}
}

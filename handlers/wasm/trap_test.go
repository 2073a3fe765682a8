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
	"github.com/taskhost/taskhost/handlers/wasm/wasmtest"
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
		if os.Getenv("CI") != "" {
			t.Fatalf("no clang that builds for WASI; scripts/setup.sh installs it: %v\n%s", err, out)
		}
		t.Skipf("no clang that builds for WASI (scripts/setup.sh installs it): %v\n%s", err, out)
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

// A Go guest that links some of the largest packages there are is accepted and runs: it says what it has to say, and that it cannot listen.
func TestLargeGoGuestRuns(t *testing.T) {
	if os.Getenv("TASKHOST_TEST_LONG") == "" {
		t.Skip("builds and compiles a guest of some 20 MB; set TASKHOST_TEST_LONG=1")
	}
	r := newRuntime(t, nil)
	module := wasmtest.GoCommand(t, wasmtest.LargeGoSource)
	began := time.Now()
	v := upload(t, r, "large", module)
	t.Logf("%d bytes accepted in %v", len(module), time.Since(began))
	out := r.Invoke(t.Context(), handlertest.Harness{Runtime: r, Version: v}.Invocation(nil, time.Minute))
	t.Logf("%s %v in %v, %d units of fuel, %d KiB", out.Kind, out.Error, out.Duration, out.Fuel, out.PeakMemory>>10)
	if out.Fuel < 100_000 || out.Error != nil && out.Error.Kind != abi.KindExit {
		t.Errorf("%s %v", out.Kind, out.Error)
	}
}

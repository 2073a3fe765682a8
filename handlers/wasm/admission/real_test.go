package admission

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"

	"github.com/taskhost/taskhost/handlers"
	wt "github.com/taskhost/taskhost/handlers/wasm/wasmtest"
)

const goCommand = `package main

import (
	"encoding/json"
	"io"
	"os"
	"sort"
	"strings"
)

func main() {
	in, _ := io.ReadAll(os.Stdin)
	words := strings.Fields(string(in))
	sort.Strings(words)
	json.NewEncoder(os.Stdout).Encode(words)
}
`

const goReactor = `package main

import "fmt"

//go:wasmexport taskhost_abi_v1
func marker() {}

//go:wasmexport taskhost_handle
func handle() int32 { fmt.Println("x"); return 0 }

func main() {}
`

func TestGoGuestsAreAccepted(t *testing.T) {
	t.Parallel()
	command := accepted(t, wt.GoCommand(t, goCommand))
	if command.Kind != handlers.KindCommand || !slices.Contains(command.Imports, "wasi_snapshot_preview1.fd_write") || !slices.IsSorted(command.Imports) {
		t.Errorf("the command is reported as %+v", command)
	}
	if command.Counts.Functions < 1000 || command.Memory.MinBytes == 0 {
		t.Errorf("the command is reported as %+v", command)
	}
	reactor := accepted(t, wt.GoReactor(t, goReactor))
	if reactor.Kind != handlers.KindReactor || !slices.Contains(reactor.Exports, "_initialize (function)") {
		t.Errorf("the reactor is reported as %+v", reactor)
	}
	refused(t, wt.GoCommand(t, goReactor), "build it as a reactor (Go: -buildmode=c-shared")
}

func TestLargeGoGuestIsAccepted(t *testing.T) {
	if os.Getenv("TASKHOST_TEST_LONG") == "" {
		t.Skip("builds a guest of some 20 MB; set TASKHOST_TEST_LONG=1")
	}
	rep := accepted(t, wt.GoCommand(t, wt.LargeGoSource))
	t.Logf("%+v", rep)
	if rep.Counts.Functions < 8000 {
		t.Errorf("the guest is smaller than meant: %+v", rep.Counts)
	}
}

func BenchmarkCheckGoCommand(b *testing.B) {
	m := wt.GoCommand(b, goCommand)
	b.SetBytes(int64(len(m)))
	b.ReportAllocs()
	for b.Loop() {
		if _, ref := Check(m, Limits{}); ref != nil {
			b.Fatal(ref)
		}
	}
}

// A C program built with clang and wasi-libc, where the machine has them: another linker, another libc.
func TestClangGuestIsAccepted(t *testing.T) {
	t.Parallel()
	clang, err := exec.LookPath("clang")
	if err != nil {
		t.Skip("no clang on this machine")
	}
	dir := t.TempDir()
	src, out := filepath.Join(dir, "guest.c"), filepath.Join(dir, "guest.wasm")
	const text = "#include <stdio.h>\nint main(void) { char b[99]; while (fgets(b, 99, stdin)) fputs(b, stdout); return 0; }\n"
	if err := os.WriteFile(src, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if msg, err := exec.Command(clang, "--target=wasm32-wasi", "-O2", "-g", "-o", out, src).CombinedOutput(); err != nil {
		t.Skipf("clang has no WASI target here: %v: %s", err, msg)
	}
	m, err := os.ReadFile(out)
	if err != nil {
		t.Fatal(err)
	}
	if rep := accepted(t, m); rep.Kind != handlers.KindCommand {
		t.Errorf("the guest is reported as %+v", rep)
	}
}

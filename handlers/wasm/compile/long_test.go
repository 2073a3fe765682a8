package compile

import (
	"os"
	"testing"

	"github.com/taskhost/taskhost/handlers"
	wt "github.com/taskhost/taskhost/handlers/wasm/wasmtest"
)

// A Go guest that links some of the largest packages there are is compiled within the default limits.
func TestLargeGoGuestCompiles(t *testing.T) {
	if os.Getenv("TASKHOST_TEST_LONG") == "" {
		t.Skip("builds and compiles a guest of some 20 MB; set TASKHOST_TEST_LONG=1")
	}
	m := wt.GoCommand(t, wt.LargeGoSource)
	if len(m) < 15<<20 {
		t.Fatalf("the guest has %d bytes; it is meant to be large", len(m))
	}
	b := newBench(t, Options{}, "compile")
	adm, key, err := b.admit(t, m)
	if err != nil {
		t.Fatal(err)
	}
	if adm.Kind != handlers.KindCommand {
		t.Errorf("the admission is %+v", adm)
	}
	a, err := b.store.Open(key)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range a.Manifest.Files {
		t.Logf("%s: %d bytes", f.Path, f.Size)
	}
	t.Logf("compiled in %v; %s", adm.CompileTime, b.logs)
}

// Modules that pass every count of the scan and are still too costly meet the default limits of the child.
func TestCase078DefaultLimits(t *testing.T) {
	if os.Getenv("TASKHOST_TEST_LONG") == "" {
		t.Skip("takes more than a minute of processor time; set TASKHOST_TEST_LONG=1")
	}
	b := newBench(t, Options{}, "compile")
	for _, bomb := range wt.Bombs() {
		if bomb.Costly {
			b.refuses(t, bomb.Module, bomb.Want...)
		}
	}
	t.Log(b.logs)
}

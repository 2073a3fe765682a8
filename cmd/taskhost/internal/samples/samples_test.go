package samples

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"testing"

	"github.com/taskhost/taskhost/cmd/taskhost/internal/samples/build"
)

const root = "../../../.."

// The committed module belongs to the committed sources. This half needs no compiler, so it never is skipped: whoever changes
// a source must run go generate, or it fails.
func TestModuleBelongsToItsSources(t *testing.T) {
	t.Parallel()
	r := record(t)
	sources, err := build.Sources(root)
	if err != nil {
		t.Fatal(err)
	}
	if sources != r.Sources {
		t.Errorf("sources changed: run make generate")
	}
	if got := build.Hash(Module()); got != r.Module {
		t.Errorf("%s is %s, recorded %s: run make generate", build.ModuleFile, got, r.Module)
	}
	if n := len(Module()); n > 50<<10 {
		t.Errorf("the module has %d bytes, limit %d", n, 50<<10)
	}
}

// Rebuilt, the module is the same: byte for byte by the recorded compiler, and by its behaviour with any other one.
func TestRebuiltModuleIsTheSame(t *testing.T) {
	t.Parallel()
	compiler, err := build.Compiler(t.Context())
	if errors.Is(err, exec.ErrNotFound) && os.Getenv("CI") == "" {
		t.Skip("clang is not installed (scripts/setup.sh installs it)")
	}
	if err != nil {
		t.Fatal(err)
	}
	rebuilt, err := build.Module(t.Context(), root)
	if err != nil {
		t.Fatal(err)
	}
	if r := record(t); compiler == r.Compiler {
		if !bytes.Equal(rebuilt, Module()) {
			t.Errorf("%s gives %s, committed is %s", compiler, build.Hash(rebuilt), r.Module)
		}
		return
	}
	t.Logf("%s is not the recorded compiler: comparing behaviour", compiler)
	exercise(t, rebuilt)
}

func TestCommittedModule(t *testing.T) {
	t.Parallel()
	exercise(t, Module())
}

func record(t *testing.T) (r build.Record) {
	t.Helper()
	data, err := os.ReadFile(build.RecordFile)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(data, &r); err != nil {
		t.Fatal(err)
	}
	return r
}

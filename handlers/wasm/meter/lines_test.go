package meter_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"testing"

	"github.com/tetratelabs/wazero"

	"github.com/taskhost/taskhost/handlers/wasm/meter"
)

// clang builds a C guest: a reactor with wasi-libc, or without a library when the flags say so.
func clang(tb testing.TB, source string, flags ...string) []byte {
	tb.Helper()
	out := filepath.Join(tb.TempDir(), "guest.wasm")
	args := append([]string{"--target=wasm32-wasi", "-O2", "-mexec-model=reactor", "-o", out, source}, flags...)
	if msg, err := exec.CommandContext(tb.Context(), "clang", args...).CombinedOutput(); err != nil {
		tb.Skipf("no clang that builds for WASI: %v\n%s", err, msg)
	}
	b, err := os.ReadFile(out)
	if err != nil {
		tb.Fatal(err)
	}
	return b
}

var sourceLine = regexp.MustCompile(`trap\.c:\d+:\d+`)

// The engine names the same source lines in a trap's stack for the rewritten module as for the original.
func TestTrapNamesSourceLines(t *testing.T) {
	t.Parallel()
	for _, flags := range [][]string{{"-gdwarf-4"}, {"-gdwarf-4", "-O0"}, {"-gdwarf-5"}} {
		module := clang(t, "testdata/lines/trap.c", append([]string{"-nostdlib", "-Wl,--no-entry"}, flags...)...)
		var want []string
		for _, metered := range []bool{false, true} {
			h := newHost(t, wazero.NewRuntimeConfigCompiler(), metered, 10)
			m, err := h.start(t, "", module)
			if err != nil {
				t.Fatal(err)
			}
			_, err = m.ExportedFunction("trap").Call(t.Context(), 3)
			if err == nil {
				t.Fatal("no trap")
			}
			lines := sourceLine.FindAllString(err.Error(), -1)
			if !metered {
				want = lines
				if len(want) < 5 && flags[0] != "-gdwarf-5" { // the engine does not read version 5; we do
					t.Fatalf("%v: the original has no line information: %v", flags, err)
				}
				continue
			}
			if flags[0] == "-gdwarf-5" {
				if len(lines) < 5 {
					t.Errorf("%v: no line information: %v", flags, err)
				}
			} else if !slices.Equal(lines, want) {
				t.Errorf("%v: lines %v, of the original %v", flags, lines, want)
			}
		}
	}
}

// Every instruction of the original is found again from where it went.
func TestMap(t *testing.T) {
	t.Parallel()
	module := clang(t, "testdata/bench/c/bench.c")
	res, err := meter.Instrument(module)
	if err != nil {
		t.Fatal(err)
	}
	original, rewritten := codeSection(t, module), codeSection(t, res.Module)
	same := 0
	for at := range rewritten {
		from, ok := res.Map.Original(uint32(at))
		if !ok {
			continue
		}
		if int(from) >= len(original) {
			t.Fatalf("place %d maps to %d, behind the code of %d bytes", at, from, len(original))
		}
		if original[from] == rewritten[at] {
			same++
		}
	}
	if same < len(original)*9/10 {
		t.Errorf("only %d of %d bytes map to an equal byte", same, len(original))
	}
}

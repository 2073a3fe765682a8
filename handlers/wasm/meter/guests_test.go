package meter_test

import (
	"os"
	"strings"
	"testing"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"

	"github.com/taskhost/taskhost/handlers/wasm/meter"
	"github.com/taskhost/taskhost/handlers/wasm/wasmbin"
	wt "github.com/taskhost/taskhost/handlers/wasm/wasmtest"
)

// goGuest builds the Go guest of the measurements: about 4 MB.
func goGuest(tb testing.TB) []byte {
	tb.Helper()
	source, err := os.ReadFile("testdata/bench/go/main.go")
	if err != nil {
		tb.Fatal(err)
	}
	return wt.GoReactor(tb, string(source))
}

func cGuest(tb testing.TB) []byte {
	tb.Helper()
	return clang(tb, "testdata/bench/c/bench.c")
}

// initialize calls what a reactor must be prepared with.
func initialize(tb testing.TB, m api.Module) {
	tb.Helper()
	if m.ExportedFunction("_initialize") == nil {
		return
	}
	if got := call(m, "_initialize"); got.trap != "" {
		tb.Fatal(got)
	}
}

// workloads are the exports that do a fixed amount of work.
func workloads(m api.Module) (names []string) {
	for name := range m.ExportedFunctionDefinitions() {
		if strings.HasPrefix(name, "b_") {
			names = append(names, name)
		}
	}
	return names
}

// Real programs give the same results, and take the same fuel from run to run, whatever the refill.
func TestRealGuests(t *testing.T) {
	t.Parallel()
	t.Run("c", func(t *testing.T) { t.Parallel(); compareGuest(t, cGuest(t)) })
	t.Run("go", func(t *testing.T) {
		t.Parallel()
		if reduced() {
			t.Skip("compiles 4 MB three times")
		}
		compareGuest(t, goGuest(t))
	})
}

func compareGuest(t *testing.T, module []byte) {
	compiler := wazero.NewRuntimeConfigCompiler()
	hosts := []*host{newHost(t, compiler, false, 0).wasi(), newHost(t, compiler, true, 10_000).wasi(), newHost(t, compiler, true, 1_234_567).wasi()}
	var mods []api.Module
	for _, h := range hosts {
		m, err := h.start(t, "", module)
		if err != nil {
			t.Fatal(err)
		}
		initialize(t, m)
		mods = append(mods, m)
	}
	for _, name := range workloads(mods[0]) {
		var want outcome
		for i, m := range mods {
			got := call(m, name)
			if i == 0 {
				want = got
			} else if !got.equal(want) {
				t.Errorf("%s gives %v, metered %v", name, want, got)
			}
		}
		if a, b := hosts[1].used(), hosts[2].used(); a != b {
			t.Errorf("%s: fuel %d with small refills, %d with large ones", name, a, b)
		}
	}
	for i, h := range hosts[1:] {
		if h.ticks == 0 {
			t.Errorf("host %d has seen no tick", i+1)
		}
	}
}

// The fuel of a real program is the same in the compiler and in the interpreter.
func TestFuelIsTheEnginesNoMatter(t *testing.T) {
	t.Parallel()
	if reduced() {
		t.Skip("interprets some hundred million instructions")
	}
	module := cGuest(t)
	for _, name := range []string{"b_sort", "b_regex", "b_json"} {
		var used []int64
		for _, config := range []wazero.RuntimeConfig{wazero.NewRuntimeConfigCompiler(), wazero.NewRuntimeConfigInterpreter()} {
			h := newHost(t, config, true, 1_000_000).wasi()
			m, err := h.start(t, "", module)
			if err != nil {
				t.Fatal(err)
			}
			if got := call(m, name); got.trap != "" {
				t.Fatal(got)
			}
			used = append(used, h.used())
		}
		if used[0] != used[1] {
			t.Errorf("%s takes %d compiled, %d interpreted", name, used[0], used[1])
		}
	}
}

// codeSection is the body of the code section.
func codeSection(t *testing.T, module []byte) []byte {
	t.Helper()
	sections, err := wasmbin.Sections(module)
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range sections {
		if s.ID == wasmbin.SectionCode {
			return s.Body
		}
	}
	t.Fatal("no code section")
	return nil
}

// A guest that is out of fuel ends with what the host's tick panics with.
func TestTickCanEndTheGuest(t *testing.T) {
	t.Parallel()
	h := newHost(t, wazero.NewRuntimeConfigCompiler(), true, 1000)
	h.limit = 100_000
	b := &wt.Builder{}
	m, err := h.start(t, "", run(b, nil, wt.Forever()))
	if err != nil {
		t.Fatal(err)
	}
	if got := call(m, "run"); !strings.HasPrefix(got.trap, errOutOfFuel.Error()) {
		t.Errorf("it ends with %v", got)
	}
	if used := h.used(); used < h.limit || used > h.limit+1000 {
		t.Errorf("%d units of fuel taken, the limit is %d", used, h.limit)
	}
}

// What the host relies on: the start section is an export, mutable globals are exports, and the fuel is 0.
func TestWhatIsAdded(t *testing.T) {
	t.Parallel()
	b := &wt.Builder{}
	b.Global(wt.I32, true, wt.I32Const(1))
	b.Global(wt.I32, false, wt.I32Const(2))
	b.Global(wt.I64, true, wt.I64Const(3))
	b.Start(b.Func(nil, nil, nil, wt.I32Const(5), wt.GlobalSet(0)))
	module := b.Module()
	res, err := meter.Instrument(module)
	if err != nil {
		t.Fatal(err)
	}
	if !res.HasStart || len(res.Globals) != 2 || res.Globals[0] != 0 || res.Globals[1] != 2 {
		t.Errorf("start %v, globals %v", res.HasStart, res.Globals)
	}
	h := newHost(t, wazero.NewRuntimeConfigCompiler(), true, 100)
	compiled, err := h.rt.CompileModule(t.Context(), res.Module)
	if err != nil {
		t.Fatal(err)
	}
	m, err := h.rt.InstantiateModule(t.Context(), compiled, wazero.NewModuleConfig().WithStartFunctions())
	if err != nil {
		t.Fatal(err)
	}
	global := func(name string) uint64 { return m.ExportedGlobal(name).Get() }
	if global(meter.ExportFuel) != 0 || global(meter.ExportGlobal(0)) != 1 || global(meter.ExportGlobal(2)) != 3 || m.ExportedGlobal(meter.ExportGlobal(1)) != nil {
		t.Error("the globals are not as they should be before the start")
	}
	if got := call(m, meter.ExportStart); got.trap != "" || global(meter.ExportGlobal(0)) != 5 {
		t.Errorf("start: %v, then the global is %d", got, global(meter.ExportGlobal(0)))
	}
}

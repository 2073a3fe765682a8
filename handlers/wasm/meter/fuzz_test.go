package meter_test

import (
	"errors"
	"testing"

	"github.com/tetratelabs/wazero"

	"github.com/taskhost/taskhost/handlers/wasm/meter"
	"github.com/taskhost/taskhost/handlers/wasm/wasmbin"
	wt "github.com/taskhost/taskhost/handlers/wasm/wasmtest"
)

// FuzzInstrument: no input panics; what the engine accepts, it accepts rewritten; and what that does without arguments within some
// fuel, the original does, too.
func FuzzInstrument(f *testing.F) {
	for seed := range uint64(8) {
		f.Add(generate(seed, false))
	}
	var b wt.Builder
	f.Add(run(&b, nil, wt.Forever()))
	f.Add(allSegments())
	f.Add(bulkWithoutArguments(1))
	f.Add(bulkWithoutArguments(34))
	f.Add(wt.EchoReactor())
	f.Add(wt.Preamble())
	f.Fuzz(func(t *testing.T, module []byte) {
		res, err := meter.Instrument(module)
		if err != nil {
			if !errors.Is(err, wasmbin.ErrFormat) && !errors.Is(err, meter.ErrReserved) {
				t.Errorf("an error of an unknown kind: %v", err)
			}
			return
		}
		for at := uint32(0); at < 100; at++ {
			res.Map.Original(at)
		}
		if !harmless(module) {
			return
		}
		config := wazero.NewRuntimeConfigInterpreter().WithMemoryLimitPages(20)
		original, metered := newHost(t, config, false, 0), newHost(t, config, true, 1000)
		metered.limit = 200_000
		if compiled, err := original.rt.CompileModule(t.Context(), module); err != nil {
			return
		} else if len(compiled.ImportedFunctions()) > 0 {
			return
		}
		want, err := metered.start(t, "", module) // it reports an invalid module
		if err != nil {
			return
		}
		before, err := original.start(t, "", module)
		if err != nil {
			t.Fatalf("the original does not start, the rewritten module does: %v", err)
		}
		for name, def := range before.ExportedFunctionDefinitions() {
			if len(def.ParamTypes()) > 0 {
				continue
			}
			out := call(want, name)
			if metered.granted >= metered.limit {
				return // the original may not end
			}
			if got := call(before, name); !got.equal(out) {
				t.Errorf("%s gives %v, metered %v", name, got, out)
			}
		}
	})
}

// harmless reports whether the engine can be let loose on a module that nobody has looked at: it allocates what some counts
// and lengths say before it looks whether they can be true.
func harmless(module []byte) bool {
	sections, err := wasmbin.Sections(module)
	if err != nil || len(module) > 1<<16 {
		return false
	}
	for _, s := range sections {
		r := wasmbin.NewReader(s.Body)
		switch s.ID {
		case wasmbin.SectionCustom:
			return false
		case wasmbin.SectionTable:
			for n := r.Count(); n > 0 && r.Err() == nil; n-- {
				r.Byte()
				flags, low := r.Byte(), r.U32()
				if low > 1000 || flags&1 != 0 && r.U32() > 1000 {
					return false
				}
			}
		case wasmbin.SectionData:
			for n := r.Count(); n > 0 && r.Err() == nil; n-- {
				flags := r.U32()
				if flags == 2 {
					r.U32()
				}
				if flags != 1 {
					r.ConstExpr(nil)
				}
				r.Name()
			}
		}
		if r.Err() != nil {
			return false
		}
	}
	return true
}

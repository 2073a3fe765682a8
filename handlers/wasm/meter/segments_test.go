package meter_test

import (
	"errors"
	"testing"

	"github.com/tetratelabs/wazero"

	"github.com/taskhost/taskhost/handlers/wasm/meter"
	wt "github.com/taskhost/taskhost/handlers/wasm/wasmtest"
)

// allSegments is a module with every kind of element segment, references to functions in globals and code, and an import, so that
// all indices shift. Function 4+n returns 100+n; "pick" calls through table 0.
func allSegments() []byte {
	number := func(n int) []byte { return wt.Bytes(wt.Code([]byte{0}, wt.I32Const(int32(100+n)), wt.Ops(wt.OpEnd))) }
	vec, sec := wt.Vec, wt.Section
	refs := func(f ...byte) []byte {
		out := wt.Uleb(uint64(len(f)))
		for _, i := range f {
			out = append(out, 0xd2, i, wt.OpEnd)
		}
		return out
	}
	at := func(n int32) []byte { return append(wt.I32Const(n), wt.OpEnd) }
	types := vec([]byte{0x60, 0, 1, wt.I32}, []byte{0x60, 1, wt.I32, 1, wt.I32}, []byte{0x60, 0, 0})
	functions := vec([]byte{0}, []byte{0}, []byte{0}, []byte{0}, []byte{1}, []byte{2})
	elements := vec(
		wt.Code([]byte{0}, at(0), []byte{2, 0, 1}),                // active, indices
		[]byte{1, 0, 2, 1, 2},                                     // passive
		wt.Code([]byte{2, 0}, at(2), []byte{0, 1, 2}),             // active with a table
		[]byte{3, 0, 1, 3},                                        // declarative
		wt.Code([]byte{4}, at(3), refs(3)),                        // active, expressions
		wt.Code([]byte{5, wt.FuncRef}, refs(0, 3)),                // passive
		wt.Code([]byte{6, 0}, at(4), []byte{wt.FuncRef}, refs(1)), // active with a table
		wt.Code([]byte{7, wt.FuncRef}, refs(2)),                   // declarative
	)
	pick := wt.Bytes(wt.Code([]byte{0}, wt.LocalGet(0), wt.Ops(wt.OpCallIndirect, 0, 0, wt.OpEnd)))
	// The start function fills entries 5 to 8 from the passive segments, 9 with ref.func and 10 from the global.
	fill := wt.Bytes(wt.Code([]byte{0},
		wt.I32Const(5), wt.I32Const(0), wt.I32Const(2), wt.Ops(0xfc, 12, 1, 0),
		wt.I32Const(7), wt.I32Const(0), wt.I32Const(2), wt.Ops(0xfc, 12, 5, 0),
		wt.I32Const(9), wt.Ops(0xd2, 2, 0x26, 0),
		wt.I32Const(10), wt.GlobalGet(0), wt.Ops(0x26, 0, wt.OpEnd)))
	return wt.Code(wt.Preamble(),
		sec(wt.SectionType, types),
		sec(wt.SectionFunction, functions),
		sec(wt.SectionTable, vec(wt.Code([]byte{wt.FuncRef}, wt.Limits(11, 11)))),
		sec(wt.SectionGlobal, vec([]byte{wt.FuncRef, 1, 0xd2, 3, wt.OpEnd}, []byte{wt.I32, 0, 0x41, 9, wt.OpEnd})),
		sec(wt.SectionExport, vec(wt.Code(wt.Name("pick"), []byte{0, 4}), wt.Code(wt.Name("zero"), []byte{0, 0}))),
		sec(wt.SectionStart, wt.Uleb(5)),
		sec(wt.SectionElement, elements),
		sec(wt.SectionCode, vec(number(0), number(1), number(2), number(3), pick, fill)),
	)
}

// All that names a function names the same one after the rewriting.
func TestFunctionIndicesShift(t *testing.T) {
	t.Parallel()
	for _, metered := range []bool{false, true} {
		h := newHost(t, wazero.NewRuntimeConfigCompiler(), metered, 100)
		m, err := h.start(t, "", allSegments())
		if err != nil {
			t.Fatal(err)
		}
		for entry, function := range []uint64{0, 1, 2, 3, 1, 1, 2, 0, 3, 2, 3} {
			if got := call(m, "pick", uint64(entry)); got.trap != "" || got.results[0] != 100+function {
				t.Errorf("metered %v: entry %d gives %v, not %d", metered, entry, got, 100+function)
			}
		}
	}
}

// A module that uses a name of the host is refused.
func TestReservedNames(t *testing.T) {
	t.Parallel()
	var imports, exports wt.Builder
	imports.ImportFunc(meter.TickModule, "anything", nil, nil)
	exports.ExportFunc("__taskhost_anything", exports.Func(nil, nil, nil))
	for name, module := range map[string][]byte{meter.TickModule: imports.Module(), "__taskhost_anything": exports.Module()} {
		_, err := meter.Instrument(module)
		want := &meter.ReservedError{}
		if !errors.As(err, &want) || want.Name != name {
			t.Errorf("%s: %v", name, err)
		}
	}
}

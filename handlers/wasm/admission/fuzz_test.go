package admission

import (
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/taskhost/taskhost/handlers"
	wt "github.com/taskhost/taskhost/handlers/wasm/wasmtest"
)

// FuzzCheck: no input panics, takes long, or allocates more than a small multiple of its length, and the answer is either a
// report or a refusal with a reason of one line.
func FuzzCheck(f *testing.F) {
	var full wt.Builder
	full.ImportHost("log")
	fn := full.Func(wt.Types(wt.I64, wt.F32), wt.Types(wt.I64), []wt.Local{{Count: 3, Type: wt.I32}}, wt.LocalGet(0))
	full.Table(2, 4)
	full.Memory(1, 3)
	full.Global(wt.I32, true, wt.I32Const(-129))
	full.Element(1, fn)
	full.Data(8, []byte("hello"))
	full.PassiveData(make([]byte, 30))
	full.Start(full.Func(nil, nil, nil))
	full.Custom("name", wt.Code([]byte{1}, wt.Bytes(wt.Vec(wt.Code(wt.Uleb(0), wt.Name("f"))))))
	for _, seed := range [][]byte{
		nil, []byte("text"), wt.EchoReactor(), wt.LoopReactor(),
		full.Reactor([]wt.Local{{Count: 1, Type: wt.I32}}, wt.I32Const(1), wt.LocalTee(0)),
		module(section(wt.SectionImport, wt.Uleb(1<<32-1))),
		module(section(wt.SectionType, wt.Vec([]byte{0x60, 0, 0})), section(wt.SectionFunction, wt.Vec([]byte{0})),
			section(wt.SectionCode, wt.Vec(wt.Bytes(wt.Code(wt.Uleb(1), wt.Uleb(1<<32-1), []byte{0x7f, 0x0b}))))),
		body(wt.I32Const(0), wt.Ops(wt.OpBrTable), wt.Uleb(3), make([]byte, 4)),
		body(wt.Ops(0xfd, 0x0c), make([]byte, 16), wt.Ops(0xfd, 0x8b, 0x01, wt.OpDrop)),
		body(wt.I32Const(0), wt.I32Const(0), wt.I32Const(0), wt.Ops(0xfc, 0x0a, 0, 0)),
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, m []byte) {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		var rep *Report
		var ref *handlers.Refusal
		took := processorTime(t, func() { rep, ref = Check(m, Limits{}) })
		runtime.ReadMemStats(&after)
		if got, most := after.TotalAlloc-before.TotalAlloc, uint64(256<<10+64*len(m)); got > most {
			t.Errorf("%d bytes were allocated for a module of %d bytes", got, len(m))
		}
		if took > 2*time.Second {
			t.Errorf("the check took %v for %d bytes", took, len(m))
		}
		if (rep == nil) == (ref == nil) {
			t.Fatalf("report %v, refusal %v", rep, ref)
		}
		if ref != nil && (ref.Reason == "" || strings.ContainsAny(ref.Error(), "\n\x00\x1b")) {
			t.Errorf("the reason is %q", ref.Error())
		}
	})
}

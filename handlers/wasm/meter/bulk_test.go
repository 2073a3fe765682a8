package meter_test

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"

	wt "github.com/taskhost/taskhost/handlers/wasm/wasmtest"
)

const (
	memoryPages = 8
	memoryBytes = memoryPages << 16
	segmentSize = 3<<16 + 77
	onePiece    = 64 << 10
)

// bulkModule exports the memory operations over 8 pages; what differs at each place is what it was initialised with. With many, each function
// has more operations than are rewritten where they stand, of which one runs.
func bulkModule(many bool) []byte {
	var b wt.Builder
	b.Memory(memoryPages)
	b.ExportMemory("memory")
	noise := make([]byte, memoryBytes)
	r := rand.New(rand.NewPCG(1, 2))
	for i := range noise {
		noise[i] = byte(r.Uint32())
	}
	passive := b.PassiveData(noise[100 : 100+segmentSize])
	second := b.PassiveData(noise[7 : 7+segmentSize])
	b.Data(0, noise)
	three := []byte{wt.I32, wt.I32, wt.I32}
	operation := func(name string, code ...byte) {
		one := wt.Code(wt.LocalGet(0), wt.LocalGet(1), wt.LocalGet(2), code)
		if many {
			one = wt.Code(one, wt.I32Const(0), wt.Ops(wt.OpIf, wt.BlockEmpty), bytes.Repeat(one, 40), wt.Ops(wt.OpEnd))
		}
		b.ExportFunc(name, b.Func(three, nil, nil, one))
	}
	operation("fill", 0xfc, 11, 0)
	operation("copy", 0xfc, 10, 0, 0)
	operation("init", 0xfc, 8, byte(passive), 0)
	operation("init2", 0xfc, 8, byte(second), 0)
	b.ExportFunc("drop", b.Func(three, nil, nil, wt.Ops(0xfc, 9, byte(passive))))
	b.ExportFunc("drop2", b.Func(three, nil, nil, wt.Ops(0xfc, 9, byte(second))))
	return b.Module()
}

// bulkWithoutArguments exports operations over several pieces, that many in each function, that a fuzzer can change.
func bulkWithoutArguments(times int) []byte {
	var b wt.Builder
	b.Memory(memoryPages)
	b.ExportMemory("memory")
	segment := b.PassiveData(make([]byte, 100))
	b.Global(wt.I32, true, wt.I32Const(1))
	for i, code := range [][]byte{wt.Ops(0xfc, 11, 0), wt.Ops(0xfc, 10, 0, 0), wt.Ops(0xfc, 8, byte(segment), 0)} {
		one := wt.Code(wt.I32Const(5), wt.I32Const(9), wt.GlobalGet(0), wt.I32Const(66_000), wt.Ops(0x6a), code)
		b.ExportFunc(fmt.Sprint("bulk", i), b.Func(nil, []byte{wt.I32}, nil, bytes.Repeat(one, times), wt.I32Const(70_000), wt.I32Load(0)))
	}
	return b.Module()
}

// Memory operations in pieces do what they do in one: all of it, or nothing and a trap, whichever way source and destination overlap.
func TestMemoryOperationsInPieces(t *testing.T) {
	t.Parallel()
	for name, many := range map[string]bool{"where they stand": false, "as calls": true} {
		t.Run(name, func(t *testing.T) { t.Parallel(); compareOperations(t, bulkModule(many)) })
	}
}

func compareOperations(t *testing.T, module []byte) {
	calls := [][4]any{}
	add := func(name string, a, b, n uint32) { calls = append(calls, [4]any{name, a, b, n}) }
	lengths := []uint32{0, 1, onePiece - 1, onePiece, onePiece + 1, 2 * onePiece, 3*onePiece + 5, memoryBytes - 1, memoryBytes, memoryBytes + 1, 1 << 31, 1<<32 - 1}
	for _, n := range lengths {
		for _, at := range []uint32{0, 3, memoryBytes - onePiece - 1, memoryBytes - 1, memoryBytes, memoryBytes + 1, 1<<32 - onePiece - 1, 1<<32 - 1, memoryBytes - n, memoryBytes - n + 1} {
			add("fill", at, n+at, n)
			add("copy", at, 9, n)
			add("copy", 9, at, n)
			add("copy", at, at, n)
			add("copy", at, at+1, n)
			add("copy", at+1, at, n)
			add("copy", at+onePiece/2, at, n)
			add("copy", at, at+onePiece+3, n)
			add("init", at, 0, n)
			add("init", 0, at, n)
			add("init", 5, segmentSize-n, n)
			add("init", 5, segmentSize-n+1, n)
			add("init2", -n, -n, n) // both end at 4 GiB
		}
	}
	r := rand.New(rand.NewPCG(3, 4))
	for range 300 {
		add([]string{"fill", "copy", "copy", "copy", "init", "init2"}[r.IntN(6)], r.Uint32N(memoryBytes), r.Uint32N(memoryBytes), r.Uint32N(memoryBytes/2))
	}
	add("drop", 0, 0, 0)
	add("init", 0, 0, 0)
	add("init", 0, 0, 2*onePiece) // of a segment that is gone
	add("init", 0, 1, 0)
	add("init2", 0, 0, 2*onePiece)
	add("drop2", 0, 0, 0)
	add("init2", 7, 7, 2*onePiece)

	compiler, interpreter := wazero.NewRuntimeConfigCompiler(), wazero.NewRuntimeConfigInterpreter()
	hosts := []*host{newHost(t, compiler, false, 0), newHost(t, compiler, true, 100), newHost(t, compiler, true, 1_000_000), newHost(t, interpreter, true, 5000)}
	var mods []api.Module
	for _, h := range hosts {
		m, err := h.start(t, "", module)
		if err != nil {
			t.Fatal(err)
		}
		mods = append(mods, m)
	}
	traps := 0
	for i, c := range calls {
		var want outcome
		var memory []byte
		for k, m := range mods {
			got := call(m, c[0].(string), uint64(c[1].(uint32)), uint64(c[2].(uint32)), uint64(c[3].(uint32)))
			now, _ := m.Memory().Read(0, memoryBytes)
			if k == 0 {
				want, memory = got, now
				if got.trap != "" {
					traps++
				}
			} else if !got.equal(want) || !bytes.Equal(now, memory) {
				t.Fatalf("call %d, %v: %v, in host %d %v; same memory: %t", i, c, want, k, got, bytes.Equal(now, memory))
			}
		}
		if a, b, c := hosts[1].used(), hosts[2].used(), hosts[3].used(); a != b || a != c {
			t.Fatalf("call %d: fuel %d, %d, interpreted %d", i, a, b, c)
		}
	}
	if traps < 100 || traps > len(calls)-100 {
		t.Errorf("%d of %d calls trap", traps, len(calls))
	}
}

// Between two ticks there is never more than a refill of a memory operation, and a piece.
func TestMemoryOperationsTick(t *testing.T) {
	t.Parallel()
	const slice = 10_000
	h := newHost(t, wazero.NewRuntimeConfigCompiler(), true, slice)
	m, err := h.start(t, "", bulkModule(false))
	if err != nil {
		t.Fatal(err)
	}
	memory, _ := m.Memory().Read(0, memoryBytes)
	last, most := 0, 0
	h.onTick = func(api.Module) {
		filled := bytes.Count(memory, []byte{0xee})
		most, last = max(most, filled-last), filled
	}
	if got := call(m, "fill", 0, 0, memoryBytes); got.trap != "" {
		t.Fatal(got)
	}
	last = 0
	if got := call(m, "fill", 0, 0xee, memoryBytes); got.trap != "" {
		t.Fatal(got)
	}
	if limit := slice*16 + 2*onePiece; most > limit || most == 0 {
		t.Errorf("%d bytes were filled between two ticks; at most %d should be", most, limit)
	}
}

// An operation of a small constant length needs no check where it stands, and is paid.
func TestConstantLengths(t *testing.T) {
	t.Parallel()
	for _, n := range []int32{0, 16, 1024, 1025, 65536, 65537, 200_000} {
		var b wt.Builder
		b.Memory(4)
		b.ExportMemory("memory")
		for name, code := range map[string][]byte{"fill": wt.Ops(0xfc, 11, 0), "copy": wt.Ops(0xfc, 10, 0, 0)} {
			b.ExportFunc(name, b.Func(nil, nil, nil, wt.I32Const(1), wt.I32Const(2), wt.I32Const(n), code))
		}
		module := b.Module()
		h := newHost(t, wazero.NewRuntimeConfigCompiler(), true, 100)
		m, err := h.start(t, fmt.Sprint(n), module)
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range []string{"fill", "copy"} {
			before := h.used()
			if got := call(m, name); got.trap != "" {
				t.Fatal(got)
			}
			if paid, least := h.used()-before, int64(n/16); paid < least || paid > least+8 {
				t.Errorf("%s of %d bytes costs %d units", name, n, paid)
			}
		}
	}
}

// BenchmarkMemoryOperations compares operations of several lengths with the original, in turns, as BenchmarkOverhead does.
func BenchmarkMemoryOperations(b *testing.B) {
	const total = 64 << 20 // bytes in a call
	var m wt.Builder
	m.Memory(memoryPages)
	m.ExportMemory("memory")
	length := m.Global(wt.I32, true, wt.I32Const(0))
	m.Export("length", 3, length)
	loop := func(rounds []byte, code ...[]byte) []byte {
		return wt.Code(wt.Ops(wt.OpLoop, wt.BlockEmpty), wt.Code(code...), wt.LocalGet(0), wt.I32Const(1), wt.Ops(wt.OpI32Add), wt.LocalTee(0), rounds, wt.Ops(wt.OpI32LtU), wt.BrIf(0), wt.Ops(wt.OpEnd))
	}
	rounds := wt.Code(wt.I32Const(total), wt.GlobalGet(length), wt.Ops(0x6e)) // div_u
	fill, move := wt.Ops(0xfc, 11, 0), wt.Ops(0xfc, 10, 0, 0)
	local := []wt.Local{{Count: 1, Type: wt.I32}}
	m.ExportFunc("fill", m.Func(nil, nil, local, loop(rounds, wt.I32Const(0), wt.I32Const(1), wt.GlobalGet(length), fill)))
	m.ExportFunc("copy", m.Func(nil, nil, local, loop(rounds, wt.I32Const(70_000), wt.I32Const(0), wt.GlobalGet(length), move)))
	m.ExportFunc("copy of constant 32", m.Func(nil, nil, local, loop(rounds, wt.I32Const(70_000), wt.I32Const(0), wt.I32Const(32), move)))
	for _, c := range []struct {
		name   string
		length uint64
	}{{"fill", 32}, {"fill", 1024}, {"fill", 400_000}, {"copy", 32}, {"copy", 1024}, {"copy", 400_000}, {"copy of constant 32", 32}} {
		b.Run(fmt.Sprint(c.name, "/", c.length), func(b *testing.B) {
			var mods []api.Module
			for _, metered := range []bool{false, true} {
				mod, err := newHost(b, wazero.NewRuntimeConfigCompiler(), metered, 50_000).start(b, "", m.Module())
				if err != nil {
					b.Fatal(err)
				}
				mod.ExportedGlobal("length").(api.MutableGlobal).Set(c.length)
				mods = append(mods, mod)
			}
			took := turns(b, c.name, mods...)
			b.ReportMetric(float64(took[0].Nanoseconds())*float64(c.length)/total, "ns-original")
			b.ReportMetric(float64(took[1])/float64(took[0]), "metered/original")
			b.ReportMetric(0, "ns/op")
		})
	}
}

package meter_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"

	wt "github.com/taskhost/taskhost/handlers/wasm/wasmtest"
)

// Modules made to run as long as possible between two ticks. They count what they do, and never do more than the package promises.
func TestBetweenTwoTicks(t *testing.T) {
	t.Parallel()
	const slice = 100_000
	const most = 16*slice + 2*65536 + 1000 // instructions
	for name, build := range map[string]func(b *wt.Builder) []byte{
		"sixty functions without a loop, each calling the next twice": tree,
		"work after a recursive call":                                 recursion,
		"work after a recursive call through another function":        mutualRecursion,
		"work after a recursive call through a table":                 tableRecursion,
		"work before a recursive call":                                descent,
		"many calls, with the code between them skipped":              skippedCalls,
		"a long body without a loop":                                  longBody,
		"a loop over a wide table of branches":                        wideTable,
		"nested loops":                                                nestedLoops,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if reduced() && strings.Contains(name, "many calls") {
				t.Skip("takes long to compile")
			}
			b := &wt.Builder{}
			b.Global(wt.I64, true, wt.I64Const(0))
			b.Global(wt.I32, true, wt.I32Const(0)) // always 0, but nothing can know
			b.Export("count", 3, 0)
			b.Export("zero", 3, 1)
			module := build(b)
			h := newHost(t, wazero.NewRuntimeConfigCompiler(), true, slice)
			var last, longest int64
			var pause time.Duration
			at := time.Now()
			enough := errors.New("enough")
			measure := func(m api.Module) {
				count := int64(m.ExportedGlobal("count").Get()) * stepCost
				longest, pause = max(longest, count-last), max(pause, time.Since(at))
				last, at = count, time.Now()
			}
			h.onTick = func(m api.Module) {
				measure(m)
				if h.ticks == 300 {
					panic(enough)
				}
			}
			m, err := h.start(t, "", module)
			if err != nil {
				t.Fatal(err)
			}
			at = time.Now()
			_, err = m.ExportedFunction("run").Call(t.Context())
			if err != nil && !errors.Is(err, enough) {
				t.Fatal(err)
			}
			measure(m) // the end counts as a tick
			if longest > most {
				t.Errorf("%d instructions between two ticks, more than %d", longest, most)
			}
			if h.ticks < 20 {
				t.Errorf("only %d ticks: the module does not do enough", h.ticks)
			}
			t.Logf("%d ticks, at most %d instructions and %v between two", h.ticks, longest, pause)
		})
	}
}

// stepCost is what a step costs.
const stepCost = 4

// steps adds n to the count, one by one.
func steps(n int) []byte {
	one := wt.Code(wt.GlobalGet(0), wt.I64Const(1), wt.Ops(0x7c), wt.GlobalSet(0))
	var out []byte
	for range n {
		out = append(out, one...)
	}
	return out
}

// zero pushes a 0.
func zero() []byte { return wt.GlobalGet(1) }

// times repeats code.
func times(n int, code []byte) []byte {
	var out []byte
	for range n {
		out = append(out, code...)
	}
	return out
}

// run makes this body the exported function.
func run(b *wt.Builder, locals []wt.Local, body ...[]byte) []byte {
	b.ExportFunc("run", b.Func(nil, nil, locals, body...))
	return b.Module()
}

func tree(b *wt.Builder) []byte {
	next := b.Func(nil, nil, nil, steps(10))
	for range 60 {
		next = b.Func(nil, nil, nil, wt.Call(next), wt.Call(next))
	}
	return run(b, nil, wt.Call(next))
}

var i32 = []byte{wt.I32}

// less pushes parameter 0 minus one.
func less() []byte { return wt.Code(wt.LocalGet(0), wt.I32Const(1), wt.Ops(wt.OpI32Sub)) }

// unless0 runs code unless parameter 0 is 0.
func unless0(code ...[]byte) []byte {
	return wt.Code(wt.LocalGet(0), wt.Ops(wt.OpIf, wt.BlockEmpty), wt.Code(code...), wt.Ops(wt.OpEnd))
}

func recursion(b *wt.Builder) []byte {
	b.Func(i32, nil, nil, unless0(less(), wt.Call(0), steps(2000)))
	return run(b, nil, wt.I32Const(20_000), wt.Call(0))
}

func descent(b *wt.Builder) []byte {
	b.Func(i32, nil, nil, unless0(steps(2000), less(), wt.Call(0)))
	return run(b, nil, wt.I32Const(20_000), wt.Call(0))
}

func mutualRecursion(b *wt.Builder) []byte {
	b.Func(i32, nil, nil, unless0(less(), wt.Call(1), steps(500)))
	b.Func(i32, nil, nil, unless0(less(), wt.Call(2), steps(500)))
	b.Func(i32, nil, nil, unless0(less(), wt.Call(0), steps(500)))
	return run(b, nil, wt.I32Const(20_000), wt.Call(0))
}

func tableRecursion(b *wt.Builder) []byte {
	b.Table(1)
	b.Element(0, 0)
	typ := byte(b.Type(i32, nil))
	b.Func(i32, nil, nil, unless0(less(), wt.Call(1), steps(500)))
	b.Func(i32, nil, nil, wt.LocalGet(0), zero(), wt.Ops(wt.OpCallIndirect, typ, 0), steps(500))
	return run(b, nil, wt.I32Const(20_000), wt.Call(0))
}

func skippedCalls(b *wt.Builder) []byte {
	big := b.Func(nil, nil, nil, steps(10_000))
	skipped := wt.Code(zero(), wt.Ops(wt.OpIf, wt.BlockEmpty), steps(3000), wt.Ops(wt.OpEnd))
	all := b.Func(nil, nil, nil, times(200, wt.Code(wt.Call(big), skipped)))
	return run(b, nil, times(20, wt.Call(all)))
}

func longBody(b *wt.Builder) []byte {
	long := b.Func(nil, nil, nil, steps(150_000))
	return run(b, nil, times(200, wt.Call(long)))
}

// wideTable is a loop that passes through all cases of a table, or some of them.
func wideTable(b *wt.Builder) []byte {
	const cases = 300
	table := append(wt.Ops(wt.OpBrTable), wt.Uleb(cases-1)...)
	for i := range uint64(cases) {
		table = append(table, wt.Uleb(i)...)
	}
	body := wt.Code(wt.Ops(wt.OpLoop, wt.BlockEmpty), times(cases, wt.Ops(wt.OpBlock, wt.BlockEmpty)), zero(), table)
	for range cases {
		body = append(append(body, wt.OpEnd), steps(100)...)
	}
	return run(b, nil, body, wt.Ops(wt.OpBr, 0, wt.OpEnd))
}

// nestedLoops are loops of one round around an endless one.
func nestedLoops(b *wt.Builder) []byte {
	body := steps(1)
	for i := range 30 {
		again := zero()
		if i == 0 || i == 29 {
			again = wt.I32Const(1)
		}
		body = wt.Code(wt.Ops(wt.OpLoop, wt.BlockEmpty), body, steps(1), again, wt.BrIf(0), wt.Ops(wt.OpEnd))
	}
	return run(b, nil, body)
}

// Filling memory is paid by its length, before it is done.
func TestFillIsPaidByLength(t *testing.T) {
	t.Parallel()
	const pages, slice = 16, 100_000
	const cost = pages * 65536 / 16
	b := &wt.Builder{}
	b.Memory(pages)
	b.Global(wt.I64, true, wt.I64Const(0))
	b.Export("count", 3, 0)
	fill := wt.Code(steps(1), wt.I32Const(0), wt.I32Const(7), wt.I32Const(pages*65536), wt.Ops(0xfc, 11, 0))
	module := run(b, nil, times(1000, fill))
	h := newHost(t, wazero.NewRuntimeConfigCompiler(), true, slice)
	var last, most int64
	h.onTick = func(m api.Module) {
		count := int64(m.ExportedGlobal("count").Get())
		most, last = max(most, count-last), count
	}
	m, err := h.start(t, "", module)
	if err != nil {
		t.Fatal(err)
	}
	if got := call(m, "run"); got.trap != "" {
		t.Fatal(got)
	}
	if limit := int64(slice/cost + 2); most > limit {
		t.Errorf("%d fills between two ticks, more than %d", most, limit)
	}
	if used := h.used(); used < 1000*cost {
		t.Errorf("1000 fills cost %d units, less than %d", used, 1000*cost)
	}
}

package meter_test

import (
	"fmt"
	"math/rand/v2"

	wt "github.com/taskhost/taskhost/handlers/wasm/wasmtest"
)

// budget is how many loops and functions a call of a generated function enters at most.
const budget = 1500

// Globals of a generated module: what is left of its budget, what it has executed if it counts, and three to play with.
const (
	globalBudget = 0
	globalCount  = 1
	globalFree   = 2
)

// generator writes random valid code. Every loop and function takes one from a budget and traps when there is none left, so
// that all code ends, with or without metering. When it counts, every instruction that costs fuel is preceded by code that
// adds one to a global; this leaves the module otherwise as it is, for the same seed.
type generator struct {
	r     *rand.Rand
	count bool
	types [][2][]byte // of the functions
	code  []byte
	open  []label
	quiet bool // the function calls nothing, and takes nothing from the budget when it is entered
	depth int
}

// label is an open block. A loop's operands are its parameters.
type label struct{ operands []byte }

// Locals of a generated function: two parameters of i32, and these.
const (
	localI32  = 2 // two of them
	localI64  = 4 // two
	localJump = 6 // only the dispatching loop uses it
)

func generate(seed uint64, count bool) []byte {
	g := &generator{r: rand.New(rand.NewPCG(seed, 1)), count: count}
	var b wt.Builder
	b.Memory(3, 4)
	b.Global(wt.I32, true, wt.I32Const(budget))
	b.Global(wt.I64, true, wt.I64Const(0))
	b.Global(wt.I32, true, wt.I32Const(7))
	b.Global(wt.I64, true, wt.I64Const(-9))
	b.Global(wt.I32, true, wt.I32Const(0))
	b.Export("budget", 3, globalBudget)
	b.Export("count", 3, globalCount)
	for i := range 3 {
		b.Export(fmt.Sprint("g", i), 3, uint32(globalFree+i))
	}
	b.ExportMemory("memory")
	results := [][]byte{{}, {wt.I32}, {wt.I64}, {wt.I32, wt.I64}}
	for range 2 + g.r.IntN(6) {
		g.types = append(g.types, [2][]byte{{wt.I32, wt.I32}, results[g.r.IntN(len(results))]})
	}
	for i := range g.types {
		b.Func(g.types[i][0], g.types[i][1], []wt.Local{{Count: 2, Type: wt.I32}, {Count: 2, Type: wt.I64}, {Count: 1, Type: wt.I32}}, g.function(g.types[i][1]))
		if g.r.IntN(3) > 0 || i == 0 {
			b.ExportFunc(fmt.Sprint("f", i), uint32(i))
		}
	}
	b.Table(uint32(len(g.types)) + 1)
	for i := range g.types {
		b.Element(int32(i), uint32(i))
	}
	b.PassiveData([]byte("some passive data"))
	return b.Module()
}

// op writes an instruction that costs one unit.
func (g *generator) op(code ...byte) {
	g.add(1)
	g.code = append(g.code, code...)
}

func (g *generator) ops(code []byte) { g.op(code...) }

// add counts.
func (g *generator) add(n int64) {
	if g.count {
		g.free(wt.GlobalGet(globalCount)...)
		g.free(wt.I64Const(n)...)
		g.free(0x7c)
		g.free(wt.GlobalSet(globalCount)...)
	}
}

// free writes an instruction that costs nothing.
func (g *generator) free(code ...byte) { g.code = append(g.code, code...) }

func (g *generator) function(results []byte) []byte {
	g.code, g.open, g.depth = nil, []label{{results}}, 0
	g.quiet = g.r.IntN(4) == 0
	if g.quiet { // it may be a leaf
		g.depth = 4
	} else {
		g.spend()
	}
	g.statements(4)
	for _, t := range results {
		g.value(t)
	}
	return g.code
}

// spend takes one from the budget.
func (g *generator) spend() {
	g.ops(wt.GlobalGet(globalBudget))
	g.ops(wt.I32Const(1))
	g.op(wt.OpI32Sub)
	g.ops(wt.GlobalSet(globalBudget))
	g.ops(wt.GlobalGet(globalBudget))
	g.op(wt.OpI32Eqz)
	g.op(wt.OpIf, wt.BlockEmpty)
	g.op(wt.OpUnreachable)
	g.free(wt.OpEnd)
}

func (g *generator) statements(most int) {
	for range 1 + g.r.IntN(most) {
		g.statement()
	}
}

func (g *generator) nested(operands []byte, write func()) {
	g.open = append(g.open, label{operands})
	g.depth++
	write()
	g.depth--
	g.open = g.open[:len(g.open)-1]
}

func (g *generator) statement() {
	if g.depth > 4 {
		g.set()
		return
	}
	switch g.r.IntN(16) {
	case 0, 1:
		g.set()
	case 2: // if
		g.value(wt.I32)
		g.op(wt.OpIf, wt.BlockEmpty)
		g.nested(nil, func() {
			g.statements(3)
			if g.r.IntN(2) == 0 {
				g.free(wt.OpElse)
				g.statements(3)
			}
		})
		g.free(wt.OpEnd)
	case 3: // block
		g.free(wt.OpBlock, wt.BlockEmpty)
		g.nested(nil, func() { g.statements(4) })
		g.free(wt.OpEnd)
	case 4, 5:
		g.loop()
	case 6, 7:
		g.branch()
	case 8:
		g.call()
	case 9:
		g.store()
	case 10:
		g.table()
	case 11:
		g.dispatch()
	case 12:
		g.bulk()
	case 13:
		if g.r.IntN(4) == 0 {
			for _, t := range g.open[0].operands {
				g.value(t)
			}
			g.op(wt.OpReturn)
		}
	default:
		g.set()
	}
}

func (g *generator) set() {
	switch g.r.IntN(4) {
	case 0:
		g.value(wt.I32)
		g.ops(wt.LocalSet(uint32(g.r.IntN(4))))
	case 1:
		g.value(wt.I64)
		g.ops(wt.LocalSet(uint32(localI64 + g.r.IntN(2))))
	case 2:
		g.value(wt.I32)
		g.ops(wt.GlobalSet(globalFree))
	case 3:
		g.value(wt.I64)
		g.ops(wt.GlobalSet(globalFree + 1))
	}
}

// value leaves a value of that type.
func (g *generator) value(t byte) {
	if g.depth > 5 || g.r.IntN(3) == 0 {
		g.simple(t)
		return
	}
	g.depth++
	defer func() { g.depth-- }()
	switch g.r.IntN(8) {
	case 0: // a block that a branch may leave with the value
		g.free(wt.OpBlock, t)
		g.nested([]byte{t}, func() {
			g.value(t)
			if g.r.IntN(2) == 0 {
				g.value(wt.I32)
				g.ops(wt.BrIf(0))
			}
		})
		g.free(wt.OpEnd)
	case 1:
		g.value(wt.I32)
		g.op(wt.OpIf, t)
		g.nested([]byte{t}, func() {
			g.value(t)
			g.free(wt.OpElse)
			g.statements(2)
			g.value(t)
		})
		g.free(wt.OpEnd)
	case 2:
		g.value(t)
		g.value(t)
		g.value(wt.I32)
		g.op(0x1b) // select
	case 3: // wrap and extend
		if t == wt.I32 {
			g.value(wt.I64)
			g.op(wt.OpI32WrapI64)
		} else {
			g.value(wt.I32)
			g.op(wt.OpI64ExtendI32)
		}
	default:
		g.value(t)
		g.value(t)
		base := byte(0x6a) // add, sub, mul, div_s, div_u, …
		if t == wt.I64 {
			base = 0x7c
		}
		g.op(base + byte(g.r.IntN(15)))
	}
}

func (g *generator) simple(t byte) {
	n := g.r.IntN(3)
	switch {
	case n == 0 && t == wt.I32:
		g.ops(wt.I32Const(int32(g.r.Uint32()) >> g.r.IntN(32)))
	case n == 0:
		g.ops(wt.I64Const(int64(g.r.Uint64()) >> g.r.IntN(64)))
	case n == 1 && t == wt.I32:
		g.ops(wt.LocalGet(uint32(g.r.IntN(4))))
	case n == 1:
		g.ops(wt.LocalGet(uint32(localI64 + g.r.IntN(2))))
	case t == wt.I32:
		g.ops(wt.GlobalGet(globalFree))
	default:
		g.ops(wt.GlobalGet(globalFree + 1))
	}
}

// loop writes a loop, with or without a parameter that it passes on.
func (g *generator) loop() {
	if g.r.IntN(3) > 0 {
		g.free(wt.OpLoop, wt.BlockEmpty)
		g.nested(nil, func() {
			g.spend()
			g.statements(3)
			if g.r.IntN(2) == 0 {
				g.value(wt.I32)
				g.ops(wt.BrIf(0))
			}
		})
		g.free(wt.OpEnd)
		return
	}
	// The type of function 0, (i32 i32) -> results, is the loop's: its results are dropped.
	g.value(wt.I32)
	g.value(wt.I32)
	g.free(wt.OpLoop, 0)
	g.nested([]byte{wt.I32, wt.I32}, func() {
		g.ops(wt.LocalSet(localI32))
		g.ops(wt.LocalSet(localI32 + 1))
		g.spend()
		g.statements(2)
		g.ops(wt.LocalGet(localI32))
		g.ops(wt.LocalGet(localI32 + 1))
		g.value(wt.I32)
		g.ops(wt.BrIf(0))
		g.op(wt.OpDrop)
		g.op(wt.OpDrop)
		for _, t := range g.types[0][1] {
			g.value(t)
		}
	})
	g.free(wt.OpEnd)
	for range g.types[0][1] {
		g.op(wt.OpDrop)
	}
}

// branch writes a br or br_if to any label.
func (g *generator) branch() {
	l := g.r.IntN(len(g.open))
	operands := g.open[len(g.open)-1-l].operands
	for _, t := range operands {
		g.value(t)
	}
	if g.r.IntN(3) == 0 { // what follows is dead code
		g.ops(wt.Br(uint32(l)))
		return
	}
	g.value(wt.I32)
	g.ops(wt.BrIf(uint32(l)))
	for range operands {
		g.op(wt.OpDrop)
	}
}

// table writes a br_table to labels without operands.
func (g *generator) table() {
	var labels []byte
	for i := range g.open {
		if len(g.open[len(g.open)-1-i].operands) == 0 {
			labels = append(labels, byte(i))
		}
	}
	if len(labels) == 0 || len(g.open) > 100 {
		return
	}
	g.value(wt.I32)
	n := g.r.IntN(4)
	code := []byte{wt.OpBrTable, byte(n)}
	for range n + 1 {
		code = append(code, labels[g.r.IntN(len(labels))])
	}
	g.op(code...)
}

// dispatch writes code as Go's compiler does: basic blocks in a loop, chosen by a local.
func (g *generator) dispatch() {
	n := 2 + g.r.IntN(4)
	g.value(wt.I32)
	g.ops(wt.LocalSet(localJump))
	g.free(wt.OpBlock, wt.BlockEmpty)
	g.free(wt.OpLoop, wt.BlockEmpty)
	for range n {
		g.free(wt.OpBlock, wt.BlockEmpty)
	}
	g.ops(wt.LocalGet(localJump))
	code := []byte{wt.OpBrTable, byte(n)}
	for i := range n {
		code = append(code, byte(i))
	}
	g.op(append(code, byte(n-1+2*g.r.IntN(2)))...)
	for i := range n {
		g.free(wt.OpEnd)
		g.spend()
		saved := g.open
		for range n - i - 1 + 2 {
			g.open = append(g.open, label{})
		}
		g.depth += 2
		g.statements(2)
		for range g.r.IntN(3) {
			g.value(wt.I32)
			g.op(wt.OpIf, wt.BlockEmpty)
			g.jump(g.r.IntN(n+2), n-i)
			g.free(wt.OpEnd)
		}
		g.depth -= 2
		g.open = saved
	}
	if g.r.IntN(2) == 0 {
		g.jump(g.r.IntN(n+2), -1)
	} else {
		g.ops(wt.Br(1))
	}
	g.free(wt.OpEnd, wt.OpEnd)
}

// jump jumps to a basic block through the loop, which is the label depth, inside an if, or 0 when depth is negative.
func (g *generator) jump(block, depth int) {
	g.ops(wt.I32Const(int32(block)))
	g.ops(wt.LocalSet(localJump))
	g.ops(wt.Br(uint32(max(depth, 0))))
}

func (g *generator) call() {
	if g.quiet {
		return
	}
	callee := g.r.IntN(len(g.types))
	g.value(wt.I32)
	g.value(wt.I32)
	if g.r.IntN(3) == 0 {
		g.ops(wt.I32Const(int32(g.r.IntN(len(g.types) + 2))))
		g.add(7) // it costs 8
		g.op(append(append([]byte{wt.OpCallIndirect}, wt.Uleb(uint64(g.typeIndex(callee)))...), 0)...)
	} else {
		g.ops(wt.Call(uint32(callee)))
	}
	for range g.types[callee][1] {
		g.op(wt.OpDrop)
	}
}

// typeIndex is the index that the Builder gave to the type of a function.
func (g *generator) typeIndex(fn int) int {
	seen := map[string]int{}
	for i := range g.types {
		key := string(g.types[i][1])
		if _, ok := seen[key]; !ok {
			seen[key] = len(seen)
		}
		if i == fn {
			return seen[key]
		}
	}
	panic("no such function")
}

func (g *generator) store() {
	g.value(wt.I32)
	if g.r.IntN(4) > 0 { // mostly in bounds
		g.ops(wt.I32Const(0xffff))
		g.op(0x71)
	}
	g.value(wt.I32)
	g.ops(wt.I32Store(uint32(g.r.IntN(4))))
}

func (g *generator) bulk() {
	small := func() {
		g.value(wt.I32)
		g.ops(wt.I32Const(0x3ff))
		g.op(0x71)
	}
	if g.r.IntN(3) == 0 { // more than a page, mostly in bounds
		small = func() {
			g.value(wt.I32)
			g.ops(wt.I32Const(0x1ffff))
			g.op(0x71)
		}
	}
	small()
	small()
	switch g.r.IntN(4) {
	case 0:
		small()
		g.op(0xfc, 11, 0) // memory.fill
	case 1:
		small()
		g.op(0xfc, 10, 0, 0) // memory.copy
	case 2:
		if g.r.IntN(2) == 0 {
			small()
		} else {
			g.ops(wt.I32Const(int32(g.r.IntN(20))))
		}
		g.op(0xfc, 8, 0, 0) // memory.init
	case 3:
		g.op(wt.OpDrop)
		g.op(wt.OpDrop)
		g.ops(wt.I32Const(int32(g.r.IntN(2))))
		g.add(63)     // it costs 64
		g.op(0x40, 0) // memory.grow
		g.op(wt.OpDrop)
	}
}

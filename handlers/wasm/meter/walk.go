package meter

import (
	"fmt"

	"github.com/taskhost/taskhost/handlers/wasm/wasmbin"
)

// maxLocals bounds parameters and locals of one function, the added ones included (the engines' own limit is 50,000).
const maxLocals = 50_000

// plan is what one body needs.
type plan struct {
	code     int // offset of the first instruction in the body
	groups   int // offset of the local groups
	declared uint32
	locals   uint32 // with the parameters
	edits    []edit // by offset
	calls    []int  // of defined functions, as they come
	imported bool   // it calls an imported function
	indirect bool   // it calls through a table
	bulk     bool   // it has an operation that is charged by its length
	loops    []loop
	backs    int   // backward jumps
	checks   int   // other checks in the code
	work     int64 // cost of all its instructions
	entry    int64 // what a call costs
	tail     int64 // the most that can run between the last check and the return
	due      int64 // and what then is due of the debt
}

// loop is a loop that something may jump back to.
type loop struct {
	parent int  // -1 for none
	loud   bool // something in it other than its own jumps may change the fuel
	backs  int  // backward jumps inside
}

// edit is one place where the body changes: [at, to) is replaced.
type edit struct {
	at, to int
	kind   editKind
	arg    uint32
	charge int64
	loop   int // innermost loop around it, -1 for none
}

type editKind uint8

const (
	editIndex  editKind = iota // arg: function index, shifted, or label
	editLoop                   // before a loop; arg: its number
	editBr                     // br backward; arg: label
	editBrIf                   // br_if backward, without operands; arg: label
	editCharge                 // before another instruction that may jump backward
	editCheck                  // a check that charges nothing
	editBulk                   // arg: bytesPerUnitShift or 0
)

// frame is an open block.
type frame struct {
	op       byte  // 0: the function
	params   bool  // a loop that takes operands
	loop     int   // innermost loop
	start    mark  // of a loop
	skipped  bool  // a forward jump to its end was passed
	from     mark  // at the first of them
	run, due int64 // the most of walk.run and walk.due where one of them is
	dispatch *dispatch
}

// dispatch is a loop that begins with a br_table over a local in nested blocks: the way a compiler without structured control
// flow, such as Go's, jumps. "i32.const; local.set; br" to such a loop is a jump to the end of one of the blocks.
type dispatch struct {
	base    int // depth of the loop
	local   uint32
	targets []int32 // depths of the targets, the default last
	landed  []mark  // of the ends of the blocks at depth base+1…; valid when closed
}

// walk goes through the instructions of a body.
type walk struct {
	*plan
	m       *module
	g       *graph // nil in the first walk
	open    []frame
	now     mark
	run     int64 // the most that can have run since a check; 0 in dead code
	deep    bool  // the function is a part of a cycle of calls, or calls one that is
	due     int64 // the most that a deep function can have run of what it paid before; see debt
	pending int   // open frames that are skipped

	opening int // depth of the loop of which only blocks have been passed since, or -1
	last    [2]wasmbin.Instr
	value   uint32 // of the i32.const before the last instruction
}

// analyse plans the rewriting of one body.
func (m *module) analyse(body []byte, params uint32, g *graph, deep bool) (*plan, error) {
	p := &plan{locals: params}
	r := wasmbin.NewReader(body)
	p.readLocals(r)
	p.code = r.Pos()
	w := &walk{plan: p, m: m, g: g, deep: deep, open: []frame{{loop: -1}}, opening: -1}
	for in := (wasmbin.Instr{}); r.Err() == nil && len(w.open) > 0; {
		r.Instr(&in)
		if r.Err() == nil {
			w.step(&in, body)
		}
	}
	if r.Err() == nil && !r.Done() {
		r.Fail("code after the end of the function")
	}
	p.work, p.tail, p.due = w.now.full, w.run, w.due
	p.entry = max((p.entry+conditional-1)/conditional, 1)
	return p, r.Err()
}

func (p *plan) readLocals(r *wasmbin.Reader) {
	p.declared = r.Count()
	p.groups = r.Pos()
	total := uint64(p.locals)
	for n := p.declared; n > 0 && r.Err() == nil; n-- {
		total += uint64(r.U32())
		r.Byte()
	}
	if total > maxLocals-2 {
		r.Fail(fmt.Sprintf("%d parameters and locals, at most %d are allowed", total, maxLocals-2))
		return
	}
	p.locals = uint32(total)
}

func (w *walk) step(in *wasmbin.Instr, body []byte) {
	cost := instrCost(in)
	if in.Op == wasmbin.OpCall && w.g != nil {
		if i := w.m.defined(in.Index); i >= 0 {
			cost += w.g.leaves[i]
		}
	}
	w.now.pass(cost)
	if w.pending == 0 {
		w.entry += cost * conditional
	} else {
		w.entry += cost
	}
	w.run += instrCost(in)
	w.owe(instrCost(in))
	if w.run > uncheckedRun || w.due > debt {
		w.check(in.At)
	}
	w.visit(in, body)
	w.last[1], w.last[0] = w.last[0], *in
}

// check puts a check before the byte at that offset, which pays what is due.
func (w *walk) check(at int) {
	ed := edit{at: at, to: at, kind: editCheck, loop: w.loop()}
	if w.due > 0 {
		ed.kind, ed.charge = editCharge, w.pay()
	}
	w.edits = append(w.edits, ed)
	w.checks++
	w.run, w.due = 0, 0
}

// owe adds to what is due.
func (w *walk) owe(cost int64) {
	if w.deep {
		w.due += cost
	}
}

// pay is the charge for what is due.
func (w *walk) pay() int64 { return (w.due + conditional - 1) / conditional }

// again is the charge for a jump back to start. When there are calls of deep functions between, it pays what is due, too.
func (w *walk) again(start mark) int64 {
	charge := start.charge(w.now)
	if w.now.deep > start.deep {
		charge += w.pay()
	}
	return charge
}

// leave is where code goes on no further.
func (w *walk) leave() { w.run, w.due = 0, 0 }

// loop is the innermost loop.
func (w *walk) loop() int { return w.open[len(w.open)-1].loop }

// visit notes what an instruction needs.
func (w *walk) visit(in *wasmbin.Instr, body []byte) {
	opening := w.opening
	w.opening = -1
	top := &w.open[len(w.open)-1]
	switch in.Op {
	case wasmbin.OpBlock:
		w.open = append(w.open, frame{op: in.Op, loop: top.loop})
		if in.Block == noType {
			w.opening = opening
		}
	case wasmbin.OpIf:
		w.open = append(w.open, frame{op: in.Op, loop: top.loop})
		w.skip(len(w.open) - 1)
	case wasmbin.OpElse:
		w.now.land(top.from)
		top.from = w.now
		w.run, top.run = top.run, max(top.run, w.run)
		w.due, top.due = top.due, max(top.due, w.due)
	case wasmbin.OpLoop:
		w.insert(in.At, editLoop, uint32(len(w.loops)))
		w.loops = append(w.loops, loop{parent: top.loop})
		w.open = append(w.open, frame{op: in.Op, loop: len(w.loops) - 1, params: in.Block >= 0, start: w.now})
		if in.Block == noType {
			w.opening = len(w.open) - 1
		}
	case wasmbin.OpEnd:
		w.end(top)
	case wasmbin.OpLocalGet:
		w.opening = opening
	case wasmbin.OpBr:
		w.br(in)
		w.leave()
	case wasmbin.OpBrIf:
		w.brIf(in)
	case wasmbin.OpBrTable:
		w.brTable(in, opening)
	case wasmbin.OpReturn:
		w.skip(0)
		w.leave()
	case wasmbin.OpUnreachable:
		w.leave()
	case wasmbin.OpCall:
		w.edits = append(w.edits, edit{at: in.IndexAt, to: in.IndexTo, kind: editIndex, arg: w.m.shift(in.Index)})
		w.call(in)
	case wasmbin.OpCallIndirect:
		w.indirect = true
		w.loud()
		w.now.deep++
		w.owe(debt)
		w.check(in.End)
	case wasmbin.OpRefFunc:
		w.edits = append(w.edits, edit{at: in.IndexAt, to: in.IndexTo, kind: editIndex, arg: w.m.shift(in.Index)})
	case wasmbin.OpI32Const:
		r := wasmbin.NewReader(body[in.At+1 : in.End])
		w.value = uint32(r.S33())
	case wasmbin.OpMisc:
		w.misc(in)
	}
}

// call notes a direct call. A check stands behind one that closes a cycle of calls: the way back up passes no entry.
func (w *walk) call(in *wasmbin.Instr) {
	i := w.m.defined(in.Index)
	switch {
	case i < 0:
		w.imported = true
	case w.g == nil:
		w.calls = append(w.calls, i)
	case w.g.leaves[i] > 0:
		w.run += w.g.work[i]
		w.owe(w.g.work[i])
		return
	case w.g.state[i] != done:
		w.now.deep++
		w.owe(debt)
		w.check(in.End)
	default:
		if w.g.deep[i] {
			w.now.deep++
		}
		if w.g.checked[i] {
			w.run = 0
		} else {
			w.run += w.g.work[i]
		}
		w.run = max(w.run, w.g.tail[i])
		w.owe(w.g.due[i])
	}
	w.loud()
}

// skip notes a forward jump to the end of the frame at that depth.
func (w *walk) skip(depth int) {
	if depth < 0 {
		return
	}
	f := &w.open[depth]
	if !f.skipped {
		f.skipped, f.from = true, w.now
		w.pending++
	}
	f.run, f.due = max(f.run, w.run), max(f.due, w.due)
}

func (w *walk) end(top *frame) {
	if top.skipped {
		w.now.land(top.from)
		w.pending--
	}
	w.run, w.due = max(w.run, top.run), max(w.due, top.due)
	n := len(w.open) - 1
	if d := top.dispatch; d != nil && n > d.base {
		d.landed[n-d.base-1] = w.now
	}
	if top.op == wasmbin.OpLoop {
		l := w.loops[top.loop]
		if l.parent >= 0 {
			w.loops[l.parent].loud = w.loops[l.parent].loud || l.loud
			w.loops[l.parent].backs += l.backs
		}
	}
	w.open = w.open[:n]
}

func (w *walk) loud() {
	if l := w.loop(); l >= 0 {
		w.loops[l].loud = true
	}
}

// depth is the depth of a label.
func (w *walk) depth(label uint32) int { return len(w.open) - 1 - int(label) }

func (w *walk) isLoop(depth int) bool { return depth >= 0 && w.open[depth].op == wasmbin.OpLoop }

func (w *walk) back(in *wasmbin.Instr, kind editKind, label uint32, charge int64) {
	at, to := in.At, in.At
	if kind != editCharge {
		to = in.End
	}
	l := w.loop()
	w.edits = append(w.edits, edit{at: at, to: to, kind: kind, arg: label, charge: charge, loop: l})
	w.backs++
	w.loops[l].backs++
}

func (w *walk) br(in *wasmbin.Instr) {
	depth := w.depth(in.Index)
	if !w.isLoop(depth) {
		w.skip(depth)
		return
	}
	start := w.open[depth].start
	if target, landed, ok := w.jump(depth); ok {
		if target >= 0 {
			label := uint32(len(w.open) - 1 - target)
			if !w.isLoop(target) {
				w.edits = append(w.edits, edit{at: in.IndexAt, to: in.IndexTo, kind: editIndex, arg: label})
				w.skip(target)
				return
			}
			w.back(in, editBr, label, w.again(w.open[target].start))
			return
		}
		start = landed
	}
	w.back(in, editBr, in.Index, w.again(start))
}

// jump resolves a br to the dispatching loop at that depth: to the depth of the frame it leaves or repeats, or, when
// that is closed, to -1 and the place where it was.
func (w *walk) jump(depth int) (int, mark, bool) {
	d := w.open[depth].dispatch
	if d == nil || d.base != depth || w.last[0].Op != wasmbin.OpLocalSet || w.last[0].Index != d.local || w.last[1].Op != wasmbin.OpI32Const {
		return 0, mark{}, false
	}
	target := int(d.targets[min(w.value, uint32(len(d.targets)-1))])
	if target <= d.base || target < len(w.open) && w.open[target].dispatch == d {
		return target, mark{}, target >= 0
	}
	return -1, d.landed[target-d.base-1], true
}

func (w *walk) brIf(in *wasmbin.Instr) {
	depth := w.depth(in.Index)
	switch {
	case !w.isLoop(depth):
		w.skip(depth)
	case w.open[depth].params:
		w.back(in, editCharge, 0, w.again(w.open[depth].start))
	default:
		w.back(in, editBrIf, in.Index, w.again(w.open[depth].start))
	}
}

func (w *walk) brTable(in *wasmbin.Instr, opening int) {
	charge := int64(0)
	dispatching := opening >= 0 && w.last[0].Op == wasmbin.OpLocalGet
	var d *dispatch
	if dispatching {
		n := len(w.open)
		d = &dispatch{base: opening, local: w.last[0].Index, landed: make([]mark, n-1-opening)}
		for i := opening; i < n; i++ {
			w.open[i].dispatch = d
		}
	}
	in.EachTarget(func(label uint32, _, _ int) {
		depth := w.depth(label)
		if d != nil {
			d.targets = append(d.targets, int32(depth))
		}
		if w.isLoop(depth) {
			charge = max(charge, w.again(w.open[depth].start))
		} else if d == nil || depth < d.base {
			w.skip(depth)
		} else {
			f := &w.open[depth]
			f.run, f.due = max(f.run, w.run), max(f.due, w.due)
		}
	})
	if charge > 0 {
		w.back(in, editCharge, 0, charge)
	}
	w.leave()
}

func (w *walk) misc(in *wasmbin.Instr) {
	switch in.Sub {
	case wasmbin.MiscMemoryInit, wasmbin.MiscMemoryCopy, wasmbin.MiscMemoryFill:
		w.bulk = true
		w.insert(in.At, editBulk, bytesPerUnitShift)
		w.loud()
	case wasmbin.MiscTableInit, wasmbin.MiscTableCopy, wasmbin.MiscTableFill, wasmbin.MiscTableGrow:
		w.bulk = true
		w.insert(in.At, editBulk, 0)
		w.loud()
	}
}

func (w *walk) insert(at int, kind editKind, arg uint32) {
	w.edits = append(w.edits, edit{at: at, to: at, kind: kind, arg: arg, loop: -1})
}

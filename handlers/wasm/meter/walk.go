package meter

import "github.com/taskhost/taskhost/handlers/wasm/wasmbin"

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

// step takes one instruction: what it costs, then what it needs.
func (w *walk) step(in *wasmbin.Instr, body []byte) {
	own := instrCost(in)
	if more, ok := w.folded(in); ok {
		own += more
	}
	cost := own
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
	w.run += own
	w.owe(own)
	if w.run > uncheckedRun || w.due > debt {
		w.check(in.At)
	}
	w.visit(in, body)
	w.last[1], w.last[0] = w.last[0], *in
}

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
		w.callIndirect(in)
	case wasmbin.OpRefFunc:
		w.edits = append(w.edits, edit{at: in.IndexAt, to: in.IndexTo, kind: editIndex, arg: w.m.shift(in.Index)})
	case wasmbin.OpI32Const:
		r := wasmbin.NewReader(body[in.At+1 : in.End])
		w.value = uint32(r.S33())
	case wasmbin.OpMisc:
		w.misc(in)
	}
}

// end closes the innermost block.
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

// misc notes the operations that are charged by their length.
func (w *walk) misc(in *wasmbin.Instr) {
	switch in.Sub {
	case wasmbin.MiscMemoryInit, wasmbin.MiscMemoryCopy, wasmbin.MiscMemoryFill:
		if _, ok := w.folded(in); ok {
			return
		}
		w.bulk = true
		w.memories++
		segment := uint32(0)
		if in.Sub == wasmbin.MiscMemoryInit {
			segment = in.Index
		}
		w.edits = append(w.edits, edit{at: in.At, to: in.End, kind: editMemory, arg: in.Sub, segment: segment, loop: -1})
		w.loud()
	case wasmbin.MiscTableInit, wasmbin.MiscTableCopy, wasmbin.MiscTableFill, wasmbin.MiscTableGrow:
		w.bulk = true
		w.insert(in.At, editTable, 0)
		w.loud()
	}
}

func (w *walk) insert(at int, kind editKind, arg uint32) {
	w.edits = append(w.edits, edit{at: at, to: at, kind: kind, arg: arg, loop: -1})
}

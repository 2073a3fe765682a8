package meter

import "github.com/taskhost/taskhost/handlers/wasm/wasmbin"

// dispatch is a loop that begins with a br_table over a local in nested blocks: the way a compiler without structured control
// flow, such as Go's, jumps. "i32.const; local.set; br" to such a loop is a jump to the end of one of the blocks.
type dispatch struct {
	base    int // depth of the loop
	local   uint32
	targets []int32 // depths of the targets, the default last
	landed  []mark  // of the ends of the blocks at depth base+1…; valid when closed
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

// depth is the depth of a label.
func (w *walk) depth(label uint32) int { return len(w.open) - 1 - int(label) }

func (w *walk) isLoop(depth int) bool { return depth >= 0 && w.open[depth].op == wasmbin.OpLoop }

// back notes a jump backward.
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

// br notes a branch. One to a dispatching loop is made a jump to where the loop would send it, when that lies ahead.
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

// brIf notes a conditional branch.
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

// brTable notes a branch by a table, the dispatching one of a loop included.
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
			d.targets = append(d.targets, int32(max(depth, -1))) // -1: a label of an invalid module, which may be any number
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

package meter

import "github.com/taskhost/taskhost/handlers/wasm/wasmbin"

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

// callIndirect notes a call through a table. It may close a cycle of calls, too.
func (w *walk) callIndirect(in *wasmbin.Instr) {
	w.indirect = true
	w.loud()
	w.now.deep++
	w.owe(debt)
	w.check(in.End)
}

// loud notes that something in the loop may change the fuel.
func (w *walk) loud() {
	if l := w.loop(); l >= 0 {
		w.loops[l].loud = true
	}
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

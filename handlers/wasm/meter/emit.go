package meter

import "github.com/taskhost/taskhost/handlers/wasm/wasmbin"

// bodyWriter rewrites one body.
//
// A loop that is quiet, in which nothing but its own jumps changes the fuel, keeps it in a local besides: a jump then need not
// wait for the global. The global is always right, so that nothing must be done where the loop is left.
type bodyWriter struct {
	*plan
	m        *module
	checked  bool   // the entry has a check
	leaf     bool   // the callers pay for a call
	quiet    []bool // of each loop
	fuel     uint32 // index of the added i64 local
	length   uint32 // index of the added i32 local
	operands uint32 // index of two more of them, for memory operations
	steps    []byte // for the Map
}

// body appends the rewritten body to out, which is empty.
func (w *bodyWriter) body(out, body []byte) []byte {
	w.quiet = make([]bool, len(w.loops))
	for i, l := range w.loops {
		w.quiet[i] = w.isQuiet(l.parent) || !l.loud && l.backs > 0
	}
	out = w.entryCharge(w.localDecls(out, body))
	w.steps = appendStep(nil, 0, w.code, len(out))
	from := w.code
	for i := range w.edits {
		ed := &w.edits[i]
		out = append(out, body[from:ed.at]...)
		n := len(out)
		out = w.edit(out, ed)
		if len(out)-n != 0 || ed.to != ed.at {
			w.steps = appendStep(w.steps, ed.at-from, ed.to-ed.at, len(out)-n)
			from = ed.to
			continue
		}
		out = out[:n-(ed.at-from)]
	}
	return append(out, body[from:]...)
}

func (w *bodyWriter) localDecls(out, body []byte) []byte {
	var added []byte
	w.fuel, w.length, w.operands = w.locals, w.locals+1, w.locals+2
	if w.checked || w.bulk || w.backs > 0 || w.checks > 0 {
		added = append(added, 1, wasmbin.I64)
	}
	switch {
	case w.memories > 0 && w.memories <= mostInline:
		added = append(added, 3, wasmbin.I32)
	case w.bulk:
		added = append(added, 1, wasmbin.I32)
	}
	out = wasmbin.AppendU32(out, w.declared+uint32(len(added)/2))
	return append(append(out, body[w.groups:w.code]...), added...)
}

func (w *bodyWriter) entryCharge(out []byte) []byte {
	if w.leaf {
		return out
	}
	if w.checked {
		return w.tick(w.charge(out, w.entry, false), false)
	}
	out = w.op(out, wasmbin.OpGlobalGet, w.m.fuel)
	out = wasmbin.AppendS64(append(out, wasmbin.OpI64Const), w.entry)
	return w.op(append(out, opI64Sub), wasmbin.OpGlobalSet, w.m.fuel)
}

func (w *bodyWriter) edit(out []byte, ed *edit) []byte {
	switch ed.kind {
	case editIndex:
		return wasmbin.AppendU32(out, ed.arg)
	case editLoop:
		if w.quiet[ed.arg] && !w.isQuiet(w.loops[ed.arg].parent) {
			return w.load(out)
		}
	case editBr:
		return w.repeat(out, ed, ed.arg)
	case editBrIf:
		out = append(out, wasmbin.OpIf, blockVoid)
		return append(w.repeat(out, ed, ed.arg+1), wasmbin.OpEnd)
	case editCharge:
		q := w.isQuiet(ed.loop)
		return w.tick(w.charge(out, ed.charge, q), q)
	case editCheck:
		out = w.op(out, wasmbin.OpGlobalGet, w.m.fuel)
		return w.tick(append(out, wasmbin.OpI64Const, 0, opI64GeS), w.isQuiet(ed.loop))
	case editTable:
		out = w.chargeLength(w.op(out, wasmbin.OpLocalSet, w.length), 0)
		return w.op(out, wasmbin.OpLocalGet, w.length)
	case editMemory:
		return w.memory(out, pieces{sub: ed.arg, segment: ed.segment})
	}
	return out
}

func (w *bodyWriter) isQuiet(loop int) bool { return loop >= 0 && w.quiet[loop] }

const (
	opI32LtU        = 0x49
	opI32GtU        = 0x4b
	opI64GtU        = 0x56
	opI64GeS        = 0x59
	opI32Add        = 0x6a
	opI32Sub        = 0x6b
	opI64Add        = 0x7c
	opI64Sub        = 0x7d
	opI64Shl        = 0x86
	opI64ShrU       = 0x88
	opI64ExtendI32U = 0xad
	blockVoid       = 0x40
)

func (w *bodyWriter) load(out []byte) []byte {
	return w.op(w.op(out, wasmbin.OpGlobalGet, w.m.fuel), wasmbin.OpLocalSet, w.fuel)
}

// charge lowers the fuel and leaves whether there is some left.
func (w *bodyWriter) charge(out []byte, cost int64, quiet bool) []byte {
	if quiet {
		out = w.op(out, wasmbin.OpLocalGet, w.fuel)
	} else {
		out = w.op(out, wasmbin.OpGlobalGet, w.m.fuel)
	}
	return w.subtract(wasmbin.AppendS64(append(out, wasmbin.OpI64Const), cost))
}

func (w *bodyWriter) subtract(out []byte) []byte {
	out = w.op(append(out, opI64Sub), wasmbin.OpLocalTee, w.fuel)
	out = w.op(out, wasmbin.OpGlobalSet, w.m.fuel)
	out = w.op(out, wasmbin.OpLocalGet, w.fuel)
	return append(out, wasmbin.OpI64Const, 0, opI64GeS)
}

// repeat jumps backward, after a tick when the fuel is used up.
func (w *bodyWriter) repeat(out []byte, ed *edit, label uint32) []byte {
	q := w.isQuiet(ed.loop)
	out = w.op(w.charge(out, ed.charge, q), wasmbin.OpBrIf, label)
	out = w.op(out, wasmbin.OpCall, w.m.tick)
	if q {
		out = w.load(out)
	}
	return w.op(out, wasmbin.OpBr, label)
}

// tick calls tick unless there is fuel left, which is on the stack.
func (w *bodyWriter) tick(out []byte, load bool) []byte {
	out = append(out, wasmbin.OpIf, blockVoid, wasmbin.OpElse)
	out = w.op(out, wasmbin.OpCall, w.m.tick)
	if load {
		out = w.load(out)
	}
	return append(out, wasmbin.OpEnd)
}

// chargeLength charges an operation for its length, which is in the local.
func (w *bodyWriter) chargeLength(out []byte, shift uint32) []byte {
	out = w.op(out, wasmbin.OpGlobalGet, w.m.fuel)
	out = append(w.op(out, wasmbin.OpLocalGet, w.length), opI64ExtendI32U)
	if shift > 0 {
		out = append(out, wasmbin.OpI64Const, byte(shift), opI64ShrU)
	}
	return w.tick(w.subtract(out), false)
}

func (*bodyWriter) op(out []byte, op byte, index uint32) []byte {
	return wasmbin.AppendU32(append(out, op), index)
}

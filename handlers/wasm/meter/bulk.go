package meter

import (
	"fmt"

	"github.com/taskhost/taskhost/handlers/wasm/wasmbin"
)

const (
	// pieceBytes is the most that a memory operation does without a check. Longer ones are done in pieces of this size, by functions that
	// the rewriting adds: a page that is touched for the first time can take the kernel a microsecond and more, so that an operation over
	// all memory would keep everything waiting that waits for a tick.
	pieceBytes = 64 << 10
	// foldedBytes is the longest memory operation whose charge is a part of that of the code around it, when its length is a constant.
	// Compilers move and clear most structures in this way.
	foldedBytes = 1 << 10
	// mostInline is how many memory operations of a function are rewritten where they stand. When there are more, all are calls of a function:
	// what compilers take grows faster than the length of a function.
	mostInline = 32
)

// pieces is an added function: (i32 i32 i32) -> i32. It takes the operands of a memory operation and does all of it, in pieces, each
// charged before. It returns the length that is left for the operation itself: 0, or all of it when the operation would trap because of
// its bounds, of which then nothing was done. The whole of it, (i32 i32 i32) -> (), is what else stands in the place of the operation.
type pieces struct {
	whole   bool
	sub     uint32 // the operation, a MiscMemory…
	segment uint32 // of memory.init
}

// name is what traces call the function. It begins like that of a host function of TickModule, so that hosts leave out both.
func (p pieces) name() string {
	switch p.sub {
	case wasmbin.MiscMemoryFill:
		return TickModule + ".fill"
	case wasmbin.MiscMemoryCopy:
		return TickModule + ".copy"
	}
	return fmt.Sprintf("%s.init_%d", TickModule, p.segment)
}

// added is the index of such a function in the rewritten module: behind all others, in the order in which they are needed.
func (m *module) added(p pieces) uint32 {
	i, ok := m.piecesAt[p]
	if !ok {
		i = uint32(len(m.pieces))
		m.piecesAt[p] = i
		m.pieces = append(m.pieces, p)
	}
	return m.tick + 1 + uint32(len(m.bodies)) + i
}

// folded is what a memory operation of a small constant length costs because of it; false for every other instruction.
func (w *walk) folded(in *wasmbin.Instr) (int64, bool) {
	if in.Op != wasmbin.OpMisc || in.Sub != wasmbin.MiscMemoryInit && in.Sub != wasmbin.MiscMemoryCopy && in.Sub != wasmbin.MiscMemoryFill ||
		w.last[0].Op != wasmbin.OpI32Const || w.value > foldedBytes {
		return 0, false
	}
	return int64(w.value) >> bytesPerUnitShift, true
}

// memory is a memory operation with its operands on the stack.
func (w *bodyWriter) memory(out []byte, p pieces) []byte {
	if w.memories > mostInline {
		w.m.added(p) // which the whole of it calls
		p.whole = true
		return w.op(out, wasmbin.OpCall, w.m.added(p))
	}
	out = w.op(out, wasmbin.OpLocalSet, w.length)
	out = w.op(out, wasmbin.OpLocalSet, w.operands+1)
	return w.guarded(w.op(out, wasmbin.OpLocalSet, w.operands), p)
}

// guarded is a memory operation with its operands in locals: what is longer than a piece is done before.
func (w *bodyWriter) guarded(out []byte, p pieces) []byte {
	get := func() {
		for i := range uint32(2) {
			out = w.op(out, wasmbin.OpLocalGet, w.operands+i)
		}
		out = w.op(out, wasmbin.OpLocalGet, w.length)
	}
	out = w.op(out, wasmbin.OpLocalGet, w.length)
	out = append(wasmbin.AppendS64(append(out, wasmbin.OpI32Const), pieceBytes), opI32GtU, wasmbin.OpIf, blockVoid)
	get()
	p.whole = false
	out = w.op(w.op(out, wasmbin.OpCall, w.m.added(p)), wasmbin.OpLocalSet, w.length)
	out = w.chargeLength(append(out, wasmbin.OpEnd), bytesPerUnitShift)
	get()
	return p.operation(out)
}

// Locals of an added function besides its parameters: two addresses, or an address and a value, and the length that is left.
const (
	piecesLeft = 2
	piecesSize = 3 // i32, of the piece
	piecesDone = 4 // i32, of a copy upward
	piecesFuel = 5 // i64
)

// body is the body of the function.
func (p pieces) body(m *module) []byte {
	if p.whole {
		w := &bodyWriter{m: m, length: 2, fuel: 3} // and the other operands from 0
		return append(w.guarded([]byte{1, 1, wasmbin.I64}, p), wasmbin.OpEnd)
	}
	w := &bodyWriter{m: m, fuel: piecesFuel, length: piecesSize}
	out := []byte{2, 2, wasmbin.I32, 1, wasmbin.I64}
	out = w.outside(out, 0, false)
	switch p.sub {
	case wasmbin.MiscMemoryFill:
		out = p.downward(w, out)
	case wasmbin.MiscMemoryInit:
		// The end of the segment is not known here, as it may have been dropped. The first piece ends there: it finds out.
		out = p.downward(w, w.outside(out, 1, true))
	case wasmbin.MiscMemoryCopy:
		out = w.outside(out, 1, false)
		out = w.op(w.op(out, wasmbin.OpLocalGet, 0), wasmbin.OpLocalGet, 1)
		out = p.downward(w, append(out, opI32GtU, wasmbin.OpIf, blockVoid))
		out = p.upward(w, append(out, wasmbin.OpElse))
		out = append(out, wasmbin.OpEnd)
	}
	return append(out, wasmbin.OpI32Const, 0, wasmbin.OpEnd)
}

// outside returns the length when address + length is more than the size of the memory, or than 4 GiB.
func (w *bodyWriter) outside(out []byte, address uint32, anyMemory bool) []byte {
	out = append(w.op(out, wasmbin.OpLocalGet, address), opI64ExtendI32U)
	out = append(w.op(out, wasmbin.OpLocalGet, piecesLeft), opI64ExtendI32U, opI64Add)
	if anyMemory {
		out = wasmbin.AppendS64(append(out, wasmbin.OpI64Const), 1<<32)
	} else {
		out = append(out, wasmbin.OpMemorySize, 0, opI64ExtendI32U, wasmbin.OpI64Const, 16, opI64Shl)
	}
	out = append(out, opI64GtU, wasmbin.OpIf, blockVoid)
	return append(w.op(out, wasmbin.OpLocalGet, piecesLeft), wasmbin.OpReturn, wasmbin.OpEnd)
}

// piece begins a loop over pieces: their size, their charge, and what is then left.
func (w *bodyWriter) piece(out []byte) []byte {
	out = append(out, wasmbin.OpLoop, blockVoid)
	for range 2 {
		out = w.op(out, wasmbin.OpLocalGet, piecesLeft)
		out = wasmbin.AppendS64(append(out, wasmbin.OpI32Const), pieceBytes)
	}
	out = w.op(append(out, opI32LtU, wasmbin.OpSelect), wasmbin.OpLocalSet, piecesSize)
	out = w.chargeLength(out, bytesPerUnitShift)
	out = w.op(w.op(out, wasmbin.OpLocalGet, piecesLeft), wasmbin.OpLocalGet, piecesSize)
	return w.op(append(out, opI32Sub), wasmbin.OpLocalSet, piecesLeft)
}

// downward does the piece with the highest addresses first. So must a copy to a higher address, for the two may overlap.
func (p pieces) downward(w *bodyWriter, out []byte) []byte {
	out = w.sum(w.piece(out), 0, piecesLeft)
	if p.sub == wasmbin.MiscMemoryFill {
		out = w.op(out, wasmbin.OpLocalGet, 1)
	} else {
		out = w.sum(out, 1, piecesLeft)
	}
	return w.again(p.operation(w.op(out, wasmbin.OpLocalGet, piecesSize)))
}

// upward does the piece with the lowest addresses first.
func (p pieces) upward(w *bodyWriter, out []byte) []byte {
	out = w.sum(w.sum(w.piece(out), 0, piecesDone), 1, piecesDone)
	out = p.operation(w.op(out, wasmbin.OpLocalGet, piecesSize))
	return w.again(w.op(w.sum(out, piecesDone, piecesSize), wasmbin.OpLocalSet, piecesDone))
}

func (w *bodyWriter) sum(out []byte, a, b uint32) []byte {
	return append(w.op(w.op(out, wasmbin.OpLocalGet, a), wasmbin.OpLocalGet, b), opI32Add)
}

// again ends a loop over pieces.
func (w *bodyWriter) again(out []byte) []byte {
	out = w.op(w.op(out, wasmbin.OpLocalGet, piecesLeft), wasmbin.OpBrIf, 0)
	return append(out, wasmbin.OpEnd)
}

// operation is the operation itself.
func (p pieces) operation(out []byte) []byte {
	out = append(out, wasmbin.OpMisc, byte(p.sub))
	switch p.sub {
	case wasmbin.MiscMemoryInit:
		return append(wasmbin.AppendU32(out, p.segment), 0)
	case wasmbin.MiscMemoryCopy:
		return append(out, 0, 0)
	}
	return append(out, 0)
}

package wasmbin

import "fmt"

// Opcodes that callers name. The prefixed ones are Instr.Sub values.
const (
	OpUnreachable  = 0x00
	OpNop          = 0x01
	OpBlock        = 0x02
	OpLoop         = 0x03
	OpIf           = 0x04
	OpElse         = 0x05
	OpEnd          = 0x0b
	OpBr           = 0x0c
	OpBrIf         = 0x0d
	OpBrTable      = 0x0e
	OpReturn       = 0x0f
	OpCall         = 0x10
	OpCallIndirect = 0x11
	OpDrop         = 0x1a
	OpSelect       = 0x1b
	OpSelectTyped  = 0x1c
	OpLocalGet     = 0x20
	OpLocalSet     = 0x21
	OpLocalTee     = 0x22
	OpGlobalGet    = 0x23
	OpGlobalSet    = 0x24
	OpTableGet     = 0x25
	OpTableSet     = 0x26
	OpMemorySize   = 0x3f
	OpMemoryGrow   = 0x40
	OpI32Const     = 0x41
	OpI64Const     = 0x42
	OpF32Const     = 0x43
	OpF64Const     = 0x44
	OpRefNull      = 0xd0
	OpRefIsNull    = 0xd1
	OpRefFunc      = 0xd2
	OpMisc         = 0xfc // prefix
	OpVector       = 0xfd // prefix
	OpAtomic       = 0xfe // prefix; not read

	MiscMemoryInit = 8
	MiscDataDrop   = 9
	MiscMemoryCopy = 10
	MiscMemoryFill = 11
	MiscTableInit  = 12
	MiscElemDrop   = 13
	MiscTableCopy  = 14
	MiscTableGrow  = 15
	MiscTableSize  = 16
	MiscTableFill  = 17
)

// Instr is one instruction as Reader.Instr found it.
type Instr struct {
	Op      byte
	Sub     uint32 // of OpMisc and OpVector
	At, End int    // offsets of its first byte and of the one behind it

	Index   uint32 // first index immediate: function, label, local, global, table, type, segment
	IndexAt int    // where that immediate begins; it ends before IndexTo
	IndexTo int
	Targets uint32 // of br_table, without the default; Index is the default's label
	Widest  uint32 // of br_table: the largest label, the default included

	Block int64 // block type of block, loop, if: ≥ 0 a type index, else a value type or none

	table   []byte // of br_table: the labels before the default, undecoded
	tableAt int
}

// EachTarget calls visit with every label of a br_table, the default last, and with where the label's immediate is.
func (in *Instr) EachTarget(visit func(label uint32, at, to int)) {
	r := Reader{b: in.table}
	for range in.Targets {
		at := r.pos
		visit(r.U32(), in.tableAt+at, in.tableAt+r.pos)
	}
	visit(in.Index, in.IndexAt, in.IndexTo)
}

// Instr reads one instruction of the accepted features: MVP, sign extension, saturating conversions, multi-value, bulk memory,
// reference types, fixed-width SIMD. Anything else is a fault that names the opcode.
func (r *Reader) Instr(in *Instr) {
	*in = Instr{At: r.pos}
	in.Op = r.Byte()
	switch op := in.Op; {
	case op == OpBlock || op == OpLoop || op == OpIf:
		in.Block = r.blockType()
	case op == OpBr || op == OpBrIf || op == OpCall || op == OpRefFunc || op >= OpLocalGet && op <= OpTableSet:
		r.index(in)
	case op == OpBrTable:
		r.brTable(in)
	case op == OpCallIndirect:
		r.index(in)
		r.U32()
	case op == OpSelectTyped:
		r.ValueTypes()
	case op >= 0x28 && op <= 0x3e: // loads and stores
		r.U32()
		r.U32()
	case op == OpMemorySize || op == OpMemoryGrow:
		r.U32()
	case op == OpI32Const:
		r.SkipSigned(32)
	case op == OpI64Const:
		r.SkipSigned(64)
	case op == OpF32Const:
		r.Bytes(4)
	case op == OpF64Const:
		r.Bytes(8)
	case op == OpRefNull:
		if t := r.ValueType(); t != FuncRef && t != ExternRef {
			r.Fail("not a reference type of the accepted features")
		}
	case op == OpMisc:
		r.misc(in)
	case op == OpVector:
		r.vector(in)
	case op <= OpNop, op == OpElse, op == OpEnd, op == OpReturn, op == OpDrop, op == OpSelect, op == OpRefIsNull,
		op >= 0x45 && op <= 0xc4: // comparisons, arithmetic, conversions, sign extension
	default:
		r.Fail(fmt.Sprintf("opcode 0x%02x is not of the accepted features", op))
	}
	in.End = r.pos
}

func (r *Reader) index(in *Instr) {
	in.IndexAt = r.pos
	in.Index = r.U32()
	in.IndexTo = r.pos
}

func (r *Reader) brTable(in *Instr) {
	in.Targets = r.Count()
	from := r.pos
	for range in.Targets {
		in.Widest = max(in.Widest, r.U32())
	}
	in.table, in.tableAt = r.b[from:r.pos], from
	r.index(in)
	in.Widest = max(in.Widest, in.Index)
}

func (r *Reader) misc(in *Instr) {
	in.Sub = r.U32()
	switch in.Sub {
	case 0, 1, 2, 3, 4, 5, 6, 7: // saturating conversions
	case MiscMemoryInit, MiscTableInit, MiscMemoryCopy, MiscTableCopy:
		r.index(in)
		r.U32()
	case MiscDataDrop, MiscMemoryFill, MiscElemDrop, MiscTableGrow, MiscTableSize, MiscTableFill:
		r.index(in)
	default:
		r.Fail(fmt.Sprintf("opcode 0xfc %d is not of the accepted features", in.Sub))
	}
}

func (r *Reader) vector(in *Instr) {
	in.Sub = r.U32()
	switch op := in.Sub; {
	case op <= 11 || op == 92 || op == 93: // loads and stores
		r.U32()
		r.U32()
	case op == 12 || op == 13: // v128.const, shuffle
		r.Bytes(16)
	case op >= 21 && op <= 34: // lanes
		r.Byte()
	case op >= 84 && op <= 91: // load and store of a lane
		r.U32()
		r.U32()
		r.Byte()
	case op <= 255:
	default:
		r.Fail(fmt.Sprintf("opcode 0xfd %d is not of the accepted features", op))
	}
}

// ConstExpr reads a constant expression up to and with its end. refFunc, if not nil, is called for every ref.func.
func (r *Reader) ConstExpr(refFunc func(Instr)) {
	for in := (Instr{}); r.err == nil; {
		r.Instr(&in)
		switch in.Op {
		case OpEnd:
			return
		case OpRefFunc:
			if refFunc != nil && r.err == nil {
				refFunc(in)
			}
		case OpI32Const, OpI64Const, OpF32Const, OpF64Const, OpGlobalGet, OpRefNull:
		case OpVector:
			if in.Sub != 12 {
				r.Fail("not a constant expression")
			}
		default:
			r.Fail("not a constant expression")
		}
	}
}

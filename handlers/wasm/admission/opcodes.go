package admission

// immediate says what follows an opcode, or why the opcode is not accepted.
type immediate uint8

const (
	immUnknown immediate = iota
	immNone
	immBlock         // block type
	immLoop          // block type
	immElse          //
	immEnd           //
	immIndex         // one index: label, function, local, global, table
	immBrTable       // vector of labels and a default
	immCallIndirect  // type, table
	immSelect        // vector of types
	immTableAccess   // table; reference types
	immMemArg        // alignment, offset
	immMemory        // memory, one zero byte
	immI32           //
	immI64           //
	immF32           //
	immF64           //
	immRefNull       // reference type
	immRefFunc       // function; reference types
	immRefIsNull     //
	immSignExtension // none; names the feature
	immPrefixFC      // saturating conversions, bulk memory, tables
	immPrefixFD      // vectors
	immThreads       // the rest are refused by name
	immExceptions
	immTailCall
	immTypedRefs
	immGC
)

// opcodes is the table of one-byte opcodes.
var opcodes = func() (t [256]immediate) {
	fill := func(imm immediate, from, to int) {
		for op := from; op <= to; op++ {
			t[op] = imm
		}
	}
	fill(immNone, 0x00, 0x01) // unreachable, nop
	t[0x02], t[0x03], t[0x04] = immBlock, immLoop, immBlock
	t[0x05], t[0x0b] = immElse, immEnd
	fill(immExceptions, 0x06, 0x0a)
	fill(immIndex, 0x0c, 0x0d) // br, br_if
	t[0x0e] = immBrTable
	t[0x0f] = immNone  // return
	t[0x10] = immIndex // call
	t[0x11] = immCallIndirect
	fill(immTailCall, 0x12, 0x13)
	fill(immTypedRefs, 0x14, 0x15)
	fill(immExceptions, 0x18, 0x19)
	fill(immNone, 0x1a, 0x1b) // drop, select
	t[0x1c] = immSelect
	t[0x1f] = immExceptions
	fill(immIndex, 0x20, 0x24) // locals, globals
	fill(immTableAccess, 0x25, 0x26)
	fill(immMemArg, 0x28, 0x3e)
	fill(immMemory, 0x3f, 0x40)
	t[0x41], t[0x42], t[0x43], t[0x44] = immI32, immI64, immF32, immF64
	fill(immNone, 0x45, 0xbf) // numeric
	fill(immSignExtension, 0xc0, 0xc4)
	t[0xd0], t[0xd1], t[0xd2] = immRefNull, immRefIsNull, immRefFunc
	t[0xd3] = immGC
	fill(immTypedRefs, 0xd4, 0xd6)
	t[0xfb], t[0xfc], t[0xfd], t[0xfe] = immGC, immPrefixFC, immPrefixFD, immThreads
	return
}()

// refusedFeature names the features whose opcodes are refused.
func refusedFeature(imm immediate) string {
	switch imm {
	case immThreads:
		return "threads (atomic instructions)"
	case immExceptions:
		return "exception handling"
	case immTailCall:
		return "tail calls"
	case immTypedRefs:
		return "typed function references"
	case immGC:
		return "garbage collection"
	}
	return ""
}

// prefixFC reads what follows 0xfc.
func (w *walk) prefixFC(r *reader) {
	sub := r.u32()
	switch {
	case sub <= 7:
		w.s.features |= featureSatFloat
		return
	case sub <= 14:
		w.s.features |= featureBulkMemory
	case sub <= 17:
		w.s.features |= featureReferenceTypes
	}
	switch sub {
	case 8: // memory.init
		r.u32()
		w.memoryIndex(r)
	case 9, 13: // data.drop, elem.drop
		r.u32()
	case 10: // memory.copy
		w.memoryIndex(r)
		w.memoryIndex(r)
	case 11: // memory.fill
		w.memoryIndex(r)
	case 12, 14: // table.init, table.copy
		r.u32()
		r.u32()
	case 15: // table.grow
		if !w.s.tableGrows {
			w.s.tableGrows, w.s.tableGrowsIn = true, w.index
		}
		r.u32()
	case 16, 17: // table.size, table.fill
		r.u32()
	case 18:
		w.unsupported("memory.discard")
	case 19, 20, 21, 22:
		w.unsupported("wide arithmetic")
	default:
		r.damaged("0xfc 0x%02x is no instruction", sub)
	}
}

// prefixFD reads what follows 0xfd. The engine reads the second opcode as one byte and takes the 0x01 that ends a longer one
// for a nop, so only the shortest encoding is accepted: both must see the same instructions.
func (w *walk) prefixFD(r *reader) {
	w.s.features |= featureSIMD
	sub := r.byte()
	if sub >= 0x80 {
		switch high := r.byte(); {
		case high == 1:
		case high == 2 && sub < 0x94:
			w.unsupported("relaxed SIMD")
			return
		default:
			r.damaged("a vector instruction has the number 0x%02x%02x", high, sub)
			return
		}
	}
	switch {
	case sub <= 0x0b, sub == 0x5c, sub == 0x5d:
		w.memArg(r)
	case sub == 0x0c, sub == 0x0d:
		r.take(16)
	case sub >= 0x15 && sub <= 0x22:
		r.byte()
	case sub >= 0x54 && sub <= 0x5b:
		w.memArg(r)
		r.byte()
	}
	switch sub {
	case 0x9a, 0xa2, 0xa5, 0xa6, 0xaf, 0xb0, 0xb2, 0xb3, 0xb4, 0xbb, 0xc2, 0xc5, 0xc6, 0xcf, 0xd0, 0xd2, 0xd3, 0xd4, 0xe2, 0xee:
		r.damaged("0xfd 0x%02x is no instruction", sub)
	}
}

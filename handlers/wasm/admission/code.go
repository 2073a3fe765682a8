package admission

// walk is the state of the walk over one function body.
type walk struct {
	s      *scan
	index  int // of the function, imports first
	depth  int
	loops  int
	locals int // with parameters
	blocks int // values that block types carry
}

// codeSection walks over every body.
func (s *scan) codeSection(r *reader) {
	s.bodies = r.bounded("function bodies", s.limits.Functions)
	if s.bodies != len(s.funcs) && !r.failed() {
		r.pos = len(r.b) // agreement says it, with both numbers
		return
	}
	w := walk{s: s}
	for i := 0; i < s.bodies && !r.failed(); i++ {
		size := r.count("bytes of a function body")
		if size > s.limits.BodyBytes {
			s.refuse("function %d has %s of code; at most %s are accepted", len(s.importedFuncs)+i, bytesText(int64(size)), bytesText(int64(s.limits.BodyBytes)))
			return
		}
		s.maxBody = max(s.maxBody, size)
		w = walk{s: s, index: len(s.importedFuncs) + i, locals: len(s.types[s.funcs[i]].params)}
		w.body(r.sub(size, "the code section"))
	}
}

// unsupported refuses a feature, naming the function.
func (w *walk) unsupported(feature string) {
	w.s.unsupported("%s (in function %d)", feature, w.index)
}

func (w *walk) body(r *reader) {
	w.declare(r)
	w.depth = 1 // the body is a block itself
	for w.depth > 0 && !r.failed() {
		if r.rest() == 0 {
			r.damaged("function %d ends inside a block", w.index)
			return
		}
		w.instruction(r)
	}
	w.s.maxLoopLocals = max(w.s.maxLoopLocals, w.carried())
	r.done()
}

// declare sums up the locals; the sum cannot overflow, as it stops at the limit.
func (w *walk) declare(r *reader) {
	declared := 0
	groups := r.count("groups of locals")
	for i := 0; i < groups && !r.failed(); i++ {
		n := r.u32()
		if uint64(n) > uint64(w.s.limits.Locals-declared) {
			w.s.refuse("function %d has more than %d locals", w.index, w.s.limits.Locals)
			return
		}
		declared += int(n)
		w.s.valueType(r)
	}
	w.locals += declared
	w.s.maxLocals = max(w.s.maxLocals, declared)
}

// carried is the number of values the compiler may have to merge at the heads of blocks.
func (w *walk) carried() int { return w.locals*w.loops + w.blocks }

func (w *walk) instruction(r *reader) {
	op := r.byte()
	switch imm := opcodes[op]; imm {
	case immNone:
	case immIndex:
		r.u32()
	case immMemArg:
		w.memArg(r)
	case immI32:
		r.signed(32)
	case immI64:
		r.signed(64)
	case immF32:
		r.take(4)
	case immF64:
		r.take(8)
	case immBlock, immLoop:
		if imm == immLoop {
			w.loops++
		}
		w.block(r)
	case immElse:
		if w.depth < 2 {
			r.damaged("function %d has an else outside of an if", w.index)
		}
	case immEnd:
		w.depth--
	case immBrTable:
		w.brTable(r)
	case immCallIndirect:
		w.s.typeIndex(r)
		r.u32()
	case immSelect:
		w.s.features |= featureReferenceTypes
		for n := r.count("types of a select"); n > 0 && !r.failed(); n-- {
			w.s.valueType(r)
		}
	case immMemory:
		w.memoryIndex(r)
	case immSignExtension:
		w.s.features |= featureSignExtension
	case immTableAccess, immRefFunc:
		w.s.features |= featureReferenceTypes
		r.u32()
	case immRefNull:
		w.s.refType(r)
	case immRefIsNull:
		w.s.features |= featureReferenceTypes
	case immPrefixFC:
		w.prefixFC(r)
	case immPrefixFD:
		w.prefixFD(r)
	case immThreads, immExceptions, immTailCall, immTypedRefs, immGC:
		w.unsupported(refusedFeature(imm))
	default:
		r.damaged("function %d has 0x%02x, which is no instruction", w.index, op)
	}
}

// block reads a block type: empty, one value type, or the index of a function type.
func (w *walk) block(r *reader) {
	if w.depth++; w.depth-1 > w.s.limits.Nesting {
		w.s.refuse("function %d nests blocks more than %d deep", w.index, w.s.limits.Nesting)
		return
	}
	w.s.maxNesting = max(w.s.maxNesting, w.depth-1)
	if r.rest() == 0 {
		return // the body's loop says it
	}
	switch next := r.b[r.pos]; {
	case next == 0x40:
		r.pos++
	case next < 0x80 && next&0x40 != 0: // a negative number of one byte: a value type
		w.s.valueType(r)
		w.blocks++
	default:
		t := r.signed(33)
		if t < 0 || t >= int64(len(w.s.types)) {
			r.damaged("function %d has a block of type %d, which does not exist", w.index, t)
			return
		}
		w.s.features |= featureMultiValue
		w.blocks += len(w.s.types[t].params) + len(w.s.types[t].results)
	}
	if w.carried() > w.s.limits.LoopLocals {
		w.s.refuse("function %d has %d locals and parameters and at least %d loops, which carry more than %d values to block heads; split it up",
			w.index, w.locals, w.loops, w.s.limits.LoopLocals)
	}
}

func (w *walk) brTable(r *reader) {
	n := r.count("targets of a br_table")
	if n > w.s.limits.BrTargets {
		w.s.refuse("function %d has a br_table of %d targets; at most %d are accepted", w.index, n, w.s.limits.BrTargets)
		return
	}
	w.s.maxBrTargets = max(w.s.maxBrTargets, n)
	for i := 0; i <= n && !r.failed(); i++ { // and the default
		r.u32()
	}
}

// memArg reads alignment and offset. The alignment's upper bits select other memories and 64-bit offsets.
func (w *walk) memArg(r *reader) {
	if align := r.u32(); align > 4 {
		if align >= 64 && align < 128 {
			w.unsupported("more than one memory")
			return
		}
		r.damaged("function %d accesses memory with an alignment of 2^%d", w.index, align)
		return
	}
	r.u32()
}

// memoryIndex reads a memory's index, which the engine reads as one byte.
func (w *walk) memoryIndex(r *reader) {
	if m := r.byte(); m != 0 && !r.failed() {
		w.unsupported("more than one memory")
	}
}

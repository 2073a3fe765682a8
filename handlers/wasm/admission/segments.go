package admission

// constExpr reads a constant expression of the accepted features: one instruction and end.
func (s *scan) constExpr(r *reader) {
	switch op := r.byte(); op {
	case 0x41:
		r.signed(32)
	case 0x42:
		r.signed(64)
	case 0x43:
		r.take(4)
	case 0x44:
		r.take(8)
	case 0x23: // global.get
		r.u32()
	case 0xd0: // ref.null
		s.refType(r)
	case 0xd2: // ref.func
		s.features |= featureReferenceTypes
		r.u32()
	case 0xfd:
		s.features |= featureSIMD
		if sub := r.byte(); sub != 0x0c && !r.failed() {
			r.damaged("a constant has the vector instruction %d", sub)
		}
		r.take(16)
	case 0xfb:
		s.unsupported("garbage collection (a constant makes a heap object)")
	default:
		if !r.failed() {
			r.damaged("a constant begins with the instruction 0x%02x", op)
		}
	}
	switch end := r.byte(); end {
	case 0x0b:
	case 0x23, 0x41, 0x42, 0x6a, 0x6b, 0x6c, 0x7c, 0x7d, 0x7e:
		if !r.failed() {
			s.unsupported("extended constant expressions (a constant of more than one instruction)")
		}
	default:
		if !r.failed() {
			r.damaged("a constant does not end after its first instruction")
		}
	}
}

func (s *scan) refType(r *reader) {
	s.features |= featureReferenceTypes
	switch t := r.byte(); t {
	case typeFuncRef, typeExternRef:
	default:
		if !r.failed() {
			s.unsupported("reference types beyond funcref and externref (0x%02x)", t)
		}
	}
}

// elementSection reads the eight forms of a segment: bit 0 passive or declarative, bit 1 explicit table (or declarative),
// bit 2 expressions in place of function indices.
func (s *scan) elementSection(r *reader) {
	s.elements = r.bounded("element segments", s.limits.Elements)
	for i := 0; i < s.elements && !r.failed(); i++ {
		form := r.u32()
		if form > 7 {
			r.damaged("element segment %d is of form %d", i, form)
			return
		}
		active, explicit, exprs := form&1 == 0, form&2 != 0, form&4 != 0
		if form != 0 {
			s.features |= featureBulkMemory
		}
		if active {
			if explicit {
				r.u32() // table
			}
			s.constExpr(r)
		}
		if !active || explicit {
			s.elementType(r, exprs)
		}
		n := r.count("entries of an element segment")
		if s.elementsTotal += n; s.elementsTotal > s.limits.ElementEntries {
			s.refuse("the element segments have more than %d entries together", s.limits.ElementEntries)
			return
		}
		for j := 0; j < n && !r.failed(); j++ {
			if exprs {
				s.constExpr(r)
			} else {
				r.u32()
			}
		}
	}
}

func (s *scan) elementType(r *reader, exprs bool) {
	if exprs {
		s.refType(r)
		return
	}
	if k := r.byte(); k != 0 && !r.failed() {
		r.damaged("an element segment is of kind %d", k)
	}
}

func (s *scan) dataSection(r *reader) {
	s.datas = r.bounded("data segments", s.limits.Datas)
	for i := 0; i < s.datas && !r.failed(); i++ {
		switch form := r.u32(); form {
		case 0:
			s.constExpr(r)
		case 1:
			s.features |= featureBulkMemory
		case 2:
			r.u32() // memory
			s.constExpr(r)
		default:
			r.damaged("data segment %d is of form %d", i, form)
			return
		}
		r.take(r.count("bytes of a data segment"))
	}
}

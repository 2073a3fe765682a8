package admission

var sectionNames = [...]string{"custom", "type", "import", "function", "table", "memory", "global", "export", "start",
	"element", "code", "data", "data count", "tag"}

// sectionOrder is the place of a section in a module, by section number.
var sectionOrder = [...]int{secType: 1, secImport: 2, secFunction: 3, secTable: 4, secMemory: 5, secTag: 6, secGlobal: 7, secExport: 8,
	secStart: 9, secElement: 10, secDataCount: 11, secCode: 12, secData: 13}

// sections walks over all sections: known numbers, in order, each once, lengths that add up.
func (s *scan) sections(module []byte) {
	r := &reader{s: s, b: module, pos: 8, what: "the list of sections"}
	last := byte(secCustom)
	for r.rest() > 0 && !r.failed() {
		id := r.byte()
		if int(id) >= len(sectionNames) {
			r.damaged("there is no section of kind %d", id)
			return
		}
		r.what = "the " + sectionNames[id] + " section"
		size := r.count("bytes of the section")
		if id != secCustom {
			if last != secCustom && sectionOrder[id] <= sectionOrder[last] {
				r.damaged("it comes after the %s section", sectionNames[last])
				return
			}
			last = id
		}
		s.section(id, r.sub(size, r.what))
		r.what = "the list of sections"
	}
}

func (s *scan) section(id byte, r *reader) {
	switch id {
	case secCustom:
		s.customSection(r)
		return // what is left in it is its own business
	case secType:
		s.typeSection(r)
	case secImport:
		s.importSection(r)
	case secFunction:
		s.functionSection(r)
	case secTable:
		s.tableSection(r)
	case secMemory:
		s.memorySection(r)
	case secTag:
		s.unsupported("exception handling (it has a tag section)")
	case secGlobal:
		s.globalSection(r)
	case secExport:
		s.exportSection(r)
	case secStart:
		f := r.u32()
		s.start = &f
	case secElement:
		s.elementSection(r)
	case secDataCount:
		n := r.u32()
		s.dataCount = &n
		s.features |= featureBulkMemory
	case secCode:
		s.codeSection(r)
	case secData:
		s.dataSection(r)
	}
	r.done()
}

func (s *scan) typeSection(r *reader) {
	n := r.bounded("types", s.limits.Types)
	s.types = make([]funcType, 0, n)
	for i := 0; i < n && !r.failed(); i++ {
		switch form := r.byte(); form {
		case 0x60:
		case 0x4e, 0x4f, 0x50, 0x5e, 0x5f:
			s.unsupported("garbage collection (type %d is not a plain function type)", i)
			return
		default:
			r.damaged("type %d begins with 0x%02x", i, form)
			return
		}
		params := s.valueTypes(r, i, "parameters", s.limits.Params)
		results := s.valueTypes(r, i, "results", s.limits.Results)
		if len(results) > 1 {
			s.features |= featureMultiValue
		}
		s.types = append(s.types, funcType{params, results})
	}
}

// valueTypes returns a vector of types, each one byte, as it lies in the module.
func (s *scan) valueTypes(r *reader, index int, items string, limit int) []byte {
	n := r.count(items)
	if n > limit {
		s.refuse("function type %d has %d %s; at most %d are accepted", index, n, items, limit)
		return nil
	}
	start := r.pos
	for i := 0; i < n && !r.failed(); i++ {
		s.valueType(r)
	}
	if r.failed() {
		return nil
	}
	return r.b[start:r.pos]
}

// valueType reads one value type, always one byte.
func (s *scan) valueType(r *reader) byte {
	t := r.byte()
	switch t {
	case typeI32, typeI64, typeF32, typeF64:
	case typeV128:
		s.features |= featureSIMD
	case typeFuncRef, typeExternRef:
		s.features |= featureReferenceTypes
	case 0x69, 0x68, 0x74, 0x75:
		s.unsupported("exception handling (it uses the type exnref)")
	case 0x63, 0x64:
		s.unsupported("typed function references (it uses a reference to a type)")
	case 0x65, 0x66, 0x67, 0x6a, 0x6b, 0x6c, 0x6d, 0x6e, 0x71, 0x72, 0x73, 0x77, 0x78:
		s.unsupported("garbage collection (it uses the reference type 0x%02x)", t)
	default:
		r.damaged("0x%02x is no value type", t)
	}
	return t
}

func (s *scan) importSection(r *reader) {
	n := r.bounded("imports", s.limits.Imports)
	s.imports = make([]imported, 0, n)
	for i := 0; i < n && !r.failed(); i++ {
		imp := imported{module: s.shortName(r, "import"), name: s.shortName(r, "import"), kind: r.byte()}
		switch imp.kind {
		case kindFunc:
			imp.typeIndex = s.typeIndex(r)
			s.importedFuncs = append(s.importedFuncs, imp.typeIndex)
		case kindTable:
			s.tableType(r)
		case kindMemory:
			s.limitsOf(r, "memory")
		case kindGlobal:
			s.globalType(r)
		case kindTag:
			s.unsupported("exception handling (it imports a tag)")
		default:
			r.damaged("import %d is of kind %d", i, imp.kind)
		}
		s.imports = append(s.imports, imp)
	}
}

func (s *scan) shortName(r *reader, of string) []byte {
	p := r.name()
	if len(p) > s.limits.NameBytes {
		s.refuse("the name of an %s has %d bytes; at most %d are accepted", of, len(p), s.limits.NameBytes)
		return nil
	}
	return p
}

func (s *scan) typeIndex(r *reader) uint32 {
	t := r.u32()
	if !r.failed() && uint64(t) >= uint64(len(s.types)) {
		r.damaged("type %d does not exist", t)
		return 0
	}
	return t
}

func (s *scan) functionSection(r *reader) {
	n := r.bounded("functions", s.limits.Functions)
	s.funcs = make([]uint32, 0, n)
	for i := 0; i < n && !r.failed(); i++ {
		s.funcs = append(s.funcs, s.typeIndex(r))
	}
}

func (s *scan) tableSection(r *reader) {
	n := r.bounded("tables", 1)
	for i := 0; i < n && !r.failed(); i++ {
		s.tableMin, s.tableMax, s.tableHasMax = s.tableType(r)
	}
	s.tables = n
}

func (s *scan) tableType(r *reader) (lo, hi uint32, hasMax bool) {
	switch t := r.byte(); t {
	case typeFuncRef:
	case typeExternRef:
		s.features |= featureReferenceTypes
	case 0x40, 0x63, 0x64:
		s.unsupported("typed function references (its table is not of funcref or externref)")
	default:
		r.damaged("0x%02x is no type of a table", t)
	}
	return s.limitsOf(r, "table")
}

// limitsOf reads the limits of a memory or table.
func (s *scan) limitsOf(r *reader, of string) (lo, hi uint32, hasMax bool) {
	flags := r.byte()
	switch {
	case r.failed():
		return
	case flags > 0x0f:
		r.damaged("the limits of a %s begin with 0x%02x", of, flags)
		return
	case flags&0x08 != 0:
		s.unsupported("custom page sizes")
		return
	case flags&0x04 != 0:
		s.unsupported("64-bit %s (memory64)", map[string]string{"memory": "memory", "table": "tables"}[of])
		return
	case flags&0x02 != 0:
		s.unsupported("shared memory (threads)")
		return
	}
	lo = r.u32()
	if flags&0x01 != 0 {
		hi, hasMax = r.u32(), true
		if lo > hi && !r.failed() {
			r.damaged("a %s has a minimum of %d and a maximum of %d", of, lo, hi)
		}
	}
	return
}

func (s *scan) memorySection(r *reader) {
	n := r.bounded("memories", 1)
	for i := 0; i < n && !r.failed(); i++ {
		s.memoryMin, s.memoryMax, s.memoryHasMax = s.limitsOf(r, "memory")
		if over := max(s.memoryMin, s.memoryMax); over > 65536 {
			r.damaged("a memory of %d pages is more than a 32-bit memory can have", over)
		}
	}
	s.memories = n
}

func (s *scan) globalType(r *reader) {
	s.valueType(r)
	if m := r.byte(); m > 1 && !r.failed() {
		if m&^0x03 == 0 {
			s.unsupported("shared globals (threads)")
			return
		}
		r.damaged("the mutability of a global is 0x%02x", m)
	}
}

func (s *scan) globalSection(r *reader) {
	n := r.bounded("globals", s.limits.Globals)
	for i := 0; i < n && !r.failed(); i++ {
		s.globalType(r)
		s.constExpr(r)
	}
	s.globals = n
}

func (s *scan) exportSection(r *reader) {
	n := r.bounded("exports", s.limits.Exports)
	s.exports = make([]exported, 0, n)
	for i := 0; i < n && !r.failed(); i++ {
		e := exported{name: s.shortName(r, "export"), kind: r.byte(), index: r.u32()}
		if e.kind > kindTag && !r.failed() {
			r.damaged("export %d is of kind %d", i, e.kind)
		}
		s.exports = append(s.exports, e)
	}
}

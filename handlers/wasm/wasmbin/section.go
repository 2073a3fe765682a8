package wasmbin

import "fmt"

// Ids of sections.
const (
	SectionCustom    = 0
	SectionType      = 1
	SectionImport    = 2
	SectionFunction  = 3
	SectionTable     = 4
	SectionMemory    = 5
	SectionGlobal    = 6
	SectionExport    = 7
	SectionStart     = 8
	SectionElement   = 9
	SectionCode      = 10
	SectionData      = 11
	SectionDataCount = 12
)

// Kinds of imports and exports.
const (
	KindFunction = 0
	KindTable    = 1
	KindMemory   = 2
	KindGlobal   = 3
)

// Value types.
const (
	I32       = 0x7f
	I64       = 0x7e
	F32       = 0x7d
	F64       = 0x7c
	V128      = 0x7b
	FuncRef   = 0x70
	ExternRef = 0x6f
)

// Section is one section of a module.
type Section struct {
	ID     byte
	Offset int    // of Body in the module
	Body   []byte // a part of the module
}

// Order is the place of a section id among the known sections, for they must come in this order; 0 for custom and unknown.
func Order(id byte) int {
	const order = "\x01\x02\x03\x04\x05\x06\x07\x08\x09\x0c\x0a\x0b"
	for i := range len(order) {
		if order[i] == id {
			return i + 1
		}
	}
	return 0
}

// Sections splits a module. Every known section appears at most once and in order.
func Sections(module []byte) ([]Section, error) {
	if len(module) < len(Header) || string(module[:len(Header)]) != Header {
		return nil, &FormatError{What: "not a WebAssembly core module of version 1"}
	}
	r := &Reader{b: module, pos: len(Header)}
	var sections []Section
	last := 0
	for !r.Done() {
		start := r.pos
		s := Section{ID: r.Byte()}
		size := r.U32()
		s.Offset = r.pos
		s.Body = r.Bytes(size)
		if s.ID != SectionCustom {
			place := Order(s.ID)
			if place == 0 || place <= last {
				return nil, &FormatError{Offset: start, What: fmt.Sprintf("section %d unknown, repeated or out of order", s.ID)}
			}
			last = place
		}
		if r.err == nil {
			sections = append(sections, s)
		}
	}
	return sections, r.err
}

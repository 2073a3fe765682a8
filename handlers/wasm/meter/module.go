package meter

import (
	"bytes"
	"cmp"
	"fmt"

	"github.com/taskhost/taskhost/handlers/wasm/wasmbin"
)

// module is what the rewriting must know of the original.
type module struct {
	sections []wasmbin.Section
	params   []uint32        // of each type
	types    []uint32        // type index of each defined function
	imported uint32          // functions
	globals  []global        // imported ones first
	bodies   [][]byte        // of each defined function, with its locals, without its length
	bodyAt   []uint32        // where they are in the section
	exported map[uint32]bool // functions that the host may call, the started one too

	pieces   []pieces          // the functions that are added
	piecesAt map[pieces]uint32 // their places in it

	tick  uint32 // index of the added function
	fuel  uint32 // index of the added global
	void  uint32 // index of the added type () -> (); those of pieces follow
	taken string // a reserved name that it uses
}

type global struct {
	typ     byte
	mutable bool
}

// shift maps a function index of the original to the rewritten module.
func (m *module) shift(f uint32) uint32 {
	if f >= m.tick {
		return f + 1
	}
	return f
}

// parse reads the sections that the rewriting needs.
func parse(b []byte) (*module, error) {
	sections, err := wasmbin.Sections(b)
	if err != nil {
		return nil, err
	}
	m := &module{sections: sections, exported: map[uint32]bool{}, piecesAt: map[pieces]uint32{}}
	for _, s := range sections {
		r := wasmbin.NewReader(s.Body)
		switch s.ID {
		case wasmbin.SectionType:
			m.readTypes(r)
		case wasmbin.SectionImport:
			m.readImports(r)
		case wasmbin.SectionFunction:
			m.readFunctions(r)
		case wasmbin.SectionGlobal:
			m.readGlobals(r)
		case wasmbin.SectionExport:
			m.readExports(r)
		case wasmbin.SectionStart:
			m.exported[r.U32()] = true
		case wasmbin.SectionCode:
			m.readCode(r)
		default:
			continue
		}
		if r.Err() == nil && !r.Done() {
			r.Fail("bytes left over")
		}
		if err := r.Err(); err != nil {
			return nil, fmt.Errorf("section %d: %w", s.ID, err)
		}
	}
	if m.taken != "" {
		return nil, &ReservedError{Name: m.taken}
	}
	if len(m.types) != len(m.bodies) {
		return nil, &wasmbin.FormatError{What: fmt.Sprintf("%d functions declared, %d bodies", len(m.types), len(m.bodies))}
	}
	m.tick, m.fuel, m.void = m.imported, uint32(len(m.globals)), uint32(len(m.params))
	return m, nil
}

// defined is the number of a function among the defined ones; -1 for an imported one and for what is out of range.
func (m *module) defined(f uint32) int {
	if i := int64(f) - int64(m.imported); i >= 0 && i < int64(len(m.bodies)) {
		return int(i)
	}
	return -1
}

func (m *module) readTypes(r *wasmbin.Reader) {
	for n := r.Count(); n > 0 && r.Err() == nil; n-- {
		if r.Byte() != 0x60 {
			r.Fail("not a function type")
		}
		m.params = append(m.params, uint32(len(r.ValueTypes())))
		r.ValueTypes()
	}
}

func (m *module) readImports(r *wasmbin.Reader) {
	for n := r.Count(); n > 0 && r.Err() == nil; n-- {
		if name := string(r.Name()); name == TickModule {
			m.taken = name
		}
		r.Name()
		switch r.Byte() {
		case wasmbin.KindFunction:
			r.U32()
			m.imported++
		case wasmbin.KindTable:
			r.ValueType()
			readLimits(r)
		case wasmbin.KindMemory:
			readLimits(r)
		case wasmbin.KindGlobal:
			m.readGlobalType(r)
		default:
			r.Fail("unknown kind of import")
		}
	}
}

func readLimits(r *wasmbin.Reader) {
	flags := r.Byte()
	r.U32()
	if flags&1 != 0 {
		r.U32()
	}
}

func (m *module) readGlobalType(r *wasmbin.Reader) {
	g := global{typ: r.ValueType()}
	g.mutable = r.Byte() == 1
	m.globals = append(m.globals, g)
}

func (m *module) readFunctions(r *wasmbin.Reader) {
	for n := r.Count(); n > 0 && r.Err() == nil; n-- {
		t := r.U32()
		if int(t) >= len(m.params) {
			r.Fail(fmt.Sprintf("function has type %d of %d", t, len(m.params)))
			return
		}
		m.types = append(m.types, t)
	}
}

func (m *module) readGlobals(r *wasmbin.Reader) {
	for n := r.Count(); n > 0 && r.Err() == nil; n-- {
		m.readGlobalType(r)
		r.ConstExpr(nil)
	}
}

func (m *module) readExports(r *wasmbin.Reader) {
	for n := r.Count(); n > 0 && r.Err() == nil; n-- {
		if name := r.Name(); bytes.HasPrefix(name, []byte(reserved)) {
			m.taken = cmp.Or(m.taken, string(name))
		}
		kind, index := r.Byte(), r.U32()
		if kind == wasmbin.KindFunction {
			m.exported[index] = true
		}
	}
}

func (m *module) readCode(r *wasmbin.Reader) {
	for n := r.Count(); n > 0 && r.Err() == nil; n-- {
		size := r.U32()
		m.bodyAt = append(m.bodyAt, uint32(r.Pos()))
		m.bodies = append(m.bodies, r.Bytes(size))
	}
}

// Package wasmtest builds WebAssembly modules for tests: small ones by hand, without any tool (Builder), and real ones from
// Go source with the Go tool chain (GoCommand, GoReactor). Nothing here is used by the host itself.
package wasmtest

import "encoding/binary"

// ValType is a value type as the binary format writes it.
type ValType = byte

// The value types.
const (
	I32       ValType = 0x7f
	I64       ValType = 0x7e
	F32       ValType = 0x7d
	F64       ValType = 0x7c
	V128      ValType = 0x7b
	FuncRef   ValType = 0x70
	ExternRef ValType = 0x6f
)

// Section numbers of the binary format.
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
	SectionTag       = 13
)

// Preamble begins every core module: the magic number and version 1.
var preamble = []byte{0x00, 0x61, 0x73, 0x6d, 0x01, 0x00, 0x00, 0x00}

// Preamble returns the eight bytes that begin every core module.
func Preamble() []byte { return append([]byte(nil), preamble...) }

// Local declares Count locals of one type.
type Local struct {
	Count uint32
	Type  ValType
}

// Builder collects the parts of a module. Imports must be added before functions, as in the index space they come first;
// a violation panics, since it is a fault of the test. The zero value is an empty module.
type Builder struct {
	types, imports, funcs, tables, memories  [][]byte
	globals, exports, elements, codes, datas [][]byte
	start                                    *uint32
	dataCount                                bool
	importedFuncs                            uint32
	custom                                   []byte
	typeIndex                                map[string]uint32
}

// Type returns the index of a function type, adding it if it is new.
func (b *Builder) Type(params, results []ValType) uint32 {
	enc := append([]byte{0x60}, Bytes(params)...)
	enc = append(enc, Bytes(results)...)
	if i, ok := b.typeIndex[string(enc)]; ok {
		return i
	}
	if b.typeIndex == nil {
		b.typeIndex = map[string]uint32{}
	}
	i := uint32(len(b.types))
	b.typeIndex[string(enc)] = i
	b.types = append(b.types, enc)
	return i
}

// ImportFunc adds an imported function and returns its index.
func (b *Builder) ImportFunc(module, name string, params, results []ValType) uint32 {
	if len(b.funcs) > 0 {
		panic("wasmtest: import added after a function")
	}
	b.Import(module, name, 0x00, Uleb(uint64(b.Type(params, results))))
	b.importedFuncs++
	return b.importedFuncs - 1
}

// Import adds an import of any kind with its description already encoded: kind 0 function, 1 table, 2 memory, 3 global, 4 tag.
func (b *Builder) Import(module, name string, kind byte, desc []byte) {
	enc := append(Name(module), Name(name)...)
	enc = append(enc, kind)
	b.imports = append(b.imports, append(enc, desc...))
}

// Func adds a function and returns its index. The end opcode is added to the body.
func (b *Builder) Func(params, results []ValType, locals []Local, body ...[]byte) uint32 {
	b.funcs = append(b.funcs, Uleb(uint64(b.Type(params, results))))
	code := Uleb(uint64(len(locals)))
	for _, l := range locals {
		code = append(append(code, Uleb(uint64(l.Count))...), l.Type)
	}
	for _, part := range body {
		code = append(code, part...)
	}
	code = append(code, OpEnd)
	b.codes = append(b.codes, Bytes(code))
	return b.importedFuncs + uint32(len(b.funcs)) - 1
}

// Memory adds a memory of lo pages (64 KiB each), with a maximum if one is given.
func (b *Builder) Memory(lo uint32, hi ...uint32) {
	b.memories = append(b.memories, Limits(lo, hi...))
}

// Table adds a table of funcref with lo entries, with a maximum if one is given.
func (b *Builder) Table(lo uint32, hi ...uint32) {
	b.tables = append(b.tables, append([]byte{FuncRef}, Limits(lo, hi...)...))
}

// Global adds a global whose initial value is the constant expression init (without end) and returns its index.
func (b *Builder) Global(t ValType, mutable bool, init []byte) uint32 {
	m := byte(0)
	if mutable {
		m = 1
	}
	b.globals = append(b.globals, append(append([]byte{t, m}, init...), OpEnd))
	return uint32(len(b.globals)) - 1
}

// ExportFunc exports a function.
func (b *Builder) ExportFunc(name string, index uint32) { b.Export(name, 0, index) }

// ExportMemory exports memory 0.
func (b *Builder) ExportMemory(name string) { b.Export(name, 2, 0) }

// Export exports an item: kind 0 function, 1 table, 2 memory, 3 global.
func (b *Builder) Export(name string, kind byte, index uint32) {
	b.exports = append(b.exports, append(append(Name(name), kind), Uleb(uint64(index))...))
}

// Start sets the function that runs at instantiation.
func (b *Builder) Start(index uint32) { b.start = &index }

// Element adds an active segment of function indices at offset of table 0.
func (b *Builder) Element(offset int32, funcs ...uint32) {
	enc := append([]byte{0x00}, I32Const(offset)...)
	enc = append(append(enc, OpEnd), Uleb(uint64(len(funcs)))...)
	for _, f := range funcs {
		enc = append(enc, Uleb(uint64(f))...)
	}
	b.elements = append(b.elements, enc)
}

// Data adds an active segment at offset of memory 0.
func (b *Builder) Data(offset int32, data []byte) {
	enc := append([]byte{0x00}, I32Const(offset)...)
	b.datas = append(b.datas, append(append(enc, OpEnd), Bytes(data)...))
}

// PassiveData adds a passive segment and returns its index.
func (b *Builder) PassiveData(data []byte) uint32 {
	b.dataCount = true
	b.datas = append(b.datas, append([]byte{0x01}, Bytes(data)...))
	return uint32(len(b.datas)) - 1
}

// Custom adds a custom section at the end of the module.
func (b *Builder) Custom(name string, data []byte) {
	b.custom = append(b.custom, Section(SectionCustom, append(Name(name), data...))...)
}

// Module returns the encoded module.
func (b *Builder) Module() []byte {
	out := Preamble()
	vec := func(id byte, items [][]byte) {
		if len(items) > 0 {
			out = append(out, Section(id, Vec(items...))...)
		}
	}
	vec(SectionType, b.types)
	vec(SectionImport, b.imports)
	vec(SectionFunction, b.funcs)
	vec(SectionTable, b.tables)
	vec(SectionMemory, b.memories)
	vec(SectionGlobal, b.globals)
	vec(SectionExport, b.exports)
	if b.start != nil {
		out = append(out, Section(SectionStart, Uleb(uint64(*b.start)))...)
	}
	vec(SectionElement, b.elements)
	if b.dataCount {
		out = append(out, Section(SectionDataCount, Uleb(uint64(len(b.datas))))...)
	}
	vec(SectionCode, b.codes)
	vec(SectionData, b.datas)
	return append(out, b.custom...)
}

// Section encodes one section.
func Section(id byte, payload []byte) []byte { return append([]byte{id}, Bytes(payload)...) }

// Vec encodes a vector: the count, then the items.
func Vec(items ...[]byte) []byte {
	out := Uleb(uint64(len(items)))
	for _, it := range items {
		out = append(out, it...)
	}
	return out
}

// Bytes encodes a byte vector: the length, then the bytes.
func Bytes(data []byte) []byte { return append(Uleb(uint64(len(data))), data...) }

// Name encodes a name.
func Name(s string) []byte { return Bytes([]byte(s)) }

// Limits encodes the limits of a memory or table.
func Limits(lo uint32, hi ...uint32) []byte {
	if len(hi) == 0 {
		return append([]byte{0x00}, Uleb(uint64(lo))...)
	}
	return append(append([]byte{0x01}, Uleb(uint64(lo))...), Uleb(uint64(hi[0]))...)
}

// Uleb encodes an unsigned LEB128 number.
func Uleb(v uint64) []byte { return binary.AppendUvarint(nil, v) }

// Sleb encodes a signed LEB128 number.
func Sleb(v int64) []byte {
	var out []byte
	for {
		c := byte(v & 0x7f)
		v >>= 7
		if (v == 0 && c&0x40 == 0) || (v == -1 && c&0x40 != 0) {
			return append(out, c)
		}
		out = append(out, c|0x80)
	}
}

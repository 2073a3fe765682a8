package wasmtest

import "bytes"

// Bomb is an upload that must do no harm: few bytes that make decoders or compilers take very much memory or time.
type Bomb struct {
	Name   string
	Module []byte
	Want   []string // what the reason of the refusal says; for a Costly one, "compile limit"
	Costly bool     // it passes every count: it ends at the limits of the process that compiles it
}

// Bombs are all of them.
func Bombs() []Bomb {
	head := func(sections ...[]byte) []byte { return append(Preamble(), Code(sections...)...) }
	huge := Uleb(1<<32 - 1)
	var tables [][]byte
	for range 8 {
		tables = append(tables, Code([]byte{FuncRef}, Limits(1<<27)))
	}
	void := Section(SectionType, Vec([]byte{0x60, 0, 0}))
	oneFunction := Section(SectionFunction, Vec([]byte{0}))
	return []Bomb{
		{Name: "2^32-1 imports, in 15 bytes", Module: head(Section(SectionImport, huge)), Want: []string{"4294967295 imports"}},
		{Name: "2^32-1 locals, in 30 bytes", Module: head(void, oneFunction, Section(SectionCode, Vec(Bytes(Code(Uleb(1), huge, []byte{I32, OpEnd}))))),
			Want: []string{"more than 10000 locals"}},
		{Name: "a data segment of 4 GiB, in 22 bytes", Module: head(Section(SectionMemory, Vec(Limits(1))), Section(SectionData, Code(Uleb(1), []byte{1}, huge))),
			Want: []string{"damaged or cut short"}},
		{Name: "8 tables of 2^27, in 59 bytes", Module: head(Section(SectionTable, Vec(tables...))), Want: []string{"8 tables"}},
		{Name: "a table of 2^27, in 17 bytes", Module: head(Section(SectionTable, Vec(tables[0]))), Want: []string{"134217728 entries"}},
		{Name: "a table that grows to 2^31, in 68 bytes", Module: growingTable(), Want: []string{"grows the table, which has no maximum"}},
		{Name: "119,248 functions", Module: head(void, Section(SectionFunction, append(Uleb(119_248), make([]byte, 119_248)...))), Want: []string{"119248 functions"}},
		{Name: "a million null elements", Module: head(Section(SectionTable, Vec(Code([]byte{FuncRef}, Limits(1)))),
			Section(SectionElement, Code(Uleb(1), []byte{5, FuncRef}, Uleb(1_000_000), bytes.Repeat([]byte{0xd0, FuncRef, OpEnd}, 1_000_000)))), Want: []string{"more than 262144 entries"}},
		{Name: "2,000 locals in 2,000 loops", Module: phis(2000, 2000, 1), Want: []string{"2000 locals"}},
		{Name: "100,000 nested blocks", Module: nested(100_000), Want: []string{"nest"}},
		{Name: "a br_table of a million", Module: wideTable(1_000_000, 1), Want: []string{"br_table"}},
		{Name: "60 functions of as many locals in loops as are accepted", Module: phis(1000, 250, 60), Want: []string{"compile limit"}, Costly: true},
		{Name: "60 br_tables as wide as is accepted", Module: wideTable(16_000, 60), Want: []string{"compile limit"}, Costly: true},
		{Name: "80,000 ifs in a row", Module: ifs(80_000), Want: []string{"compile limit"}, Costly: true},
	}
}

// growingTable grows a table that says no maximum by 2^31.
func growingTable() []byte {
	var b Builder
	b.Table(1)
	return b.Command(nil, Ops(0xd0, FuncRef), I32Const(-1<<31), Ops(0xfc, 15, 0, OpDrop))
}

// phis is a reactor with functions that carry locals into nested loops.
func phis(locals, loops, functions int) []byte {
	var b Builder
	code := bytes.Repeat([]byte{OpLoop, BlockEmpty}, loops)
	for i := range uint32(locals) {
		code = Code(code, LocalGet(i), I32Const(1), Ops(OpI32Add), LocalSet(i))
	}
	for range loops {
		code = Code(code, LocalGet(0), BrIf(0), Ops(OpEnd))
	}
	for range functions {
		b.Func(nil, nil, []Local{{Count: uint32(locals), Type: I32}}, code)
	}
	return b.Reactor(nil, I32Const(0))
}

func nested(blocks int) []byte {
	var b Builder
	b.Func(nil, nil, nil, bytes.Repeat([]byte{OpBlock, BlockEmpty}, blocks), bytes.Repeat([]byte{OpEnd}, blocks))
	return b.Reactor(nil, I32Const(0))
}

// wideTable is a reactor with a function of tables that all go to the same label.
func wideTable(targets, tables int) []byte {
	var b Builder
	table := Code([]byte{OpBlock, BlockEmpty}, I32Const(0), []byte{OpBrTable}, Uleb(uint64(targets)), make([]byte, targets+1), []byte{OpEnd})
	b.Func(nil, nil, nil, bytes.Repeat(table, tables))
	return b.Reactor(nil, I32Const(0))
}

func ifs(n int) []byte {
	var b Builder
	branch := Code(I32Const(0), []byte{OpIf, BlockEmpty}, LocalGet(0), I32Const(1), []byte{OpI32Add}, LocalSet(0), []byte{OpEnd})
	b.Func(nil, nil, []Local{{Count: 1, Type: I32}}, bytes.Repeat(branch, n))
	return b.Reactor(nil, I32Const(0))
}

// Again is the same module with a custom section in front, so that nobody can remember it. What is no core module stays as it is.
func (b Bomb) Again(n uint64) []byte {
	if !bytes.HasPrefix(b.Module, preamble) {
		return b.Module
	}
	return Code(Preamble(), Section(SectionCustom, Code(Name("n"), Uleb(n))), b.Module[len(preamble):])
}

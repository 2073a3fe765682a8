package admission

// PageBytes is the size of a page of linear memory.
const PageBytes = 64 << 10

// Limits bound a module. A zero field means its default. Every vector count is besides bounded by the bytes that follow it.
type Limits struct {
	SizeBytes      int   // whole module; default 64 MiB
	MemoryBytes    int64 // what a job may use, rounded down to whole pages; default 128 MiB
	Types          int   // default 10,000
	Params         int   // of one function type; default 256
	Results        int   // of one function type; default 64
	Imports        int   // default 256
	Exports        int   // default 256
	Functions      int   // defined ones; default 100,000
	Globals        int   // default 10,000
	Elements       int   // element segments; default 10,000
	ElementEntries int   // entries of all element segments together; default 262,144
	Datas          int   // data segments; default 100,000, which is where the Go linker stops splitting them
	TableEntries   int   // of the one table; default 65,536
	NameBytes      int   // an import's or export's name; default 1 KiB
	NameEntries    int   // entries of the name section; default 1,000,000
	BodyBytes      int   // one function's code; default 1 MiB
	Locals         int   // of one function, parameters not counted; default 10,000
	Nesting        int   // blocks inside each other; default 4,000: deeper nests compile in quadratic time
	BrTargets      int   // of one br_table; default 16,384: larger ones compile in quadratic time
	// LoopLocals bounds, per function, the values the compiler may have to carry into blocks: parameters and locals times loop
	// heads, plus what block types carry. Default 250,000; four times that took 12 s and 1.2 GiB to compile.
	LoopLocals int
}

// WithDefaults returns the limits with every zero field set.
func (l Limits) WithDefaults() Limits {
	set := func(v *int, d int) {
		if *v == 0 {
			*v = d
		}
	}
	set(&l.SizeBytes, 64<<20)
	if l.MemoryBytes == 0 {
		l.MemoryBytes = 128 << 20
	}
	set(&l.Types, 10_000)
	set(&l.Params, 256)
	set(&l.Results, 64)
	set(&l.Imports, 256)
	set(&l.Exports, 256)
	set(&l.Functions, 100_000)
	set(&l.Globals, 10_000)
	set(&l.Elements, 10_000)
	set(&l.ElementEntries, 256<<10)
	set(&l.Datas, 100_000)
	set(&l.TableEntries, 64<<10)
	set(&l.NameBytes, 1<<10)
	set(&l.NameEntries, 1_000_000)
	set(&l.BodyBytes, 1<<20)
	set(&l.Locals, 10_000)
	set(&l.Nesting, 4_000)
	set(&l.BrTargets, 16<<10)
	set(&l.LoopLocals, 250_000)
	return l
}

package admission

import (
	"strings"
	"testing"
	"time"

	"github.com/taskhost/taskhost/abi"
	"github.com/taskhost/taskhost/handlers"
	wt "github.com/taskhost/taskhost/handlers/wasm/wasmtest"
)

func section(id byte, payload ...[]byte) []byte {
	return wt.Section(id, wt.Code(payload...))
}

func module(sections ...[]byte) []byte { return append(wt.Preamble(), wt.Code(sections...)...) }

// reactorWith is a sound reactor, changed by edit before its handler is added.
func reactorWith(edit func(b *wt.Builder)) []byte {
	var b wt.Builder
	edit(&b)
	return b.Reactor(nil, wt.I32Const(0))
}

// body is a sound reactor with one more function of this code.
func body(code ...[]byte) []byte {
	return reactorWith(func(b *wt.Builder) { b.Func(nil, nil, nil, code...) })
}

// refused checks that a module is refused with every part of the reason, and fast: bombs are small, so this is far from the
// time that any of them would need in an engine.
func refused(t *testing.T, m []byte, parts ...string) {
	t.Helper()
	var rep *Report
	var ref *handlers.Refusal
	if took := processorTime(t, func() { rep, ref = Check(m, Limits{}) }); took > 2*time.Second {
		t.Errorf("the check took %v of processor time", took)
	}
	if ref == nil {
		t.Fatalf("accepted as %+v; want a refusal with %q", rep, parts)
	}
	if rep != nil {
		t.Error("a refusal and a report")
	}
	for _, p := range parts {
		if !strings.Contains(ref.Error(), p) {
			t.Errorf("the reason is %q; want it to contain %q", ref.Error(), p)
		}
	}
}

func accepted(t *testing.T, m []byte) *Report {
	t.Helper()
	rep, ref := Check(m, Limits{})
	if ref != nil {
		t.Fatalf("refused: %v", ref)
	}
	return rep
}

func TestCase075Component(t *testing.T) {
	t.Parallel()
	const want = "this is a WebAssembly component; build a core module (wasip1)"
	eight := []byte{0x00, 0x61, 0x73, 0x6d, 0x0d, 0x00, 0x01, 0x00}
	refused(t, eight, want)
	refused(t, append(eight, section(1, wt.EchoReactor())...), want)
}

func TestNotAModule(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct{ data, want string }{
		"empty":      {"", "the upload is empty"},
		"text":       {"hello, this is a text file\n", "this is a text file"},
		"short text": {"hi", "this is a text file"},
		"utf-8 cut":  {strings.Repeat("a", 511) + "ß" + strings.Repeat("b", 100), "this is a text file"},
		"wat":        {"(module)", "text form (use wat2wasm)"},
		"gzip":       {"\x1f\x8b\x08\x00", "a gzip file"},
		"elf":        {"\x7fELF\x02\x01", "a native Linux program"},
		"zip":        {"PK\x03\x04....", "a zip file"},
		"html":       {"<!doctype html>", "an HTML or XML text"},
		"garbage":    {"\x01\x02\x03\x04\x05", "a file of unknown kind"},
		"magic only": {"\x00asm", "only 4 bytes arrived"},
		"version 2":  {"\x00asm\x02\x00\x00\x00", "version 2; only version 1"},
		"no section": {"\x00asm\x01\x00\x00\x00", "has no memory"},
	} {
		t.Run(name, func(t *testing.T) { t.Parallel(); refused(t, []byte(tc.data), tc.want) })
	}
}

// Bombs: tiny modules that make an engine's decoder allocate without end, and small ones whose compilation does not end.
func TestBombs(t *testing.T) {
	t.Parallel()
	huge := wt.Uleb(1<<32 - 1)
	fn := wt.Code(section(wt.SectionType, wt.Vec([]byte{0x60, 0, 0})), section(wt.SectionFunction, wt.Vec([]byte{0})))
	nested := func(n int) []byte {
		return body(wt.Ops([]byte(strings.Repeat("\x02\x40", n) + strings.Repeat("\x0b", n))...))
	}
	for name, tc := range map[string]struct {
		module []byte
		want   []string
	}{
		"import count, 15 bytes": {module(section(wt.SectionImport, huge)), []string{"the import section", "4294967295 imports", "0 bytes follow"}},
		"locals, 37 bytes": {module(fn, section(wt.SectionCode, wt.Vec(wt.Bytes(wt.Code(wt.Uleb(1), huge, []byte{0x7f, 0x0b}))))),
			[]string{"function 0 has more than 10000 locals"}},
		"locals that sum past 2^32": {module(fn, section(wt.SectionCode, wt.Vec(wt.Bytes(wt.Code(wt.Uleb(2), wt.Uleb(1<<31), []byte{0x7f}, wt.Uleb(1<<31), []byte{0x7f, 0x0b}))))),
			[]string{"more than 10000 locals"}},
		"8 tables of 2^27, 82 bytes": {module(section(wt.SectionTable, wt.Vec(func() (ts [][]byte) {
			for range 8 {
				ts = append(ts, wt.Code([]byte{0x70}, wt.Limits(1<<27)))
			}
			return
		}()...))), []string{"8 tables"}},
		"one table of 2^27": {reactorWith(func(b *wt.Builder) { b.Table(1<<27, 1<<27) }), []string{"134217728 entries", "65536"}},
		"table.grow without maximum": {reactorWith(func(b *wt.Builder) {
			b.Table(1)
			b.Func(nil, nil, nil, wt.Ops(0xd0, 0x70), wt.I32Const(1), wt.Ops(0xfc, 15, 0, wt.OpDrop))
		}), []string{"function 0 grows the table, which has no maximum"}},
		"table.grow with a huge maximum": {reactorWith(func(b *wt.Builder) {
			b.Table(1, 1<<31)
			b.Func(nil, nil, nil, wt.Ops(0xd0, 0x70), wt.I32Const(1), wt.Ops(0xfc, 15, 0, wt.OpDrop))
		}), []string{"maximum is 2147483648 entries"}},
		"data length": {module(section(wt.SectionMemory, wt.Vec(wt.Limits(1))), section(wt.SectionData, wt.Uleb(1), []byte{0x00, 0x41, 0x00, 0x0b}, huge)),
			[]string{"bytes of a data segment"}},
		"type count":         {module(section(wt.SectionType, huge)), []string{"4294967295 types"}},
		"parameters":         {module(section(wt.SectionType, wt.Uleb(1), []byte{0x60}, huge)), []string{"4294967295 parameters"}},
		"export count":       {module(section(wt.SectionExport, huge)), []string{"4294967295 exports"}},
		"global count":       {module(section(wt.SectionGlobal, huge)), []string{"4294967295 globals"}},
		"element count":      {module(section(wt.SectionElement, huge)), []string{"4294967295 element segments"}},
		"code count":         {module(section(wt.SectionCode, huge)), []string{"4294967295 function bodies"}},
		"function count":     {module(section(wt.SectionFunction, huge)), []string{"4294967295 functions"}},
		"name section count": {append(wt.EchoReactor(), section(wt.SectionCustom, wt.Name("name"), []byte{1}, wt.Bytes(huge))...), []string{"the name section", "4294967295 names"}},
		"null elements": {reactorWith(func(b *wt.Builder) {
			b.Table(1, 1)
			b.Func(nil, nil, nil)
			b.Element(0, make([]uint32, 300_000)...)
		}), []string{"element segments have more than 262144 entries"}},
		"nested blocks, 300 KB": {nested(100_000), []string{"function 0 nests blocks more than 4000 deep"}},
		"br_table, 1 MB": {reactorWith(func(b *wt.Builder) {
			b.Func(nil, nil, nil, wt.I32Const(0), wt.Ops(wt.OpBrTable), wt.Uleb(1_000_000), make([]byte, 1_000_001))
		}), []string{"br_table of 1000000 targets"}},
		"phi, 2000 locals in 2000 loops": {reactorWith(func(b *wt.Builder) {
			b.Func(nil, nil, []wt.Local{{Count: 2000, Type: wt.I32}}, wt.Ops([]byte(strings.Repeat("\x03\x40", 2000)+strings.Repeat("\x0b", 2000))...))
		}), []string{"2000 locals", "more than 250000 values"}},
		"phi by block types": {reactorWith(func(b *wt.Builder) {
			wide := b.Type(make60(60), make60(60))
			b.Func(nil, nil, nil, wt.Ops([]byte(strings.Repeat("\x02"+string(wt.Sleb(int64(wide))), 3000)+strings.Repeat("\x0b", 3000))...))
		}), []string{"more than 250000 values"}},
	} {
		t.Run(name, func(t *testing.T) { t.Parallel(); refused(t, tc.module, tc.want...) })
	}
}

func make60(n int) []wt.ValType { return []byte(strings.Repeat("\x7f", n)) }

// The limits sit where real programs pass: one below each must be accepted.
func TestJustWithinLimits(t *testing.T) {
	t.Parallel()
	deep := body(wt.Ops([]byte(strings.Repeat("\x02\x40", 4000) + strings.Repeat("\x0b", 4000))...))
	if got := accepted(t, deep).Counts.MaxNesting; got != 4000 {
		t.Errorf("nesting is %d", got)
	}
	wide := body(wt.I32Const(0), wt.Ops(wt.OpBrTable), wt.Uleb(16384), make([]byte, 16385))
	if got := accepted(t, wide).Counts.MaxBrTargets; got != 16384 {
		t.Errorf("br_table targets are %d", got)
	}
	loops := reactorWith(func(b *wt.Builder) {
		b.Func(nil, nil, []wt.Local{{Count: 1000, Type: wt.I32}}, wt.Ops([]byte(strings.Repeat("\x03\x40\x0b", 250))...))
	})
	if got := accepted(t, loops).Counts.MaxLoopLocals; got != 250_000 {
		t.Errorf("loop locals are %d", got)
	}
}

// The three shapes of the case, as far as counting can refuse them; what is left meets the compile child's limits.
func TestCase078CompileCostShapes(t *testing.T) {
	t.Parallel()
	t.Run("119,248 empty functions", func(t *testing.T) {
		t.Parallel()
		const n = 119_248
		refused(t, module(
			section(wt.SectionType, wt.Vec([]byte{0x60, 0, 0})),
			section(wt.SectionFunction, wt.Uleb(n), make([]byte, n)),
			section(wt.SectionCode, wt.Uleb(n), []byte(strings.Repeat("\x02\x00\x0b", n)))), "119248 functions; the most accepted is 100000")
	})
	t.Run("massive null element segment", func(t *testing.T) {
		t.Parallel()
		const n = 2_000_000
		refused(t, module(section(wt.SectionTable, wt.Vec(wt.Code([]byte{0x70}, wt.Limits(1)))),
			section(wt.SectionElement, wt.Uleb(1), []byte{5, 0x70}, wt.Uleb(n), []byte(strings.Repeat("\xd0\x70\x0b", n)))), "more than 262144 entries")
	})
	t.Run("one function of 781 KB with many locals and loops", func(t *testing.T) {
		t.Parallel()
		refused(t, reactorWith(func(b *wt.Builder) {
			b.Func(nil, nil, []wt.Local{{Count: 9000, Type: wt.I64}}, wt.Ops([]byte(strings.Repeat("\x03\x40\x0b", 781_000/3))...))
		}), "9000 locals")
	})
}

func TestCase080ImportsAreAllListed(t *testing.T) {
	t.Parallel()
	m := reactorWith(func(b *wt.Builder) {
		b.ImportFunc("env", "abort", wt.Types(wt.I32, wt.I32, wt.I32, wt.I32), nil)
		b.Import("env", "memory", 2, wt.Limits(1))
		b.ImportFunc("wasi_unstable", "fd_write", wt.Types(wt.I32, wt.I32, wt.I32, wt.I32), wt.Types(wt.I32))
		b.ImportFunc(abi.ModuleHost, "log", wt.Types(wt.I32), wt.Types(wt.I64))
		b.ImportFunc(abi.ModuleHost, "frobnicate", nil, wt.Types(wt.F64, wt.F32))
		b.ImportFunc("gojs", "runtime.wasmExit", wt.Types(wt.I32), nil)
		b.ImportHost("input_len")
	})
	_, ref := Check(m, Limits{})
	if ref == nil {
		t.Fatal("accepted")
	}
	want := []string{
		"env.abort(i32, i32, i32, i32) -> ()",
		"env.memory (memory)",
		"gojs.runtime.wasmExit(i32) -> ()",
		"taskhost_v1.frobnicate() -> (f64, f32)",
		"taskhost_v1.log(i32) -> i64 (the host offers it as (i32, i32, i32) -> i32)",
		"wasi_unstable.fd_write(i32, i32, i32, i32) -> i32",
	}
	if strings.Join(ref.Details, "\n") != strings.Join(want, "\n") {
		t.Errorf("the details are\n%s\nwant\n%s", strings.Join(ref.Details, "\n"), strings.Join(want, "\n"))
	}
	if !strings.Contains(ref.Reason, "6 imports") || !strings.Contains(ref.Reason, "GOOS=wasip1") {
		t.Errorf("the reason is %q", ref.Reason)
	}
}

func TestCase081Contract(t *testing.T) {
	t.Parallel()
	sound := func(b *wt.Builder) (nop, handle uint32) {
		return b.Func(nil, nil, nil), b.Func(nil, wt.Types(wt.I32), nil, wt.I32Const(0))
	}
	for name, tc := range map[string]struct {
		edit func(b *wt.Builder)
		want []string
	}{
		"no memory": {func(b *wt.Builder) {
			nop, handle := sound(b)
			b.ExportFunc(abi.ExportMarker, nop)
			b.ExportFunc(abi.ExportHandle, handle)
		}, []string{"the module has no memory"}},
		"memory under another name": {func(b *wt.Builder) {
			b.Memory(1)
			b.ExportMemory("mem")
		}, []string{`exports its memory as mem; export it as "memory"`}},
		"memory not exported": {func(b *wt.Builder) { b.Memory(1) }, []string{"does not export its memory"}},
		"a function named memory": {func(b *wt.Builder) {
			nop, _ := sound(b)
			b.Memory(1)
			b.ExportFunc("memory", nop)
		}, []string{`the export "memory" is a function; it must be the memory`}},
		"wrong signature of the handler": {func(b *wt.Builder) {
			b.Memory(1)
			b.ExportMemory("memory")
			nop, _ := sound(b)
			b.ExportFunc(abi.ExportMarker, nop)
			b.ExportFunc(abi.ExportHandle, b.Func(wt.Types(wt.I32, wt.I32), wt.Types(wt.I64), nil, wt.I64Const(0)))
		}, []string{"taskhost_handle has the signature (i32, i32) -> i64; () -> i32 is needed"}},
		"handler is a memory": {func(b *wt.Builder) {
			b.Memory(1)
			b.ExportMemory("memory")
			b.ExportMemory(abi.ExportHandle)
			nop, _ := sound(b)
			b.ExportFunc(abi.ExportMarker, nop)
		}, []string{"the export taskhost_handle is a memory; it must be a function () -> i32"}},
		"no marker": {func(b *wt.Builder) {
			b.Memory(1)
			b.ExportMemory("memory")
			_, handle := sound(b)
			b.ExportFunc(abi.ExportHandle, handle)
		}, []string{"not the marker taskhost_abi_v1"}},
		"wrong signature of _initialize": {func(b *wt.Builder) {
			b.Memory(1)
			b.ExportMemory("memory")
			nop, handle := sound(b)
			b.ExportFunc(abi.ExportMarker, nop)
			b.ExportFunc(abi.ExportHandle, handle)
			b.ExportFunc(abi.ExportInitialize, handle)
		}, []string{"_initialize has the signature () -> i32; () -> () is needed"}},
		"handler in a command": {func(b *wt.Builder) {
			b.Memory(1)
			b.ExportMemory("memory")
			nop, handle := sound(b)
			b.ExportFunc(abi.ExportStart, nop)
			b.ExportFunc(abi.ExportHandle, handle)
		}, []string{"build it as a reactor"}},
		"no handler": {func(b *wt.Builder) {
			b.Memory(1)
			b.ExportMemory("memory")
			nop, _ := sound(b)
			b.ExportFunc("run", nop)
		}, []string{"exports no handler", "this module exports memory, run"}},
		"duplicate export": {func(b *wt.Builder) {
			b.Memory(1)
			b.ExportMemory("memory")
			b.ExportMemory("memory")
		}, []string{"exports memory twice"}},
		"reserved name": {func(b *wt.Builder) {
			b.Memory(1)
			b.ExportMemory("memory")
			nop, _ := sound(b)
			b.ExportFunc(abi.ReservedPrefix+"x", nop)
		}, []string{"exports __taskhost_x", "reserved"}},
		"export of a function that is not there": {func(b *wt.Builder) {
			b.Memory(1)
			b.ExportMemory("memory")
			b.ExportFunc(abi.ExportStart, 7)
		}, []string{"_start is function 7, which does not exist"}},
		"more memory than the limit": {func(b *wt.Builder) { b.Memory(2049) }, []string{"begins with 128.1 MiB of memory; the limit is 128 MiB"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var b wt.Builder
			tc.edit(&b)
			refused(t, b.Module(), tc.want...)
		})
	}
}

// A module named lib exports memory and a function; another imports them, or takes the host's module names for its own.
func TestCase084NoImportsFromOtherModules(t *testing.T) {
	t.Parallel()
	refused(t, reactorWith(func(b *wt.Builder) {
		b.ImportFunc("lib", "steal", nil, nil)
		b.Import("lib", "memory", 2, wt.Limits(1))
	}), "2 imports", "lib.memory (memory)", "lib.steal() -> ()")
	refused(t, reactorWith(func(b *wt.Builder) { b.Import(abi.ModuleWASI, "memory", 2, wt.Limits(1)) }), "wasi_snapshot_preview1.memory (memory)")
	// Exporting names of the host's own functions shadows nothing: exports are never linked.
	accepted(t, reactorWith(func(b *wt.Builder) { b.ExportFunc("fd_write", b.Func(nil, nil, nil)) }))
}

func TestMemoryIsReportedBothWays(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		memory        []uint32
		declared, max int64
		warning       string
	}{
		{[]uint32{256, 32768}, 2 << 30, 128 << 20, "growing beyond the limit of 128 MiB fails"},
		{[]uint32{1}, 4 << 30, 128 << 20, ""},
		{[]uint32{1, 3}, 3 << 16, 3 << 16, ""},
		{[]uint32{2000}, 4 << 30, 128 << 20, "little is left"},
	} {
		rep := accepted(t, reactorWith(func(b *wt.Builder) { b.Memory(tc.memory[0], tc.memory[1:]...) }))
		want := handlers.Memory{MinBytes: int64(tc.memory[0]) * PageBytes, MaxBytes: tc.max}
		if rep.Memory != want || rep.DeclaredMemory.MaxBytes != tc.declared {
			t.Errorf("memory %v is reported as %+v, declared maximum %d", tc.memory, rep.Memory, rep.DeclaredMemory.MaxBytes)
		}
		if got := strings.Join(rep.MemoryWarnings, "; "); tc.warning == "" && got != "" || !strings.Contains(got, tc.warning) {
			t.Errorf("memory %v warns %q; want %q", tc.memory, got, tc.warning)
		}
	}
}

func TestRefusedFeaturesAreNamed(t *testing.T) {
	t.Parallel()
	memory := func(flags byte) []byte {
		return module(section(wt.SectionMemory, wt.Vec([]byte{flags, 1, 1})))
	}
	for name, tc := range map[string]struct {
		module []byte
		want   []string
	}{
		"shared memory":      {memory(3), []string{"shared memory (threads)"}},
		"64-bit memory":      {memory(4), []string{"memory64"}},
		"custom page size":   {memory(8), []string{"custom page sizes"}},
		"tags":               {module(section(wt.SectionTag, wt.Vec([]byte{0, 0}))), []string{"exception handling"}},
		"struct type":        {module(section(wt.SectionType, wt.Vec([]byte{0x5f, 0}))), []string{"garbage collection"}},
		"rec group":          {module(section(wt.SectionType, wt.Vec([]byte{0x4e, 0}))), []string{"garbage collection"}},
		"typed reference":    {module(section(wt.SectionType, wt.Vec([]byte{0x60, 1, 0x64, 0, 0}))), []string{"typed function references"}},
		"exnref":             {module(section(wt.SectionType, wt.Vec([]byte{0x60, 1, 0x69, 0}))), []string{"exception handling"}},
		"atomics":            {body(wt.Ops(0xfe, 0x03, 0x00)), []string{"threads (atomic instructions) (in function 0)"}},
		"try":                {body(wt.Ops(0x06, 0x40, 0x0b)), []string{"exception handling (in function 0)"}},
		"try_table":          {body(wt.Ops(0x1f, 0x40, 0x00, 0x0b)), []string{"exception handling"}},
		"return_call":        {body(wt.Ops(0x12, 0x00)), []string{"tail calls (in function 0)"}},
		"call_ref":           {body(wt.Ops(0x14, 0x00)), []string{"typed function references"}},
		"struct.new":         {body(wt.Ops(0xfb, 0x00, 0x00)), []string{"garbage collection"}},
		"relaxed SIMD":       {body(wt.Ops(0xfd, 0x80, 0x02)), []string{"relaxed SIMD"}},
		"second memory":      {body(wt.I32Const(0), wt.Ops(0x28, 0x42, 0x01, 0x00, wt.OpDrop)), []string{"more than one memory"}},
		"grow second memory": {body(wt.I32Const(0), wt.Ops(0x40, 0x01, wt.OpDrop)), []string{"more than one memory"}},
		"extended constants": {reactorWith(func(b *wt.Builder) {
			b.Global(wt.I32, false, wt.Code(wt.I32Const(1), wt.I32Const(2), wt.Ops(wt.OpI32Add)))
		}), []string{"extended constant expressions"}},
	} {
		t.Run(name, func(t *testing.T) { t.Parallel(); refused(t, tc.module, tc.want...) })
	}
}

func TestStructureIsStrict(t *testing.T) {
	t.Parallel()
	types := section(wt.SectionType, wt.Vec([]byte{0x60, 0, 0}))
	funcs := section(wt.SectionFunction, wt.Vec([]byte{0}))
	code := section(wt.SectionCode, wt.Vec([]byte{2, 0, 0x0b}))
	for name, tc := range map[string]struct {
		module []byte
		want   []string
	}{
		"sections out of order":           {module(funcs, types), []string{"type 0 does not exist"}},
		"a section twice":                 {module(types, types), []string{"the type section", "after the type section"}},
		"code before data count":          {module(types, funcs, code, section(wt.SectionDataCount, []byte{0})), []string{"after the code section"}},
		"unknown section":                 {module(section(99)), []string{"no section of kind 99"}},
		"section longer than the module":  {module([]byte{1, 200, 1}), []string{"200 bytes of the section are announced"}},
		"bytes left in a section":         {module(section(wt.SectionType, wt.Vec([]byte{0x60, 0, 0}), []byte{0})), []string{"bytes left over: 1"}},
		"functions without code":          {module(types, funcs), []string{"functions declared 1, with code 0"}},
		"code without functions":          {module(types, code), []string{"functions declared 0, with code 1"}},
		"data count without data":         {module(section(wt.SectionDataCount, []byte{3})), []string{"data segments announced 3, present 0"}},
		"number of six bytes":             {module([]byte{1, 0x80, 0x80, 0x80, 0x80, 0x80, 0x00}), []string{"does not fit 32 bits"}},
		"number of 33 bits":               {module([]byte{1, 0xff, 0xff, 0xff, 0xff, 0x1f}), []string{"does not fit 32 bits"}},
		"constant of 33 bits":             {body(wt.Ops(0x41, 0xff, 0xff, 0xff, 0xff, 0x0f, wt.OpDrop)), []string{"does not fit 32 bits"}},
		"name not UTF-8":                  {reactorWith(func(b *wt.Builder) { b.ExportFunc("\xff", b.Func(nil, nil, nil)) }), []string{"not UTF-8"}},
		"body that ends inside a block":   {body(wt.Ops(wt.OpBlock, wt.BlockEmpty)), []string{"function 0 ends inside a block"}},
		"body that goes on after its end": {body(wt.Ops(wt.OpEnd, wt.OpNop)), []string{"bytes left over: 2"}},
		"unknown opcode":                  {body(wt.Ops(0xff)), []string{"0xff, which is no instruction"}},
		"else outside of if":              {body(wt.Ops(wt.OpElse)), []string{"else outside of an if"}},
		"block of an unknown type":        {body(wt.Ops(wt.OpBlock, 0x20, wt.OpEnd)), []string{"block of type 32"}},
		"long form of a vector opcode":    {body(wt.Ops(0xfd, 0x8c, 0x00)), []string{"a vector instruction has the number"}},
		"start that is not there":         {module(section(wt.SectionStart, []byte{9})), []string{"start function 9 does not exist"}},
		"minimum over maximum":            {module(section(wt.SectionMemory, wt.Vec(wt.Limits(2, 1)))), []string{"minimum of 2 and a maximum of 1"}},
		"memory over 4 GiB":               {module(section(wt.SectionMemory, wt.Vec(wt.Limits(65537)))), []string{"65537 pages"}},
	} {
		t.Run(name, func(t *testing.T) { t.Parallel(); refused(t, tc.module, tc.want...) })
	}
	if _, ref := Check(make([]byte, 65), Limits{SizeBytes: 64}); ref == nil || !strings.Contains(ref.Reason, "at most 64 bytes") {
		t.Errorf("a module over the size limit: %v", ref)
	}
}

// Every cut of a sound module is refused, and so is no cut at all accepted by chance.
func TestTruncatedAnywhere(t *testing.T) {
	t.Parallel()
	m := wt.EchoReactor()
	accepted(t, m)
	for n := range len(m) {
		if rep, ref := Check(m[:n], Limits{}); ref == nil {
			t.Fatalf("the first %d of %d bytes were accepted: %+v", n, len(m), rep)
		}
	}
}

func TestSignedNumbers(t *testing.T) {
	t.Parallel()
	for _, v := range []int64{0, 1, -1, 63, 64, -64, -65, 1<<31 - 1, -1 << 31, 1<<32 - 1, 1<<63 - 1, -1 << 63} {
		for _, bits := range []int{32, 33, 64} {
			fits := bits == 64 || v >= -1<<(bits-1) && v < 1<<(bits-1)
			s := &scan{}
			r := &reader{s: s, b: wt.Sleb(v), what: "a test"}
			if got := r.signed(bits); fits && (got != v || s.refusal != nil) || !fits && s.refusal == nil {
				t.Errorf("%d in %d bits: %d, %v", v, bits, got, s.refusal)
			}
		}
	}
	padded := &reader{s: &scan{}, b: []byte{0xff, 0xff, 0xff, 0xff, 0x7f}, what: "a test"}
	if got := padded.signed(32); got != -1 || padded.failed() {
		t.Errorf("-1 in five bytes: %d, %v", got, padded.s.refusal)
	}
}

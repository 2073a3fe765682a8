package admission

import (
	"bytes"
	"fmt"
	"sort"
	"strings"

	"github.com/taskhost/taskhost/abi"
	"github.com/taskhost/taskhost/handlers"
)

// importContract accepts functions that the host offers, with their signatures, and lists everything else.
func (s *scan) importContract() {
	var unknown []string
	for _, imp := range s.imports {
		module, name := string(imp.module), string(imp.name)
		full := show(imp.module) + "." + show(imp.name)
		if imp.kind != kindFunc {
			unknown = append(unknown, full+" ("+kindName(imp.kind)+")")
			continue
		}
		t := s.types[imp.typeIndex]
		asked := signature(t.params, t.results)
		switch have, ok := offered(module, name); {
		case !ok:
			unknown = append(unknown, full+asked)
		case have != asked:
			unknown = append(unknown, full+asked+" (the host offers it as "+have+")")
		}
	}
	if len(unknown) == 0 {
		return
	}
	sort.Strings(unknown)
	what := "an import"
	if len(unknown) > 1 {
		what = fmt.Sprintf("%d imports", len(unknown))
	}
	s.refusal = &handlers.Refusal{
		Reason: fmt.Sprintf("the module has %s that the host does not offer; only functions of %s and %s can be imported%s",
			what, abi.ModuleWASI, abi.ModuleHost, s.importHint()),
		Details: unknown,
	}
}

// importHint says what the foreign module names usually mean.
func (s *scan) importHint() string {
	for _, known := range []struct{ prefix, hint string }{
		{"gojs", " (it was built for the browser: use GOOS=wasip1 in place of GOOS=js)"},
		{"go", " (it was built for the browser: use GOOS=wasip1 in place of GOOS=js)"},
		{"wasi_unstable", " (wasi_unstable is older than preview 1: rebuild with a current tool chain)"},
		{"wasi:", " (it was built for WASI preview 2: build for wasip1)"},
		{"wbg", " (it was built with wasm-bindgen for the browser: build for wasm32-wasip1)"},
		{"__wbindgen", " (it was built with wasm-bindgen for the browser: build for wasm32-wasip1)"},
		{"env", " (env holds what the linker left undefined)"},
	} {
		for _, imp := range s.imports {
			m := string(imp.module)
			if m == known.prefix || known.prefix != "go" && known.prefix != "env" && strings.HasPrefix(m, known.prefix) {
				return known.hint
			}
		}
	}
	return ""
}

// memoryContract asks for one memory within the limit, exported under its name.
func (s *scan) memoryContract() {
	if s.memories == 0 {
		s.refuse("the module has no memory; a handler must define one memory and export it as %q", abi.ExportMemory)
		return
	}
	if _, _, refusal := JudgeMemory(s.declaredMemory(), s.limits.MemoryBytes); refusal != nil {
		s.refusal = refusal
		return
	}
	if e := s.export(abi.ExportMemory); e != nil {
		if e.kind != kindMemory {
			s.refuse("the export %q is a %s; it must be the memory", abi.ExportMemory, kindName(e.kind))
		}
		return
	}
	for _, e := range s.exports {
		if e.kind == kindMemory {
			s.refuse("the module exports its memory as %s; export it as %q", show(e.name), abi.ExportMemory)
			return
		}
	}
	s.refuse("the module does not export its memory; export it as %q", abi.ExportMemory)
}

func (s *scan) export(name string) *exported {
	for i := range s.exports {
		if string(s.exports[i].name) == name {
			return &s.exports[i]
		}
	}
	return nil
}

// exportContract checks names and indices, and decides which kind of handler the module is (abi/SPEC.md §2 and §3).
func (s *scan) exportContract() {
	seen := make(map[string]bool, len(s.exports))
	for _, e := range s.exports {
		name := string(e.name)
		switch {
		case seen[name]:
			s.refuse("the module exports %s twice", show(e.name))
		case bytes.HasPrefix(e.name, []byte(abi.ReservedPrefix)):
			s.refuse("the module exports %s; names that begin with %s are reserved for the host", show(e.name), abi.ReservedPrefix)
		case e.kind == kindFunc:
			if _, ok := s.funcType(e.index); !ok {
				s.refuse("the module is damaged: its export %s is function %d, which does not exist", show(e.name), e.index)
			}
		case e.kind == kindTag:
			s.unsupported("exception handling (it exports a tag)")
		case e.kind == kindMemory && int64(e.index) >= int64(s.memories), e.kind == kindTable && int64(e.index) >= int64(s.tables),
			e.kind == kindGlobal && int64(e.index) >= int64(s.globals):
			s.refuse("the module is damaged: its export %s is %s %d, which does not exist", show(e.name), kindName(e.kind), e.index)
		}
		seen[name] = true
	}
	start, handle, marker := s.export(abi.ExportStart), s.export(abi.ExportHandle), s.export(abi.ExportMarker)
	switch {
	case start != nil && handle != nil:
		s.refuse("the module exports both %s and %s; build it as a reactor (Go: -buildmode=c-shared, clang: -mexec-model=reactor), so that it has no %s",
			abi.ExportStart, abi.ExportHandle, abi.ExportStart)
	case handle != nil:
		s.functionExport(handle, "() -> i32")
		if marker == nil {
			s.refuse("the module exports %s and not the marker %s; a reactor needs both", abi.ExportHandle, abi.ExportMarker)
			return
		}
		s.functionExport(marker, "() -> ()")
		if init := s.export(abi.ExportInitialize); init != nil {
			s.functionExport(init, "() -> ()")
		}
	case start != nil:
		s.functionExport(start, "() -> ()")
	default:
		s.refuse("the module exports no handler; a command exports %s () -> (), a reactor exports %s () -> i32 and %s () -> (), and this module exports %s",
			abi.ExportStart, abi.ExportHandle, abi.ExportMarker, s.exportList())
	}
}

func (s *scan) functionExport(e *exported, want string) {
	if e.kind != kindFunc {
		s.refuse("the export %s is a %s; it must be a function %s", show(e.name), kindName(e.kind), want)
		return
	}
	t, ok := s.funcType(e.index)
	if have := signature(t.params, t.results); ok && have != want {
		s.refuse("the export %s has the signature %s; %s is needed", show(e.name), have, want)
	}
}

// exportList names the first exports, to show the author what the host saw.
func (s *scan) exportList() string {
	const most = 8
	if len(s.exports) == 0 {
		return "nothing"
	}
	var names []string
	for i, e := range s.exports {
		if i == most {
			names = append(names, fmt.Sprintf("%d more", len(s.exports)-most))
			break
		}
		names = append(names, show(e.name))
	}
	return strings.Join(names, ", ")
}

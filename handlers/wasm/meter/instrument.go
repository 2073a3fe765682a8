package meter

import (
	"fmt"

	"github.com/taskhost/taskhost/handlers/wasm/wasmbin"
)

// Version changes whenever the same input gives another output. It is a part of the key of what is made from it.
const Version = 4

// Result is a rewritten module.
type Result struct {
	Module   []byte
	HasStart bool     // the start section became ExportStart
	Globals  []uint32 // original indices of the mutable globals that were exported
	Map      *Map     // from the code of Module to that of the original
	HasLines bool     // Module has DWARF line information
}

// Instrument rewrites a valid module. It returns an error that is a wasmbin.ErrFormat when it cannot read the module, and one that is
// an ErrReserved when the module uses a name that is added. It takes time and memory linear in the module's size.
func Instrument(b []byte) (*Result, error) {
	m, err := parse(b)
	if err != nil {
		return nil, err
	}
	bodies, err := m.rewrite()
	if err != nil {
		return nil, err
	}
	w := &writer{m: m, out: make([]byte, 0, len(b)+len(b)/8)}
	w.codeSection(bodies, len(b)+len(b)/8)
	if err := w.module(); err != nil {
		return nil, err
	}
	return &w.result, nil
}

// writer writes the rewritten module, section by section.
type writer struct {
	m      *module
	bodies []byte // the code section
	out    []byte
	result Result
}

func (w *writer) module() error {
	w.out = append(w.out, wasmbin.Header...)
	bodyOf := map[byte]*wasmbin.Section{}
	var custom []wasmbin.Section
	for i := range w.m.sections {
		if s := &w.m.sections[i]; s.ID == wasmbin.SectionCustom {
			custom = append(custom, *s)
		} else {
			bodyOf[s.ID] = s
		}
	}
	_, w.result.HasStart = bodyOf[wasmbin.SectionStart]
	for _, s := range w.steps(bodyOf[wasmbin.SectionStart]) {
		original := []byte{0}
		present := bodyOf[s.id]
		if present != nil {
			original = present.Body
		} else if !s.always {
			continue
		}
		r := wasmbin.NewReader(original)
		body, err := s.rewrite(r)
		if err == nil {
			err = r.Err()
		}
		if err != nil {
			return fmt.Errorf("section %d: %w", s.id, err)
		}
		w.out = wasmbin.AppendSection(w.out, s.id, body)
	}
	named := false
	for _, s := range custom {
		if body := w.nameSection(s.Body, !named); body != nil {
			w.out = wasmbin.AppendSection(w.out, wasmbin.SectionCustom, body)
			named = true
		}
	}
	if !named && len(w.m.pieces) > 0 {
		w.out = wasmbin.AppendSection(w.out, wasmbin.SectionCustom, w.nameSection(wasmbin.AppendName(nil, "name"), true))
	}
	if lines := lineInfo(custom, w.result.Map); lines != nil {
		w.out = append(w.out, lines...)
		w.result.HasLines = true
	}
	w.result.Module = w.out
	return nil
}

// sectionStep rewrites one section.
type sectionStep struct {
	id      byte
	always  bool // also when the original has none
	rewrite func(r *wasmbin.Reader) ([]byte, error)
}

func (w *writer) steps(start *wasmbin.Section) []sectionStep {
	keep := func(r *wasmbin.Reader) ([]byte, error) { return r.Bytes(uint32(r.Len())), nil }
	return []sectionStep{
		{wasmbin.SectionType, true, w.types},
		{wasmbin.SectionImport, true, w.imports},
		{wasmbin.SectionFunction, false, w.functions},
		{wasmbin.SectionTable, false, keep},
		{wasmbin.SectionMemory, false, keep},
		{wasmbin.SectionGlobal, true, w.globals},
		{wasmbin.SectionExport, true, func(r *wasmbin.Reader) ([]byte, error) { return w.exports(r, start) }},
		{wasmbin.SectionElement, false, w.elements},
		{wasmbin.SectionDataCount, false, keep},
		{wasmbin.SectionCode, false, w.code},
		{wasmbin.SectionData, false, keep},
	}
}

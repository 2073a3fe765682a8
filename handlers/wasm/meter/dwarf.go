package meter

import (
	"debug/dwarf"
	"encoding/binary"
	"strings"

	"github.com/taskhost/taskhost/handlers/wasm/wasmbin"
)

// lineInfo makes DWARF sections for the rewritten module that say the source file, line and column of its code, from those of the
// original: one compilation unit and one line program, of version 4. It returns nil when the original has none, or none that
// can be read: DWARF is a help for people, and never a reason to refuse a module.
func lineInfo(custom []wasmbin.Section, m *Map) (sections []byte) {
	defer func() {
		if recover() != nil { // debug/dwarf reads what an uploader wrote
			sections = nil
		}
	}()
	data, lines := readDWARF(custom)
	if data == nil {
		return nil
	}
	w := &lineWriter{m: m, places: m.inverse(), files: map[string]uint64{}}
	if !w.copyUnits(data, lines) || len(w.program) == 0 {
		return nil
	}
	return w.sections()
}

// readDWARF reads the sections of DWARF 4 and 5; nil if there are none.
func readDWARF(custom []wasmbin.Section) (data *dwarf.Data, lines []byte) {
	found := map[string][]byte{}
	for _, s := range custom {
		r := wasmbin.NewReader(s.Body)
		if name := string(r.Name()); strings.HasPrefix(name, ".debug_") {
			found[name] = r.Bytes(uint32(r.Len()))
		}
	}
	lines = found[".debug_line"]
	if len(lines) == 0 || len(found[".debug_info"]) == 0 {
		return nil, nil
	}
	data, err := dwarf.New(found[".debug_abbrev"], nil, nil, found[".debug_info"], lines, nil, found[".debug_ranges"], found[".debug_str"])
	if err != nil {
		return nil, nil
	}
	for _, name := range []string{".debug_addr", ".debug_line_str", ".debug_rnglists", ".debug_str_offsets"} {
		if b, ok := found[name]; ok && data.AddSection(name, b) != nil {
			return nil, nil
		}
	}
	return data, lines
}

// lineWriter writes the line program.
type lineWriter struct {
	m       *Map
	places  *inverse
	files   map[string]uint64 // numbers, from 1
	names   []string
	program []byte

	open    bool // a sequence is being written
	address uint32
	file    uint64
	line    int
	column  int
}

// copyUnits copies the lines of all units. It is false when the programs cannot be read, or overlap, which would let a small input make
// endless work.
func (w *lineWriter) copyUnits(data *dwarf.Data, lines []byte) bool {
	left := len(lines)
	seen := map[int64]bool{}
	for r := data.Reader(); ; r.SkipChildren() {
		unit, err := r.Next()
		if err != nil {
			return false
		}
		if unit == nil {
			return true
		}
		at, ok := unit.Val(dwarf.AttrStmtList).(int64)
		if unit.Tag != dwarf.TagCompileUnit || !ok || seen[at] {
			continue
		}
		seen[at] = true
		if at < 0 || at+4 > int64(len(lines)) {
			return false
		}
		length := int64(binary.LittleEndian.Uint32(lines[at:])) + 4
		if length > int64(left) {
			return false
		}
		left -= int(length)
		lr, err := data.LineReader(unit)
		if err != nil {
			return false
		}
		for e := (dwarf.LineEntry{}); lr.Next(&e) == nil; {
			w.row(&e)
		}
		w.end(w.address)
	}
}

// Opcodes of line programs, DWARF 4, section 6.2.5.
const (
	lnsCopy        = 1
	lnsAdvancePC   = 2
	lnsAdvanceLine = 3
	lnsSetFile     = 4
	lnsSetColumn   = 5
	lneEndSequence = 1
	lneSetAddress  = 2
)

// row writes one row, unless its code does not exist: linkers leave lines of what they dropped, at impossible places.
func (w *lineWriter) row(e *dwarf.LineEntry) {
	address, ok := uint32(0), false
	if e.Address < 1<<32 {
		address, ok = w.places.rewritten(uint32(e.Address))
	}
	switch {
	case !ok:
		w.end(w.address)
		return
	case e.EndSequence:
		w.end(max(address, w.address))
		return
	case e.File == nil:
		return
	}
	if w.open && address < w.address {
		w.end(w.address)
	}
	if !w.open {
		w.program = append(w.program, 0, 5, lneSetAddress)
		w.program = binary.LittleEndian.AppendUint32(w.program, address)
		w.open, w.address, w.file, w.line, w.column = true, address, 1, 1, 0
	}
	if file := w.fileNumber(e.File.Name); file != w.file {
		w.program = binary.AppendUvarint(append(w.program, lnsSetFile), file)
		w.file = file
	}
	if e.Column != w.column && e.Column >= 0 {
		w.program = binary.AppendUvarint(append(w.program, lnsSetColumn), uint64(e.Column))
		w.column = e.Column
	}
	if e.Line != w.line {
		w.program = wasmbin.AppendS64(append(w.program, lnsAdvanceLine), int64(e.Line-w.line))
		w.line = e.Line
	}
	w.advance(address)
	w.program = append(w.program, lnsCopy)
}

func (w *lineWriter) advance(address uint32) {
	if address > w.address {
		w.program = binary.AppendUvarint(append(w.program, lnsAdvancePC), uint64(address-w.address))
		w.address = address
	}
}

// end ends the sequence, if one is open.
func (w *lineWriter) end(address uint32) {
	if w.open {
		w.advance(address)
		w.program = append(w.program, 0, 1, lneEndSequence)
		w.open = false
	}
}

func (w *lineWriter) fileNumber(name string) uint64 {
	n, ok := w.files[name]
	if !ok {
		w.names = append(w.names, name)
		n = uint64(len(w.names))
		w.files[name] = n
	}
	return n
}

// sections are the custom sections, complete.
func (w *lineWriter) sections() []byte {
	// One tag, a compilation unit without children: its line program, and the code it covers.
	const abbreviations = "\x01\x11\x00" + "\x10\x17" + "\x11\x01" + "\x12\x06" + "\x00\x00" + "\x00"
	info := []byte{4, 0, 0, 0, 0, 0, 4, 1, 0, 0, 0, 0} // version, abbreviations, size of addresses; the tag, the line program
	info = binary.LittleEndian.AppendUint32(info, 1)   // from: 0 would say that the code was dropped
	end := uint32(1)
	if n := len(w.m.functions); n > 0 {
		end = w.m.functions[n-1].rewrittenEnd
	}
	info = binary.LittleEndian.AppendUint32(info, end)

	// Instructions of one byte, statements, a line range that is not used, and how many operands the opcodes below 13 take.
	header := []byte("\x01\x01\x01\xfb\x0e\x0d" + "\x00\x01\x01\x01\x01\x00\x00\x00\x01\x00\x00\x01" + "\x00")
	for _, name := range w.names {
		header = append(append(header, strings.ReplaceAll(name, "\x00", "")...), 0, 0, 0, 0)
	}
	header = append(header, 0)
	line := binary.LittleEndian.AppendUint32([]byte{4, 0}, uint32(len(header)))
	line = append(append(line, header...), w.program...)

	out := debugSection(nil, ".debug_abbrev", []byte(abbreviations))
	out = debugSection(out, ".debug_info", withLength(info))
	return debugSection(out, ".debug_line", withLength(line))
}

func withLength(b []byte) []byte {
	return append(binary.LittleEndian.AppendUint32(nil, uint32(len(b))), b...)
}

func debugSection(out []byte, name string, data []byte) []byte {
	return wasmbin.AppendSection(out, wasmbin.SectionCustom, append(wasmbin.AppendName(nil, name), data...))
}

// Package srcline finds the source line of a place in a module's code, for the traces of traps.
//
// wazero can do that by itself, from DWARF in the module, but then keeps a table of all lines, some 100 bytes for each, for as long as the
// module is loaded: an uploader could fill a runner's memory with it. So Split moves the line program, as package meter writes it, to a file of
// its own, and leaves a tiny one that makes wazero name the place in the code and nothing else. Find then reads the file from front to
// back, in constant memory, when something has trapped.
package srcline

import (
	"bytes"
	"debug/dwarf"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/taskhost/taskhost/handlers/wasm/wasmbin"
)

// Sections of DWARF that a line program consists of.
const (
	abbreviations = ".debug_abbrev"
	information   = ".debug_info"
	program       = ".debug_line"
)

// Split moves the line information out of a module. table is what Find reads; nil when there is none, and module is the input then.
func Split(module []byte) (stubbed, table []byte, err error) {
	sections, err := wasmbin.Sections(module)
	if err != nil {
		return nil, nil, err
	}
	stubbed, table = []byte(wasmbin.Header), []byte(wasmbin.Header)
	found := false
	for _, s := range sections {
		if name := customName(s); strings.HasPrefix(name, ".debug_") {
			table = wasmbin.AppendSection(table, s.ID, s.Body)
			found = found || name == program
			continue
		}
		stubbed = wasmbin.AppendSection(stubbed, s.ID, s.Body)
	}
	if !found {
		return module, nil, nil
	}
	return append(stubbed, stub()...), table, nil
}

func customName(s wasmbin.Section) string {
	if s.ID != wasmbin.SectionCustom {
		return ""
	}
	return string(wasmbin.NewReader(s.Body).Name())
}

// stub is one compilation unit that covers all code, with one line. DWARF 4, sections 6.2 and 7.5.
func stub() []byte {
	const last = 0xfffffff0
	const abbrev = "\x01\x11\x00" + "\x10\x17" + "\x11\x01" + "\x12\x06" + "\x00\x00" + "\x00" // a unit: its program, from, to
	info := append([]byte{4, 0, 0, 0, 0, 0, 4, 1, 0, 0, 0, 0}, 1, 0, 0, 0)
	info = binary.LittleEndian.AppendUint32(info, last)
	header := "\x01\x01\x01\xfb\x0e\x0d" + "\x00\x01\x01\x01\x01\x00\x00\x00\x01\x00\x00\x01" + "\x00" + "code\x00\x00\x00\x00" + "\x00"
	line := binary.LittleEndian.AppendUint32([]byte{4, 0}, uint32(len(header)))
	line = append(line, header...)
	line = append(line, 0, 5, 2, 0, 0, 0, 0, 1) // at address 0, a row
	line = binary.AppendUvarint(append(line, 2), last)
	line = append(line, 0, 1, 1) // the end of the sequence
	out := section(nil, abbreviations, []byte(abbrev))
	out = section(out, information, sized(info))
	return section(out, program, sized(line))
}

func sized(b []byte) []byte {
	return append(binary.LittleEndian.AppendUint32(nil, uint32(len(b))), b...)
}

func section(out []byte, name string, data []byte) []byte {
	return wasmbin.AppendSection(out, wasmbin.SectionCustom, append(wasmbin.AppendName(nil, name), data...))
}

// ErrFormat is wrapped by errors about a table that cannot be read.
var ErrFormat = errors.New("line information cannot be read")

// Find returns "file:line:column" for the places of which a table knows it. A place is an offset into the code section of the module.
func Find(table []byte, places []uint64) (_ map[uint64]string, err error) {
	defer func() {
		if p := recover(); p != nil { // debug/dwarf, on what a compile child has left
			err = fmt.Errorf("%w: %v", ErrFormat, p)
		}
	}()
	sections, err := wasmbin.Sections(table)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrFormat, err)
	}
	part := map[string][]byte{}
	for _, s := range sections {
		r := wasmbin.NewReader(s.Body)
		name := string(r.Name())
		part[name] = r.Bytes(uint32(r.Len()))
	}
	data, err := dwarf.New(part[abbreviations], nil, nil, part[information], part[program], nil, nil, nil)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrFormat, err)
	}
	unit, err := data.Reader().Next()
	if err != nil || unit == nil {
		return nil, fmt.Errorf("%w: no unit (%w)", ErrFormat, err)
	}
	reader, err := data.LineReader(unit)
	if err != nil || reader == nil {
		return nil, fmt.Errorf("%w: no lines (%w)", ErrFormat, err)
	}
	found := map[uint64]string{}
	var row, before dwarf.LineEntry
	open := false // before is a row of the same sequence
	for {
		if err := reader.Next(&row); errors.Is(err, io.EOF) {
			return found, nil
		} else if err != nil {
			return nil, fmt.Errorf("%w: %w", ErrFormat, err)
		}
		if open && before.File != nil {
			for _, place := range places {
				if before.Address <= place && place < row.Address {
					found[place] = position(&before)
				}
			}
		}
		before, open = row, !row.EndSequence
	}
}

// position is a row without the directories of the machine that built it: two names are enough to find a file.
func position(row *dwarf.LineEntry) string {
	name := row.File.Name
	if i := strings.LastIndexByte(name, '/'); i > 0 {
		if j := strings.LastIndexByte(name[:i], '/'); j >= 0 {
			name = name[j+1:]
		}
	}
	var b bytes.Buffer
	fmt.Fprintf(&b, "%s:%d", name, row.Line)
	if row.Column > 0 {
		fmt.Fprintf(&b, ":%d", row.Column)
	}
	return b.String()
}

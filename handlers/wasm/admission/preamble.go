package admission

import (
	"bytes"
	"encoding/binary"
	"unicode/utf8"
)

// preamble checks the first eight bytes, and says what the upload is when it is something else.
func (s *scan) preamble(module []byte) {
	if len(module) >= 8 && bytes.Equal(module[:4], []byte("\x00asm")) {
		version, layer := binary.LittleEndian.Uint16(module[4:]), binary.LittleEndian.Uint16(module[6:])
		switch {
		case version == 1 && layer == 0:
		case layer == 1:
			s.refuse("this is a WebAssembly component; build a core module (wasip1)")
		default:
			s.refuse("this is a WebAssembly module of version %d; only version 1 is accepted", binary.LittleEndian.Uint32(module[4:]))
		}
		return
	}
	switch {
	case len(module) == 0:
		s.refuse("the upload is empty; a WebAssembly core module (wasip1) is needed")
	case bytes.HasPrefix([]byte("\x00asm\x01\x00\x00\x00"), module):
		s.refuse("the module is cut short: only %d bytes arrived, and its preamble alone has 8", len(module))
	default:
		s.refuse("this is %s, not a WebAssembly module; build a core module (wasip1)", guess(module))
	}
}

// guess names a file by its first bytes.
func guess(b []byte) string {
	for _, known := range []struct{ magic, name string }{
		{"\x1f\x8b", "a gzip file"},
		{"BZh", "a bzip2 file"},
		{"\x28\xb5\x2f\xfd", "a zstd file"},
		{"\xfd7zXZ\x00", "an xz file"},
		{"PK\x03\x04", "a zip file"},
		{"\x7fELF", "a native Linux program (ELF)"},
		{"MZ", "a Windows program"},
		{"\xcf\xfa\xed\xfe", "a native macOS program (Mach-O)"},
		{"\xca\xfe\xba\xbe", "a native macOS program (Mach-O) or a Java class"},
		{"!<arch>\n", "an archive of object files"},
		{"BC\xc0\xde", "LLVM bitcode"},
		{"(module", "a module in text form (use wat2wasm)"},
		{"(component", "a component in text form"},
		{"<", "an HTML or XML text"},
	} {
		if bytes.HasPrefix(b, []byte(known.magic)) {
			return known.name
		}
	}
	if len(b) > 262 && string(b[257:262]) == "ustar" {
		return "a tar file"
	}
	if isText(b) {
		return "a text file"
	}
	return "a file of unknown kind"
}

func isText(b []byte) bool {
	head := b[:min(len(b), 512)]
	for len(head) > 0 {
		r, n := utf8.DecodeRune(head)
		if r == utf8.RuneError && n == 1 {
			return len(head) < utf8.UTFMax && len(b) > 512 // a rune cut by the window
		}
		if r < ' ' && r != '\n' && r != '\r' && r != '\t' && r != '\f' {
			return false
		}
		head = head[n:]
	}
	return true
}

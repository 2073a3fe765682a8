package queue

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// EscapeLogMessage makes a line that a handler wrote safe to show in a terminal or a list: a line break becomes the two
// characters \n (likewise \r and \t), every other control character and every byte that is not UTF-8 becomes \xNN, and the
// invisible characters that reorder or break text (C1, line separators, bidirectional controls) become \uNNNN.
// Backslashes stay as they are, so a message without such characters is returned unchanged.
func EscapeLogMessage(s string) string {
	i := 0
	for i < len(s) {
		r, size := utf8.DecodeRuneInString(s[i:])
		if needsEscape(r, size) {
			break
		}
		i += size
	}
	if i == len(s) {
		return s
	}
	var b strings.Builder
	b.Grow(len(s) + 16)
	b.WriteString(s[:i])
	for i < len(s) {
		r, size := utf8.DecodeRuneInString(s[i:])
		if needsEscape(r, size) {
			writeEscaped(&b, r, s[i])
		} else {
			b.WriteString(s[i : i+size])
		}
		i += size
	}
	return b.String()
}

func needsEscape(r rune, size int) bool {
	switch {
	case r == utf8.RuneError && size == 1: // not UTF-8
		return true
	case r < 0x20 || r >= 0x7f && r <= 0x9f: // C0, DEL, C1
		return true
	case r == 0x2028 || r == 0x2029: // line and paragraph separator
		return true
	case r == 0x200e || r == 0x200f || r == 0x061c || r >= 0x202a && r <= 0x202e || r >= 0x2066 && r <= 0x2069:
		return true // bidirectional controls
	}
	return false
}

func writeEscaped(b *strings.Builder, r rune, first byte) {
	switch {
	case r == '\n':
		b.WriteString(`\n`)
	case r == '\r':
		b.WriteString(`\r`)
	case r == '\t':
		b.WriteString(`\t`)
	case r == utf8.RuneError || r <= 0x7f:
		fmt.Fprintf(b, `\x%02x`, first)
	default:
		fmt.Fprintf(b, `\u%04x`, r)
	}
}

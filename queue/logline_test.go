package queue

import (
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"
)

func TestEscapeLogMessage(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"":                             "",
		"plain ü 日本 \\n":               "plain ü 日本 \\n",
		"a\nb\r\n\tc":                  `a\nb\r\n\tc`,
		"\x1b[31mred\x1b[0m":           `\x1b[31mred\x1b[0m`,
		"\x00\x07\x7f":                 `\x00\x07\x7f`,
		"\xff\xfe ok \xe2\x82":         `\xff\xfe ok \xe2\x82`,
		"\u0085\u009b":                 `\u0085\u009b`,
		"\u2028\u202eevil\u2066\u200f": `\u2028\u202eevil\u2066\u200f`,
		"\ufffd is a real character":   "\ufffd is a real character",
	} {
		if got := EscapeLogMessage(in); got != want {
			t.Errorf("EscapeLogMessage(%q) = %q, want %q", in, got, want)
		}
	}
}

func FuzzEscapeLogMessage(f *testing.F) {
	for _, s := range []string{"", "a\nb", "\x1b[2J", "\xff\xfe", "\u202e", "\\n", "ü\x00"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		got := EscapeLogMessage(s)
		if !utf8.ValidString(got) || strings.ContainsFunc(got, unicode.IsControl) {
			t.Fatalf("EscapeLogMessage(%q) = %q: not safe to print", s, got)
		}
		if again := EscapeLogMessage(got); again != got {
			t.Fatalf("escaping %q twice gives %q", got, again)
		}
	})
}

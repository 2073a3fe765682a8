package meter

import (
	"testing"

	"github.com/taskhost/taskhost/handlers/wasm/wasmbin"
)

// Two functions: 10 bytes at 5, with 2 bytes replaced by 6 at the fourth, and 4 bytes at 20, unchanged.
func TestMapBothWays(t *testing.T) {
	t.Parallel()
	m := &Map{
		steps: appendStep(appendStep(nil, 3, 2, 6), 1, 0, 4),
		functions: []mapped{
			{original: 5, originalEnd: 15, rewritten: 7, rewrittenEnd: 25, stepsEnd: 6},
			{original: 20, originalEnd: 24, rewritten: 30, rewrittenEnd: 34, steps: 6, stepsEnd: 6},
		},
	}
	for _, c := range []struct {
		rewritten, original uint32
		ok                  bool
	}{
		{6, 0, false}, {7, 5, true}, {9, 7, true}, {10, 8, true}, {15, 8, true}, {16, 10, true}, {17, 11, true}, {20, 11, true},
		{21, 11, true}, {24, 14, true}, {25, 0, false}, {30, 20, true}, {33, 23, true}, {34, 0, false},
	} {
		if got, ok := m.Original(c.rewritten); got != c.original || ok != c.ok {
			t.Errorf("Original(%d) = %d, %v; want %d, %v", c.rewritten, got, ok, c.original, c.ok)
		}
	}
	places := m.inverse()
	for _, c := range []struct {
		original, rewritten uint32
		ok                  bool
	}{
		{4, 0, false}, {5, 7, true}, {7, 9, true}, {8, 10, true}, {9, 16, true}, {10, 16, true}, {11, 17, true}, {12, 22, true},
		{15, 25, true}, {16, 0, false}, {20, 30, true}, {24, 34, true}, {25, 0, false},
	} {
		if got, ok := places.rewritten(c.original); got != c.rewritten || ok != c.ok {
			t.Errorf("rewritten(%d) = %d, %v; want %d, %v", c.original, got, ok, c.rewritten, c.ok)
		}
	}
}

// DWARF that cannot be read, or whose line programs overlap, is dropped.
func TestBadLineInfoIsDropped(t *testing.T) {
	t.Parallel()
	section := func(name string, data string) wasmbin.Section {
		return wasmbin.Section{Body: append(wasmbin.AppendName(nil, name), data...)}
	}
	for name, custom := range map[string][]wasmbin.Section{
		"none":  nil,
		"empty": {section(".debug_line", ""), section(".debug_info", ""), section(".debug_abbrev", "")},
		"noise": {section(".debug_line", "noise"), section(".debug_info", "more noise, and more"), section(".debug_abbrev", "x")},
		"length too large": {
			section(".debug_line", "\xff\xff\x00\x00rest"), section(".debug_abbrev", "\x01\x11\x00\x10\x17\x00\x00\x00"),
			section(".debug_info", "\x0c\x00\x00\x00\x04\x00\x00\x00\x00\x00\x04\x01\x00\x00\x00\x00"),
		},
	} {
		if out := lineInfo(custom, &Map{}); out != nil {
			t.Errorf("%s: %d bytes", name, len(out))
		}
	}
}

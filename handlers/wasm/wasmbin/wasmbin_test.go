package wasmbin

import (
	"bytes"
	"errors"
	"math"
	"slices"
	"testing"
)

func TestNumbersBothWays(t *testing.T) {
	t.Parallel()
	for _, x := range []uint32{0, 1, 127, 128, 16383, 16384, 1<<28 - 1, 1 << 28, math.MaxUint32} {
		r := NewReader(AppendU32(nil, x))
		if got := r.U32(); got != x || !r.Done() || r.Err() != nil {
			t.Errorf("%d is read as %d, %d bytes left, %v", x, got, r.Len(), r.Err())
		}
	}
	for _, x := range []int64{0, 1, -1, 63, 64, -64, -65, math.MaxInt32, math.MinInt32, 1<<32 - 1, -1 << 32} {
		r := NewReader(AppendS64(nil, x))
		if got := r.S33(); got != x || !r.Done() || r.Err() != nil {
			t.Errorf("%d is read as %d, %d bytes left, %v", x, got, r.Len(), r.Err())
		}
		r = NewReader(AppendS64(nil, x))
		if r.SkipSigned(33); !r.Done() || r.Err() != nil {
			t.Errorf("%d is not skipped: %d bytes left, %v", x, r.Len(), r.Err())
		}
	}
	for _, x := range []int64{math.MaxInt64, math.MinInt64} {
		r := NewReader(AppendS64(nil, x))
		if r.SkipSigned(64); !r.Done() || r.Err() != nil {
			t.Errorf("%d is not skipped: %d bytes left, %v", x, r.Len(), r.Err())
		}
	}
}

func TestFaults(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		input  string
		read   func(r *Reader)
		offset int
	}{
		"nothing left":           {"", func(r *Reader) { r.Byte() }, 0},
		"too few bytes":          {"\x03ab", func(r *Reader) { r.Name() }, 1},
		"number ends early":      {"\x80", func(r *Reader) { r.U32() }, 1},
		"number of 33 bits":      {"\x80\x80\x80\x80\x10", func(r *Reader) { r.U32() }, 5},
		"number of six bytes":    {"\x80\x80\x80\x80\x80\x00", func(r *Reader) { r.U32() }, 5},
		"signed, six bytes":      {"\x80\x80\x80\x80\x80\x00", func(r *Reader) { r.SkipSigned(32) }, 5},
		"block type, six bytes":  {"\x80\x80\x80\x80\x80\x00", func(r *Reader) { r.S33() }, 5},
		"vector too long":        {"\x03ab", func(r *Reader) { r.Count() }, 1},
		"unknown opcode":         {"\x06", func(r *Reader) { r.Instr(&Instr{}) }, 1},
		"unknown misc opcode":    {"\xfc\x12", func(r *Reader) { r.Instr(&Instr{}) }, 2},
		"unknown vector opcode":  {"\xfd\x80\x02", func(r *Reader) { r.Instr(&Instr{}) }, 3},
		"threads":                {"\xfe\x00", func(r *Reader) { r.Instr(&Instr{}) }, 1},
		"not constant":           {"\x20\x00\x0b", func(r *Reader) { r.ConstExpr(nil) }, 2},
		"vector, not constant":   {"\xfd\x0e\x0b", func(r *Reader) { r.ConstExpr(nil) }, 2},
		"table of branches ends": {"\x0e\x02\x00", func(r *Reader) { r.Instr(&Instr{}) }, 2},
	} {
		r := NewReader([]byte(c.input))
		c.read(r)
		fault := &FormatError{}
		if !errors.As(r.Err(), &fault) || !errors.Is(r.Err(), ErrFormat) || fault.Offset != c.offset {
			t.Errorf("%s: %v, want offset %d", name, r.Err(), c.offset)
		}
		if r.Byte() != 0 || r.U32() != 0 || r.Len() != 0 || r.Bytes(1) != nil {
			t.Errorf("%s: it reads on after the fault", name)
		}
	}
}

func TestInstr(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		code string
		want Instr
	}{
		{"\x00", Instr{}},
		{"\x02\x40", Instr{Op: OpBlock, Block: -64}},
		{"\x03\x7f", Instr{Op: OpLoop, Block: -1}},
		{"\x04\x05", Instr{Op: OpIf, Block: 5}},
		{"\x10\x80\x01", Instr{Op: OpCall, Index: 128, IndexAt: 1, IndexTo: 3}},
		{"\x11\x02\x00", Instr{Op: OpCallIndirect, Index: 2, IndexAt: 1, IndexTo: 2}},
		{"\x1c\x01\x7f", Instr{Op: OpSelectTyped}},
		{"\x28\x02\x10", Instr{Op: 0x28}},
		{"\x41\x7f", Instr{Op: OpI32Const}},
		{"\x43abcd", Instr{Op: OpF32Const}},
		{"\x44abcdefgh", Instr{Op: OpF64Const}},
		{"\xd0\x70", Instr{Op: OpRefNull}},
		{"\xd2\x03", Instr{Op: OpRefFunc, Index: 3, IndexAt: 1, IndexTo: 2}},
		{"\xfc\x07", Instr{Op: OpMisc, Sub: 7}},
		{"\xfc\x0b\x00", Instr{Op: OpMisc, Sub: MiscMemoryFill, IndexAt: 2, IndexTo: 3}},
		{"\xfc\x0c\x04\x00", Instr{Op: OpMisc, Sub: MiscTableInit, Index: 4, IndexAt: 2, IndexTo: 3}},
		{"\xfd\x0c0123456789abcdef", Instr{Op: OpVector, Sub: 12}},
		{"\xfd\x54\x00\x00\x01", Instr{Op: OpVector, Sub: 84}},
		{"\xfd\xff\x01", Instr{Op: OpVector, Sub: 255}},
	} {
		r := NewReader([]byte(c.code))
		var got Instr
		r.Instr(&got)
		c.want.End = len(c.code)
		if r.Err() != nil || !r.Done() || got.Op != c.want.Op || got.Sub != c.want.Sub || got.End != c.want.End || got.Index != c.want.Index ||
			got.IndexAt != c.want.IndexAt || got.IndexTo != c.want.IndexTo || got.Block != c.want.Block {
			t.Errorf("%x is %+v, want %+v, error %v", c.code, got, c.want, r.Err())
		}
	}
}

func TestBranchTable(t *testing.T) {
	t.Parallel()
	r := NewReader([]byte("\x00\x0e\x02\x81\x01\x00\x07"))
	var in Instr
	r.Instr(&in)
	r.Instr(&in)
	var labels []uint32
	var places []int
	in.EachTarget(func(label uint32, at, to int) { labels, places = append(labels, label), append(places, at, to) })
	if r.Err() != nil || len(labels) != 3 || labels[0] != 129 || labels[1] != 0 || labels[2] != 7 || in.Widest != 129 {
		t.Errorf("labels %v, widest %d, error %v", labels, in.Widest, r.Err())
	}
	if want := []int{3, 5, 5, 6, 6, 7}; !slices.Equal(places, want) {
		t.Errorf("places %v, want %v", places, want)
	}
}

func TestSections(t *testing.T) {
	t.Parallel()
	join := func(ids ...byte) []byte {
		out := []byte(Header)
		for _, id := range ids {
			out = AppendSection(out, id, []byte{id, id})
		}
		return out
	}
	got, err := Sections(join(0, 1, 0, 9, 12, 10, 11, 0))
	if err != nil || len(got) != 8 || got[4].ID != 12 || got[4].Offset != 8+4*4+2 || !bytes.Equal(got[4].Body, []byte{12, 12}) {
		t.Errorf("sections %+v, %v", got, err)
	}
	for name, module := range map[string][]byte{
		"no header":     []byte("\x00asm\x02\x00\x00\x00"),
		"short":         []byte("\x00asm"),
		"out of order":  join(3, 2),
		"repeated":      join(3, 3),
		"count late":    join(10, 12),
		"unknown":       join(14),
		"longer than b": append(join(1), 2, 100, 1),
	} {
		if _, err := Sections(module); !errors.Is(err, ErrFormat) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// FuzzReader: no input panics, and reading always ends.
func FuzzReader(f *testing.F) {
	f.Add([]byte(Header))
	f.Add(AppendSection([]byte(Header), SectionCode, []byte("\x02\x40\x41\x00\x0e\x01\x00\x00\x0b\xfd\x0c0123456789abcdef\xfc\x0a\x00\x00")))
	f.Fuzz(func(t *testing.T, b []byte) {
		sections, err := Sections(b)
		if err != nil && !errors.Is(err, ErrFormat) {
			t.Errorf("an error of an unknown kind: %v", err)
		}
		for _, s := range sections {
			if !bytes.Equal(b[s.Offset:s.Offset+len(s.Body)], s.Body) {
				t.Errorf("section %d is not at offset %d", s.ID, s.Offset)
			}
		}
		r := NewReader(b)
		for in := (Instr{}); !r.Done(); {
			r.Instr(&in)
			if r.Err() == nil && (in.End <= in.At || in.End != r.Pos() || in.IndexTo > in.End) {
				t.Errorf("instruction %+v ends at %d", in, r.Pos())
			}
			in.EachTarget(func(uint32, int, int) {})
		}
		NewReader(b).ConstExpr(func(Instr) {})
	})
}

package redisq

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
)

// The heads of records, settings and answers that scripts keep are MessagePack, which Redis's Lua reads and writes natively.
// Only what such scripts can hold is needed here: nil, booleans, numbers, byte strings, arrays, and maps with string keys.

var errMsgpack = errors.New("not the MessagePack that was expected")

func packInt(b []byte, n int64) []byte {
	switch {
	case n >= 0 && n < 128:
		return append(b, byte(n))
	case n >= 0 && n <= math.MaxUint32:
		return binary.BigEndian.AppendUint32(append(b, 0xce), uint32(n))
	default:
		return binary.BigEndian.AppendUint64(append(b, 0xd3), uint64(n))
	}
}

func packFloat(b []byte, f float64) []byte {
	return binary.BigEndian.AppendUint64(append(b, 0xcb), math.Float64bits(f))
}

func packString[T ~string | ~[]byte](b []byte, s T) []byte {
	switch n := len(s); {
	case n < 32:
		b = append(b, 0xa0|byte(n))
	case n < 1<<8:
		b = append(b, 0xd9, byte(n))
	case n < 1<<16:
		b = binary.BigEndian.AppendUint16(append(b, 0xda), uint16(n))
	default:
		b = binary.BigEndian.AppendUint32(append(b, 0xdb), uint32(n))
	}
	return append(b, s...)
}

// packer writes a map of at most 15 fields, leaving zero values out.
type packer struct {
	b []byte
	n int
	o int // where the map begins
}

func newPacker(b []byte) packer { return packer{b: append(b, 0x80), o: len(b)} }

func (p *packer) int(field string, n int64) {
	if n != 0 {
		p.b, p.n = packInt(packString(p.b, field), n), p.n+1
	}
}

func (p *packer) str(field, s string) {
	if s != "" {
		p.b, p.n = packString(packString(p.b, field), s), p.n+1
	}
}

func (p *packer) bytes(field string, s []byte) {
	if len(s) > 0 {
		p.b, p.n = packString(packString(p.b, field), s), p.n+1
	}
}

func (p *packer) float(field string, f float64) {
	p.b, p.n = packFloat(packString(p.b, field), f), p.n+1
}

func (p *packer) end() []byte {
	if p.n > 15 {
		panic("redisq: a packed map has more than 15 fields")
	}
	p.b[p.o] = 0x80 | byte(p.n)
	return p.b
}

// fields is a decoded map. Its values are nil, bool, int64, float64, string, []any or fields.
type fields map[string]any

// int returns a number; what is absent or no number is 0.
func (f fields) int(name string) int64 {
	switch v := f[name].(type) {
	case int64:
		return v
	case float64:
		return int64(v)
	}
	return 0
}

func (f fields) str(name string) string {
	s, _ := f[name].(string)
	return s
}

func (f fields) sub(name string) fields {
	m, _ := f[name].(fields)
	return m
}

func (f fields) list(name string) []any {
	l, _ := f[name].([]any)
	return l
}

// unpackMap reads a map that takes up all of s.
func unpackMap(s string) (fields, error) {
	u := unpacker{s: s}
	v, err := u.value(0)
	if err != nil {
		return nil, err
	}
	m, ok := v.(fields)
	if l, empty := v.([]any); empty && len(l) == 0 { // how Lua writes an empty table
		m, ok = fields{}, true
	}
	if !ok || len(u.s) != 0 {
		return nil, errMsgpack
	}
	return m, nil
}

type unpacker struct{ s string }

// unpackDepth bounds the nesting of what is read.
const unpackDepth = 16

func (u *unpacker) take(n int) (string, error) {
	if n < 0 || n > len(u.s) {
		return "", fmt.Errorf("%w: it ends early", errMsgpack)
	}
	head := u.s[:n]
	u.s = u.s[n:]
	return head, nil
}

func (u *unpacker) uint(size int) (uint64, error) {
	s, err := u.take(size)
	if err != nil {
		return 0, err
	}
	var n uint64
	for i := range size {
		n = n<<8 | uint64(s[i])
	}
	return n, nil
}

func (u *unpacker) value(depth int) (any, error) {
	c, err := u.uint(1)
	if err != nil {
		return nil, err
	}
	if depth > unpackDepth {
		return nil, fmt.Errorf("%w: it is nested deeper than %d", errMsgpack, unpackDepth)
	}
	switch {
	case c < 0x80:
		return int64(c), nil
	case c < 0x90:
		return u.table(c&0x0f, depth)
	case c < 0xa0:
		return u.array(c&0x0f, depth)
	case c < 0xc0:
		return u.take(int(c & 0x1f))
	case c >= 0xe0:
		return int64(int8(c)), nil
	}
	switch c {
	case 0xc0:
		return nil, nil
	case 0xc2, 0xc3:
		return c == 0xc3, nil
	case 0xca:
		n, err := u.uint(4)
		return float64(math.Float32frombits(uint32(n))), err
	case 0xcb:
		n, err := u.uint(8)
		return math.Float64frombits(n), err
	case 0xcc, 0xcd, 0xce, 0xcf:
		n, err := u.uint(1 << (c - 0xcc))
		return int64(n), err
	case 0xd0, 0xd1, 0xd2, 0xd3:
		size := 1 << (c - 0xd0)
		n, err := u.uint(size)
		shift := 64 - 8*size
		return int64(n<<shift) >> shift, err
	case 0xc4, 0xc5, 0xc6:
		return u.sized(1 << (c - 0xc4))
	case 0xd9, 0xda, 0xdb:
		return u.sized(1 << (c - 0xd9))
	case 0xdc, 0xdd:
		n, err := u.uint(2 << (c - 0xdc))
		if err != nil {
			return nil, err
		}
		return u.array(n, depth)
	case 0xde, 0xdf:
		n, err := u.uint(2 << (c - 0xde))
		if err != nil {
			return nil, err
		}
		return u.table(n, depth)
	}
	return nil, fmt.Errorf("%w: type %#x", errMsgpack, c)
}

func (u *unpacker) sized(size int) (any, error) {
	n, err := u.uint(size)
	if err != nil {
		return nil, err
	}
	return u.take(int(n))
}

func (u *unpacker) array(n uint64, depth int) (any, error) {
	if n > uint64(len(u.s)) { // every value takes a byte at least
		return nil, fmt.Errorf("%w: it ends early", errMsgpack)
	}
	list := make([]any, n)
	for i := range list {
		v, err := u.value(depth + 1)
		if err != nil {
			return nil, err
		}
		list[i] = v
	}
	return list, nil
}

func (u *unpacker) table(n uint64, depth int) (any, error) {
	if n > uint64(len(u.s)) {
		return nil, fmt.Errorf("%w: it ends early", errMsgpack)
	}
	m := make(fields, n)
	for range n {
		k, err := u.value(depth + 1)
		if err != nil {
			return nil, err
		}
		name, ok := k.(string)
		if !ok {
			return nil, fmt.Errorf("%w: a key is no string", errMsgpack)
		}
		if m[name], err = u.value(depth + 1); err != nil {
			return nil, err
		}
	}
	return m, nil
}

package wasmbin

import (
	"errors"
	"fmt"
)

// Header is what every core module begins with: the magic number and version 1.
const Header = "\x00asm\x01\x00\x00\x00"

// ErrFormat is wrapped by every error of this package.
var ErrFormat = errors.New("malformed module")

// FormatError says where a module is malformed. It is an ErrFormat.
type FormatError struct {
	Offset int // in the bytes given to NewReader
	What   string
}

func (e *FormatError) Error() string { return fmt.Sprintf("%s at byte %d", e.What, e.Offset) }

// Is makes errors.Is(err, ErrFormat) true.
func (e *FormatError) Is(target error) bool { return target == ErrFormat }

// Reader reads a byte slice from front to back. The first fault sticks: every later read gives zeros, and Err tells it.
type Reader struct {
	b   []byte
	pos int
	err error
}

// NewReader reads b. Positions are offsets into b.
func NewReader(b []byte) *Reader { return &Reader{b: b} }

// Err is the first fault, or nil.
func (r *Reader) Err() error { return r.err }

// Pos is the offset of the next byte.
func (r *Reader) Pos() int { return r.pos }

// Len is how many bytes are left; 0 after a fault.
func (r *Reader) Len() int {
	if r.err != nil {
		return 0
	}
	return len(r.b) - r.pos
}

// Done reports whether everything was read, or a fault was met.
func (r *Reader) Done() bool { return r.Len() == 0 }

// Fail makes what the reader's fault unless it has one, at the current position.
func (r *Reader) Fail(what string) {
	if r.err == nil {
		r.err = &FormatError{Offset: r.pos, What: what}
	}
}

// Byte reads one byte.
func (r *Reader) Byte() byte {
	if r.Len() == 0 {
		r.Fail("unexpected end")
		return 0
	}
	c := r.b[r.pos]
	r.pos++
	return c
}

// Bytes reads n bytes; they are a part of the input, not a copy.
func (r *Reader) Bytes(n uint32) []byte {
	if uint64(n) > uint64(r.Len()) {
		r.Fail(fmt.Sprintf("%d bytes announced, %d left", n, r.Len()))
		return nil
	}
	s := r.b[r.pos : r.pos+int(n)]
	r.pos += int(n)
	return s
}

// U32 reads an unsigned LEB128 number of at most 32 bits.
func (r *Reader) U32() uint32 {
	var x uint32
	for shift := 0; ; shift += 7 {
		c := r.Byte()
		if shift == 28 && c > 0x0f {
			r.Fail("number does not fit 32 bits")
			return 0
		}
		x |= uint32(c&0x7f) << shift
		if c < 0x80 {
			return x
		}
	}
}

// SkipSigned reads a signed LEB128 number of at most bits bits and drops it.
func (r *Reader) SkipSigned(bits int) {
	for n := (bits + 6) / 7; n > 0; n-- {
		if r.Byte() < 0x80 {
			return
		}
	}
	r.Fail("number is too long")
}

// S33 reads a signed LEB128 number of at most 33 bits, the form of a block type.
func (r *Reader) S33() int64 {
	var x int64
	for shift := 0; shift < 35; shift += 7 {
		c := r.Byte()
		x |= int64(c&0x7f) << shift
		if c < 0x80 {
			if c&0x40 != 0 {
				x |= -1 << (shift + 7)
			}
			return x
		}
	}
	r.Fail("number is too long")
	return 0
}

// Count reads the length of a vector whose elements take at least one byte each; more than the bytes left is a fault.
func (r *Reader) Count() uint32 {
	n := r.U32()
	if uint64(n) > uint64(r.Len()) {
		r.Fail(fmt.Sprintf("%d elements announced, %d bytes left", n, r.Len()))
		return 0
	}
	return n
}

// ValueType reads a value type of the accepted features; the types of others can be longer than a byte.
func (r *Reader) ValueType() byte {
	at := r.pos
	switch t := r.Byte(); t {
	case I32, I64, F32, F64, V128, FuncRef, ExternRef:
		return t
	default:
		r.pos = at
		r.Fail(fmt.Sprintf("0x%02x is not a value type of the accepted features", t))
		return 0
	}
}

// ValueTypes reads a vector of value types, which it returns as they are.
func (r *Reader) ValueTypes() []byte {
	n := r.Count()
	from := r.pos
	for ; n > 0 && r.err == nil; n-- {
		r.ValueType()
	}
	if r.err != nil {
		return nil
	}
	return r.b[from:r.pos]
}

// blockType reads the type of a block: none, a value type, or the index of a function type.
func (r *Reader) blockType() int64 {
	at := r.pos
	t := r.S33()
	if t >= 0 || t == blockEmpty {
		return t
	}
	r.pos = at
	r.ValueType()
	return t
}

const blockEmpty = -64 // 0x40

// Name reads a length and that many bytes.
func (r *Reader) Name() []byte { return r.Bytes(r.U32()) }

// Slice is the part [from, to) of the input.
func (r *Reader) Slice(from, to int) []byte { return r.b[from:to] }

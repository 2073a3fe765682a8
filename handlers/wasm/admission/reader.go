package admission

import (
	"fmt"
	"unicode/utf8"

	"github.com/taskhost/taskhost/handlers"
)

// reader walks over a stretch of the module. The first fault found anywhere is kept in the scan; from then on every read
// returns zero, so that callers check at the heads of their loops and not after each byte.
type reader struct {
	s    *scan
	b    []byte
	pos  int
	base int    // offset of b[0] in the module
	what string // what is being read, for messages: "the import section"
}

func (r *reader) rest() int    { return len(r.b) - r.pos }
func (r *reader) offset() int  { return r.base + r.pos }
func (r *reader) failed() bool { return r.s.refusal != nil }

// damaged refuses bytes that are not what the format asks for.
func (r *reader) damaged(format string, args ...any) {
	if r.failed() {
		return
	}
	r.s.refusal = &handlers.Refusal{Reason: fmt.Sprintf("the module is damaged or cut short: in %s at byte %d, ", r.what, r.offset()) +
		fmt.Sprintf(format, args...)}
}

// refuse refuses a sound module for what it asks for.
func (s *scan) refuse(format string, args ...any) {
	if s.refusal == nil {
		s.refusal = &handlers.Refusal{Reason: fmt.Sprintf(format, args...)}
	}
}

func (r *reader) byte() byte {
	if r.failed() {
		return 0
	}
	if r.pos >= len(r.b) {
		r.damaged("a byte is missing")
		return 0
	}
	c := r.b[r.pos]
	r.pos++
	return c
}

// take returns the next n bytes, which are not copied.
func (r *reader) take(n int) []byte {
	if r.failed() {
		return nil
	}
	if n < 0 || n > r.rest() {
		r.damaged("%d bytes are announced and %d are left", n, r.rest())
		return nil
	}
	p := r.b[r.pos : r.pos+n]
	r.pos += n
	return p
}

// sub returns a reader over the next n bytes and steps over them.
func (r *reader) sub(n int, what string) *reader {
	base := r.offset()
	return &reader{s: r.s, b: r.take(n), base: base, what: what}
}

// u32 reads an unsigned LEB128 number of at most five bytes with no bit set beyond the 32nd.
func (r *reader) u32() uint32 {
	if r.pos < len(r.b) && r.b[r.pos] < 0x80 && !r.failed() { // one byte: the common case
		r.pos++
		return uint32(r.b[r.pos-1])
	}
	var v uint32
	for shift := 0; shift <= 28; shift += 7 {
		c := r.byte()
		if shift == 28 && c > 0x0f {
			r.damaged("a number does not fit 32 bits")
			return 0
		}
		v |= uint32(c&0x7f) << shift
		if c < 0x80 {
			return v
		}
	}
	return 0
}

// signed steps over a signed LEB128 number of bits (32, 33 or 64) and returns it.
func (r *reader) signed(bits int) int64 {
	var v int64
	for shift := 0; ; shift += 7 {
		c := r.byte()
		if r.failed() {
			return 0
		}
		v |= int64(c&0x7f) << shift
		last := shift+7 >= bits
		if last {
			// What is beyond the last bit must repeat the sign.
			extra := int8(c<<1) >> 1 >> (bits - shift - 1)
			if c >= 0x80 || (extra != 0 && extra != -1) {
				r.damaged("a number does not fit %d bits", bits)
				return 0
			}
		}
		if c < 0x80 {
			if c&0x40 != 0 && shift+7 < 64 {
				v |= -1 << (shift + 7)
			}
			return v
		}
	}
}

// count reads the length of a vector whose items take at least one byte each.
func (r *reader) count(items string) int {
	n := r.u32()
	if r.failed() {
		return 0
	}
	if uint64(n) > uint64(r.rest()) {
		r.damaged("%d %s are announced and only %d bytes follow", n, items, r.rest())
		return 0
	}
	return int(n)
}

// bounded is count with a limit.
func (r *reader) bounded(items string, limit int) int {
	n := r.count(items)
	if n > limit {
		r.s.refuse("the module has %d %s; the most accepted is %d", n, items, limit)
		return 0
	}
	return n
}

// name reads a UTF-8 name; the bytes are not copied.
func (r *reader) name() []byte {
	p := r.take(r.count("bytes of a name"))
	if !utf8.Valid(p) {
		r.damaged("a name is not UTF-8")
		return nil
	}
	return p
}

// done refuses bytes left over.
func (r *reader) done() {
	if !r.failed() && r.rest() > 0 {
		r.damaged("there is more than expected (bytes left over: %d)", r.rest())
	}
}

package jsonin

import (
	"errors"
	"fmt"
	"io"
)

// capture consumes one value by its brackets and quotes alone; check judges the rest. It keeps the bytes while they are
// within limit and counts all of them.
func (s *Scanner) capture(limit int) (raw []byte, size int64, err error) {
	c := capturer{limit: limit}
	for {
		chunk, err := s.buffered()
		if err != nil {
			if errors.Is(err, io.EOF) && c.scalar {
				return c.raw, c.size, nil // a number or a word ends with the body
			}
			return nil, 0, s.readError(err)
		}
		n, done, err := c.feed(chunk)
		c.keep(chunk[:n])
		if err != nil {
			return nil, 0, &SyntaxError{Offset: s.off + int64(n), Reason: err.Error()}
		}
		_, _ = s.r.Discard(n) // n bytes are in the buffer
		s.off += int64(n)
		if done {
			return c.raw, c.size, nil
		}
	}
}

// buffered returns what the read buffer holds, filling it when it is empty.
func (s *Scanner) buffered() ([]byte, error) {
	if s.r.Buffered() == 0 {
		if _, err := s.r.Peek(1); err != nil {
			return nil, err
		}
	}
	return s.r.Peek(s.r.Buffered())
}

// capturer finds the end of a value that arrives in pieces.
type capturer struct {
	limit   int
	raw     []byte
	size    int64
	depth   int
	started bool
	scalar  bool // a number or a word: it ends before a delimiter
	quoted  bool // inside a string
	escaped bool // behind a backslash inside a string
}

func (c *capturer) keep(b []byte) {
	c.size += int64(len(b))
	if c.size > int64(c.limit) {
		c.raw = nil // over the limit: only counted from here on
		return
	}
	c.raw = append(c.raw, b...)
}

// feed says how many bytes of b belong to the value, and whether it ends there.
func (c *capturer) feed(b []byte) (n int, done bool, err error) {
	for i, ch := range b {
		if c.quoted {
			switch {
			case c.escaped:
				c.escaped = false
			case ch == '\\':
				c.escaped = true
			case ch == '"':
				c.quoted = false
				if c.depth == 0 {
					return i + 1, true, nil
				}
			}
			continue
		}
		switch ch {
		case '"':
			if c.scalar {
				return i, true, nil
			}
			c.quoted = true
		case '{', '[':
			if c.scalar {
				return i, true, nil
			}
			if c.depth++; c.depth > DepthMax {
				return i, false, fmt.Errorf("nested deeper than %d levels", DepthMax)
			}
		case '}', ']':
			if c.scalar {
				return i, true, nil
			}
			if c.depth == 0 {
				return i, false, fmt.Errorf("expected a value, got '%c'", ch)
			}
			if c.depth--; c.depth == 0 {
				return i + 1, true, nil
			}
		case ',', ':', ' ', '\t', '\r', '\n':
			if c.scalar {
				return i, true, nil
			}
			if c.depth == 0 {
				return i, false, fmt.Errorf("expected a value, got %s", show(ch))
			}
		default:
			if !c.started {
				c.scalar = true
			}
		}
		c.started = true
	}
	return len(b), false, nil
}

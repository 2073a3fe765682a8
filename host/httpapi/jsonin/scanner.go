// Package jsonin reads JSON request bodies as a stream. It differs from encoding/json in what an API needs at its edge:
// values can be taken byte for byte as they were sent, each under its own size limit and without buffering what is over
// it; a duplicate key is an error; and every error knows its offset in the body.
package jsonin

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"unicode/utf8"
)

// DepthMax is how deep arrays and objects may nest in one value.
const DepthMax = 1000

// KeyBytesMax bounds an object key as it is written in the body, quotes included.
const KeyBytesMax = 4096

// bufferBytes is the read buffer of a Scanner: small, because most requests are.
const bufferBytes = 8 << 10

// SyntaxError says that the body is not what JSON, or the caller's grammar, allows at Offset (bytes from the start of
// the body, counted from 0).
type SyntaxError struct {
	Offset int64
	Reason string
}

func (e *SyntaxError) Error() string {
	return fmt.Sprintf("%s at byte %d of the body", e.Reason, e.Offset)
}

// SizeError says that one value is longer than its limit. Got counts the whole value as it is written in the body.
type SizeError struct {
	Max, Got int64 // bytes
}

func (e *SizeError) Error() string {
	return fmt.Sprintf("%d bytes are over the limit of %d bytes", e.Got, e.Max)
}

// Scanner reads one JSON text. It is for one goroutine.
type Scanner struct {
	r   *bufio.Reader
	off int64
}

// New returns a Scanner on r.
func New(r io.Reader) *Scanner { return &Scanner{r: bufio.NewReaderSize(r, bufferBytes)} }

// Reset makes the Scanner read r from its beginning.
func (s *Scanner) Reset(r io.Reader) {
	s.r.Reset(r)
	s.off = 0
}

// Offset is how many bytes were consumed.
func (s *Scanner) Offset() int64 { return s.off }

// Peek skips white space and returns the first byte of what follows without consuming it.
func (s *Scanner) Peek() (byte, error) {
	for {
		b, err := s.r.ReadByte()
		if err != nil {
			return 0, s.readError(err)
		}
		if isSpace(b) {
			s.off++
			continue
		}
		if err := s.r.UnreadByte(); err != nil {
			return 0, fmt.Errorf("read the body: %w", err)
		}
		return b, nil
	}
}

// Object reads an object and calls field for every key; field must consume the value. A key given twice is an error.
func (s *Scanner) Object(field func(key string) error) error {
	if err := s.expect('{', "an object"); err != nil {
		return err
	}
	var seen keySet
	for first := true; ; first = false {
		b, err := s.Peek()
		if err != nil {
			return err
		}
		if first && b == '}' {
			s.next()
			return nil
		}
		at := s.off
		key, err := s.key()
		if err != nil {
			return err
		}
		if !seen.add(key) {
			return &SyntaxError{Offset: at, Reason: fmt.Sprintf("the key %.64q is given twice", key)}
		}
		if err := s.expect(':', "':' after the key"); err != nil {
			return err
		}
		if err := field(key); err != nil {
			return err
		}
		if more, err := s.more('}'); err != nil || !more {
			return err
		}
	}
}

// Array reads an array and calls element for every element; element must consume it.
func (s *Scanner) Array(element func(i int) error) error {
	if err := s.expect('[', "an array"); err != nil {
		return err
	}
	for i := 0; ; i++ {
		b, err := s.Peek()
		if err != nil {
			return err
		}
		if i == 0 && b == ']' {
			s.next()
			return nil
		}
		if err := element(i); err != nil {
			return err
		}
		if more, err := s.more(']'); err != nil || !more {
			return err
		}
	}
}

// Value returns the next value exactly as it is written, and checks that it is JSON and UTF-8. When it is longer than
// limit it is read to its end without being kept, and a *SizeError is returned; the Scanner is then behind the value.
func (s *Scanner) Value(limit int) ([]byte, error) {
	if _, err := s.Peek(); err != nil {
		return nil, err
	}
	start := s.off
	raw, size, err := s.capture(limit)
	if err != nil {
		return nil, err
	}
	if size > int64(limit) {
		return nil, &SizeError{Max: int64(limit), Got: size}
	}
	if err := check(raw, start); err != nil {
		return nil, err
	}
	return raw, nil
}

// skipCheckBytes is up to which length a skipped value is checked whole; of a longer one only brackets and quotes are.
const skipCheckBytes = 64 << 10

// Skip reads past the next value.
func (s *Scanner) Skip() error {
	_, err := s.Value(skipCheckBytes)
	if errors.As(err, new(*SizeError)) {
		return nil
	}
	return err
}

// End checks that nothing but white space follows.
func (s *Scanner) End() error {
	b, err := s.Peek()
	switch {
	case err == nil:
		return &SyntaxError{Offset: s.off, Reason: fmt.Sprintf("unexpected %s after the end of the value", show(b))}
	case errors.As(err, new(*SyntaxError)): // the end
		return nil
	}
	return err
}

func (s *Scanner) key() (string, error) {
	if b, err := s.Peek(); err != nil {
		return "", err
	} else if b != '"' {
		return "", &SyntaxError{Offset: s.off, Reason: fmt.Sprintf("expected a key in double quotes, got %s", show(b))}
	}
	at := s.off
	raw, err := s.Value(KeyBytesMax)
	if size := (*SizeError)(nil); errors.As(err, &size) {
		return "", &SyntaxError{Offset: at, Reason: fmt.Sprintf("a key of %d bytes is over the limit of %d bytes", size.Got, size.Max)}
	}
	if err != nil {
		return "", err
	}
	return String(raw)
}

// more consumes ',' (true) or the closing byte (false).
func (s *Scanner) more(closing byte) (bool, error) {
	b, err := s.Peek()
	if err != nil {
		return false, err
	}
	switch b {
	case ',':
		s.next()
		return true, nil
	case closing:
		s.next()
		return false, nil
	}
	return false, &SyntaxError{Offset: s.off, Reason: fmt.Sprintf("expected ',' or '%c', got %s", closing, show(b))}
}

func (s *Scanner) expect(want byte, what string) error {
	b, err := s.Peek()
	if err != nil {
		return err
	}
	if b != want {
		return &SyntaxError{Offset: s.off, Reason: fmt.Sprintf("expected %s, got %s", what, show(b))}
	}
	s.next()
	return nil
}

// next consumes the byte that Peek has just returned, which is in the buffer.
func (s *Scanner) next() {
	_, _ = s.r.Discard(1)
	s.off++
}

// readError turns the end of the body into a syntax error and passes other errors, such as a body over its limit, on.
func (s *Scanner) readError(err error) error {
	if errors.Is(err, io.EOF) {
		return &SyntaxError{Offset: s.off, Reason: "unexpected end"}
	}
	return fmt.Errorf("read the body: %w", err)
}

// check says where raw, which begins at offset start of the body, is not JSON.
func check(raw []byte, start int64) error {
	if !utf8.Valid(raw) {
		at := 0
		for at < len(raw) {
			r, n := utf8.DecodeRune(raw[at:])
			if r == utf8.RuneError && n == 1 {
				break
			}
			at += n
		}
		return &SyntaxError{Offset: start + int64(at), Reason: "the text is not UTF-8"}
	}
	if json.Valid(raw) {
		return nil
	}
	var discard json.RawMessage
	err := json.Unmarshal(raw, &discard)
	if syntax := (*json.SyntaxError)(nil); errors.As(err, &syntax) {
		// At its end encoding/json acts as if a space followed; raw never ends with one.
		if syntax.Offset == int64(len(raw)) && (strings.HasPrefix(syntax.Error(), "unexpected end") || strings.Contains(syntax.Error(), "' '")) {
			return &SyntaxError{Offset: start + int64(len(raw)), Reason: "the value ends too early"}
		}
		return &SyntaxError{Offset: start + max(syntax.Offset-1, 0), Reason: syntax.Error()}
	}
	return &SyntaxError{Offset: start, Reason: "not a JSON value"}
}

// String decodes a JSON string as Value returned it. A lone surrogate, which encoding/json would replace silently, is an
// error.
func String(raw []byte) (string, error) {
	if len(raw) == 0 || raw[0] != '"' {
		return "", fmt.Errorf("must be a string, got %s", Kind(raw))
	}
	if inner := raw[1 : len(raw)-1]; !containsByte(inner, '\\') {
		return string(inner), nil
	}
	var v string
	if err := json.Unmarshal(raw, &v); err != nil {
		return "", fmt.Errorf("must be a string: %w", err)
	}
	if strings.ContainsRune(v, utf8.RuneError) && loneSurrogate(string(raw)) {
		return "", errors.New(`must be Unicode text: it has half of a \u surrogate pair`)
	}
	return v, nil
}

// loneSurrogate finds \uD800–\uDFFF outside a pair in the text of a valid JSON string.
func loneSurrogate(raw string) bool {
	for i := 0; i < len(raw); i++ {
		if raw[i] != '\\' {
			continue
		}
		if raw[i+1] != 'u' {
			i++
			continue
		}
		switch r := hex4(raw[i+2:]); {
		case r >= 0xD800 && r < 0xDC00:
			rest := raw[i+6:]
			if !strings.HasPrefix(rest, `\u`) {
				return true
			}
			if low := hex4(rest[2:]); low < 0xDC00 || low > 0xDFFF {
				return true
			}
			i += 11
		case r >= 0xDC00 && r <= 0xDFFF:
			return true
		default:
			i += 5
		}
	}
	return false
}

func hex4(s string) uint64 {
	if len(s) < 4 {
		return 0
	}
	n, err := strconv.ParseUint(s[:4], 16, 32)
	if err != nil {
		return 0
	}
	return n
}

// Kind names what a JSON value is, for error messages.
func Kind(raw []byte) string {
	if len(raw) == 0 {
		return "nothing"
	}
	switch raw[0] {
	case '{':
		return "an object"
	case '[':
		return "an array"
	case '"':
		return "a string"
	case 't', 'f':
		return "a boolean"
	case 'n':
		return "null"
	}
	return "a number"
}

func containsByte(b []byte, c byte) bool {
	for _, x := range b {
		if x == c {
			return true
		}
	}
	return false
}

func isSpace(b byte) bool { return b == ' ' || b == '\t' || b == '\r' || b == '\n' }

func show(b byte) string { return strconv.QuoteRuneToASCII(rune(b)) }

// IsText reports whether b is UTF-8, as JSON text must be (RFC 8259 §8.1).
func IsText(b []byte) bool { return utf8.Valid(b) }

package attempt

import (
	"bytes"
	"fmt"
	"unicode/utf8"

	"github.com/taskhost/taskhost/abi"
)

// MaxLine bounds one log line, in bytes; what is longer is cut and says so.
const MaxLine = 4 << 10

// minLineCost bounds the number of lines of an attempt: every line is charged at least this many bytes of its log limit.
const minLineCost = 16

type logState struct {
	used      int
	truncated bool
	line      []byte // of stderr, not yet ended, at most MaxLine
	lineLen   int    // its full length
	last      []byte // last line of stderr that was not blank
	panicked  string // what a language run-time said when it gave up
	wantMore  bool   // the next line belongs to panicked
}

// Log records a line of full bytes, of which message has at least the first MaxLine. Past the limit of the attempt, lines are dropped, and
// one line says that.
func (s *State) Log(level int32, message string, full int) {
	l := &s.log
	if l.truncated {
		return
	}
	message = cutLine(message, full)
	l.used += max(len(message), minLineCost)
	if l.used > s.Limits.Log {
		l.truncated = true
		s.Reports.Log(abi.LevelWarn, fmt.Sprintf("log truncated: it is over its limit of %d bytes", s.Limits.Log))
		return
	}
	s.Reports.Log(level, message)
}

// Stderr takes what the guest writes to standard error, a log line for each of its lines.
func (s *State) Stderr(p []byte) {
	for len(p) > 0 {
		part, rest, ended := bytes.Cut(p, []byte{'\n'})
		s.log.add(part)
		if ended {
			s.endLine()
		}
		p = rest
	}
}

// FlushStderr ends a last line without a line break.
func (s *State) FlushStderr() {
	if s.log.lineLen > 0 {
		s.endLine()
	}
}

func (l *logState) add(p []byte) {
	l.lineLen += len(p)
	if room := MaxLine - len(l.line); room > 0 {
		l.line = append(l.line, p[:min(room, len(p))]...)
	}
}

func (s *State) endLine() {
	l := &s.log
	text := bytes.TrimSuffix(l.line, []byte("\r"))
	if !utf8.Valid(text) {
		text = bytes.ToValidUTF8(text, []byte("\uFFFD"))
	}
	if len(bytes.TrimSpace(text)) > 0 {
		l.note(text)
	}
	if !l.truncated { // a guest that writes on makes no garbage for its neighbours to collect
		s.Log(abi.LevelInfo, string(text), l.lineLen)
	}
	l.line, l.lineLen = l.line[:0], 0
}

// note remembers lines that say why a guest failed.
func (l *logState) note(text []byte) {
	l.last = append(l.last[:0], text...)
	begins := func(with string) bool { return bytes.HasPrefix(text, []byte(with)) }
	switch {
	case l.wantMore:
		l.panicked += " " + string(bytes.TrimSpace(text))
		l.wantMore = false
	case l.panicked != "":
	case begins("panic: "), begins("fatal error: "): // Go, TinyGo
		l.panicked = string(text)
	case begins("thread '") && bytes.Contains(text, []byte("panicked at ")): // Rust
		l.panicked = string(text)
		l.wantMore = bytes.HasSuffix(text, []byte(":"))
	}
}

// Complaint is what the guest's standard error says about why it failed: the message of a panic, else its last line.
func (s *State) Complaint() string {
	if s.log.panicked != "" {
		return s.log.panicked
	}
	return string(s.log.last)
}

// cutLine bounds a line; full is the length it had at first.
func cutLine(text string, full int) string {
	if full <= MaxLine && len(text) <= MaxLine {
		return text
	}
	note := fmt.Sprintf(" … [cut, line of %d bytes]", full)
	return Cut(text, MaxLine-len(note)) + note
}

// Cut returns at most n bytes of s, ending at the boundary of a character.
func Cut(s string, n int) string {
	if len(s) <= n {
		return s
	}
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n]
}

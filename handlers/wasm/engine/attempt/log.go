package attempt

import (
	"bytes"
	"fmt"
	"strings"
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
	last      string // last line of stderr that was not blank
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
	text, full := strings.ToValidUTF8(strings.TrimSuffix(string(l.line), "\r"), "\uFFFD"), l.lineLen
	l.line, l.lineLen = l.line[:0], 0
	if strings.TrimSpace(text) != "" {
		l.note(text)
	}
	s.Log(abi.LevelInfo, text, full)
}

// note remembers lines that say why a guest failed.
func (l *logState) note(text string) {
	l.last = text
	switch {
	case l.wantMore:
		l.panicked += " " + strings.TrimSpace(text)
		l.wantMore = false
	case l.panicked != "":
	case strings.HasPrefix(text, "panic: "), strings.HasPrefix(text, "fatal error: "): // Go, TinyGo
		l.panicked = text
	case strings.HasPrefix(text, "thread '") && strings.Contains(text, "panicked at "): // Rust
		l.panicked = text
		l.wantMore = strings.HasSuffix(text, ":")
	}
}

// Complaint is what the guest's standard error says about why it failed: the message of a panic, else its last line.
func (s *State) Complaint() string {
	if s.log.panicked != "" {
		return s.log.panicked
	}
	return s.log.last
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

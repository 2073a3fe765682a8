package pool

import (
	"bytes"
	"log/slog"
	"sync"
)

// Bounds of what is kept of a runner's stderr. Guests do not write there; a runner does when it fails.
const (
	stderrLine  = 1 << 10
	stderrLines = 64
)

// stderrLog logs the first lines of a process's stderr and drops the rest.
type stderrLog struct {
	log *slog.Logger

	mu    sync.Mutex
	line  []byte
	lines int
	first string
}

// Write takes a piece. It never fails and never blocks for long, so the process is never held up by it.
func (s *stderrLog) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := len(p)
	for len(p) > 0 && s.lines < stderrLines {
		part, rest, ended := bytes.Cut(p, []byte{'\n'})
		if room := stderrLine - len(s.line); room > 0 {
			s.line = append(s.line, part[:min(room, len(part))]...)
		}
		if ended {
			s.flush()
		}
		p = rest
	}
	return n, nil
}

func (s *stderrLog) flush() {
	if len(s.line) == 0 {
		return
	}
	text := string(s.line)
	s.line = s.line[:0]
	if s.lines++; s.first == "" {
		s.first = text
	}
	s.log.Warn("runner wrote to stderr", "line", text)
	if s.lines == stderrLines {
		s.log.Warn("runner wrote too much to stderr; the rest is dropped", "lines", stderrLines)
	}
}

// firstLine is what the process said first; empty if nothing.
func (s *stderrLog) firstLine() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.flush()
	return s.first
}

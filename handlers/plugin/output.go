package plugin

import (
	"bytes"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"time"
	"unicode/utf8"
)

// Bounds of what is taken of a plugin's output.
const (
	lineMax        = 4 << 10 // bytes of a line
	linesPerSecond = 200     // logged; the rest is dropped and counted
)

// output logs what a plugin prints, line by line. Write never fails and never waits, so a flood does not hold up the plugin.
type output struct {
	log    *slog.Logger
	stream string
	line   func(text string, number int) bool // is given every line first; true = it was taken. May be nil

	mu       sync.Mutex
	buf      []byte // of the line that has begun
	full     int    // its length so far
	number   int
	last     string // last line that is not blank
	panicked string // what a run-time said when it gave up
	window   time.Time
	logged   int
	dropped  int
}

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	n := len(p)
	for len(p) > 0 {
		part, rest, ended := bytes.Cut(p, []byte{'\n'})
		o.full += len(part)
		if room := lineMax - len(o.buf); room > 0 {
			o.buf = append(o.buf, part[:min(room, len(part))]...)
		}
		if ended || o.number == 0 && o.full >= lineMax && o.line != nil { // a first line that long cannot be a handshake
			o.endLine()
		}
		p = rest
	}
	return n, nil
}

func (o *output) endLine() {
	text, full := strings.ToValidUTF8(strings.TrimSuffix(string(o.buf), "\r"), "\uFFFD"), o.full
	o.buf, o.full = o.buf[:0], 0
	number := o.number
	o.number++
	if strings.TrimSpace(text) != "" {
		o.last = text
	}
	if o.panicked == "" && (strings.HasPrefix(text, "panic: ") || strings.HasPrefix(text, "fatal error: ")) {
		o.panicked = text
	}
	if o.line != nil && o.line(text, number) {
		return
	}
	now := time.Now()
	if now.Sub(o.window) >= time.Second {
		o.tellDropped()
		o.window, o.logged = now, 0
	}
	if o.logged++; o.logged > linesPerSecond {
		o.dropped++
		return
	}
	if full > lineMax {
		text += fmt.Sprintf(" … [cut, line of %d bytes]", full)
	}
	o.log.Info("plugin output", "stream", o.stream, "line", text)
}

func (o *output) tellDropped() {
	if o.dropped > 0 {
		o.log.Warn("plugin printed too much; lines were dropped", "stream", o.stream, "lines", o.dropped)
		o.dropped = 0
	}
}

// close takes what is left as a line.
func (o *output) close() {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.full > 0 {
		o.endLine()
	}
	o.tellDropped()
}

// complaint is what says most about a death: the message of a panic, else the last line.
func (o *output) complaint() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.panicked != "" {
		return shortened(o.panicked)
	}
	return shortened(o.last)
}

// shortened bounds a line that becomes part of a message.
func shortened(s string) string {
	const most = 300
	if len(s) <= most {
		return s
	}
	n := most
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n] + "…"
}

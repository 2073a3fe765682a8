package cli

import (
	"fmt"
	"strings"
)

// headline is a failure on one line: its kind, the first line of its message, and for a trap the innermost function of the guest, as
// in `trap "integer divide by zero" at scale (main.c:41:9)`.
func headline(kind, message string) string {
	first, rest, _ := strings.Cut(message, "\n")
	s := fmt.Sprintf("%s %q", kind, clip(first))
	if frame, _, _ := strings.Cut(rest, "\n"); strings.HasPrefix(strings.TrimSpace(frame), "at ") {
		s += " " + safe(strings.TrimSpace(frame))
	}
	return s
}

// trace is the lines of a message that headline leaves out.
func trace(message string) []string {
	_, rest, more := strings.Cut(message, "\n")
	if !more {
		return nil
	}
	lines := strings.Split(rest, "\n")
	if strings.HasPrefix(strings.TrimSpace(lines[0]), "at ") {
		lines = lines[1:]
	}
	for i := range lines {
		lines[i] = safe(clip(strings.TrimSpace(lines[i])))
	}
	return lines
}

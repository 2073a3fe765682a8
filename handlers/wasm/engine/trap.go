package engine

import (
	"os"
	"strconv"
	"strings"

	"github.com/taskhost/taskhost/handlers/wasm/meter"
	"github.com/taskhost/taskhost/handlers/wasm/srcline"
)

// What wazero's errors look like. It has no typed traps outside its internal packages.
const (
	wasmErrorPrefix = "wasm error: "
	stackPrefix     = "\nwasm stack trace:\n"
	stackOverflow   = "stack overflow"
	goTracePrefix   = "\n\nGo runtime stack trace:"
)

// maxFrames is how many functions of the guest's stack a message has.
const maxFrames = 10

// trap is an error of a call: what happened, and the guest's stack, innermost first.
type trap struct {
	what   string
	frames []frame
}

type frame struct {
	function string
	place    uint64 // in the code section; 0 = not known
	source   string // file:line:column; empty = not known
}

// parseTrap reads an error of the engine.
func parseTrap(err error) trap {
	text, _, _ := strings.Cut(err.Error(), goTracePrefix)
	text, trace, _ := strings.Cut(text, stackPrefix)
	if i := strings.Index(text, wasmErrorPrefix); i >= 0 { // "start function[3] failed: wasm error: …"
		text = text[i+len(wasmErrorPrefix):]
	}
	t := trap{what: strings.TrimSuffix(text, " (recovered by wazero)")}
	ours := false // the last frame was of what the rewriting added, which is nobody's business
	for line := range strings.Lines(trace) {
		name := strings.TrimSpace(line)
		switch place, isPlace := strings.CutPrefix(name, "0x"); {
		case name == "", isPlace && ours:
		case isPlace && len(t.frames) > 0:
			hex, _, _ := strings.Cut(place, ":")
			t.frames[len(t.frames)-1].place, _ = strconv.ParseUint(hex, 16, 64)
		case strings.HasPrefix(strings.TrimPrefix(name, "."), meter.TickModule+"."):
			ours = true
		default:
			ours = false
			// Frames begin with the name of the module, which is empty here, and a dot.
			t.frames = append(t.frames, frame{function: strings.TrimPrefix(name, ".")})
		}
	}
	return t
}

// locate fills in the sources from a file of line information. A trace without them is better than none, so faults show in the trace.
func (t *trap) locate(file string) {
	if file == "" || len(t.frames) == 0 {
		return
	}
	var places []uint64
	for _, f := range t.frames {
		if f.place > 0 {
			places = append(places, f.place)
		}
	}
	table, err := os.ReadFile(file)
	if err != nil {
		t.frames[0].source = "no source lines: " + err.Error()
		return
	}
	found, err := srcline.Find(table, places)
	if err != nil {
		t.frames[0].source = "no source lines: " + err.Error()
		return
	}
	for i := range t.frames {
		t.frames[i].source = found[t.frames[i].place]
	}
}

// stack is the first frames, a line each; all of them when most is negative.
func (t *trap) stack(most int) string {
	var b strings.Builder
	for i, f := range t.frames {
		if i == most {
			b.WriteString("\n  …")
			break
		}
		b.WriteString("\n  at " + f.function)
		if f.source != "" {
			b.WriteString(" (" + f.source + ")")
		}
	}
	return strings.TrimPrefix(b.String(), "\n")
}

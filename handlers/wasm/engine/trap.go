package engine

import "strings"

// What wazero's errors look like. It has no typed traps outside its internal packages.
const (
	wasmErrorPrefix = "wasm error: "
	stackPrefix     = "\nwasm stack trace:\n"
	stackOverflow   = "stack overflow"
	goTracePrefix   = "\n\nGo runtime stack trace:"
)

// maxFrames is how many functions of the guest's stack a message has.
const maxFrames = 6

// trapText splits an error of a call into what happened and the guest's stack, a function a line, innermost first.
func trapText(err error) (what, stack string) {
	text, _, _ := strings.Cut(err.Error(), goTracePrefix)
	text, trace, _ := strings.Cut(text, stackPrefix)
	if i := strings.Index(text, wasmErrorPrefix); i >= 0 { // "start function[3] failed: wasm error: …"
		text = text[i+len(wasmErrorPrefix):]
	}
	text = strings.TrimSuffix(text, " (recovered by wazero)")
	var frames []string
	for line := range strings.Lines(trace) {
		name := strings.TrimSpace(line)
		if name == "" {
			continue
		}
		if len(frames) == maxFrames {
			frames = append(frames, "  …")
			break
		}
		// Frames begin with the name of the module, which is empty here, and a dot.
		frames = append(frames, "  at "+strings.TrimPrefix(name, "."))
	}
	return text, strings.Join(frames, "\n")
}

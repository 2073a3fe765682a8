package handlertest

import (
	"fmt"
	"strings"
	"time"
)

// Script is what a conformance handler is told to do: the payload of its job. A payload is the verb, a space, the argument, a line
// break, and data. The reactor and the command in testdata understand all verbs but those marked.
type Script []byte

func script(verb, arg string, data ...byte) Script {
	return append([]byte(verb+" "+arg+"\n"), data...)
}

// Echo returns the data.
func Echo(data []byte) Script { return script("echo", "", data...) }

// Exactly returns a result of n bytes, all "x".
func Exactly(n int) Script { return script("exactly", fmt.Sprint(n)) }

// FailRetryable fails with a message and may be run again.
func FailRetryable(message string) Script { return script("retry", message) }

// FailPermanent fails with a message for good.
func FailPermanent(message string) Script { return script("permanent", message) }

// Defer asks to be run again after d. Reactors only: a command has no way to say so.
func Defer(d time.Duration) Script { return script("defer", fmt.Sprint(d.Milliseconds())) }

// LogLines logs lines and succeeds.
func LogLines(lines ...string) Script { return script("log", "", []byte(strings.Join(lines, "\n"))...) }

// Progressing reports 1 of 2 and succeeds. Reactors only.
func Progressing() Script { return script("progress", "") }

// SaveCheckpoint saves the data as a checkpoint; the result is "0", or the errno. Reactors only.
func SaveCheckpoint(data []byte) Script { return script("checkpoint", "", data...) }

// ReadCheckpoint returns the checkpoint; without one it fails for good. Reactors only.
func ReadCheckpoint() Script { return script("read-checkpoint", "") }

// Metadata returns job id, tenant, queue, type, attempt and maximum, the header "trace" (reactors) and the configuration "REGION", each
// after a space.
func Metadata() Script { return script("metadata", "") }

// Sleep reports (progress, or a log line) and sleeps for d.
func Sleep(d time.Duration) Script { return script("sleep", fmt.Sprint(d.Milliseconds())) }

// Spin reports and computes without end.
func Spin() Script { return script("spin", "") }

// UntilStopped reports and polls should_stop every few milliseconds; then it fails, retryable. Reactors only.
func UntilStopped() Script { return script("until-stopped", "") }

// Count returns how often the handler was run in its instance, "1" for a fresh one.
func Count() Script { return script("count", "") }

// Trap makes the handler break down.
func Trap() Script { return script("trap", "") }

// Hog takes memory until there is none.
func Hog() Script { return script("hog", "") }

// Package handlers holds the seam between the host and what runs a job: a Runtime runs invocations of handler versions and
// answers with an Outcome. Engines live in child packages (wasm, plugin); the contract they pass is in handlertest.
// The package imports abi only.
package handlers

import (
	"context"
	"errors"
	"time"
)

// Runtime runs handlers of one kind. All methods may be called at once from many goroutines.
type Runtime interface {
	// Name is the runtime's name as stored with a version: "wasm" or "plugin".
	Name() string

	// Invoke runs one attempt and returns when it is over: the handler returned, its deadline passed and it was
	// stopped, or ctx ended and it was stopped. It never panics and never returns an error: every end is an Outcome.
	// When ctx ends, the handler is asked to stop, and killed after the runtime's grace; the outcome is then
	// OutcomeInterrupted unless the handler had finished.
	Invoke(ctx context.Context, inv *Invocation) Outcome

	// Prepare makes a version ready to run, so that its first job does not wait: a native artifact in place, a process
	// started. source returns the uploaded bytes; it is called only when they are needed. Invoke of a version that was
	// not prepared prepares nothing and answers OutcomeUnavailable.
	Prepare(ctx context.Context, v *Version, source func(context.Context) ([]byte, error)) error

	// Slots is how many invocations may run at once; more would wait inside Invoke.
	Slots() int
}

// Admitter is a Runtime that accepts uploads.
type Admitter interface {
	// Admit checks uploaded bytes and prepares them to run. A module that is at fault gives a *Refusal; other errors mean
	// that the check could not be made. Nothing of the module runs outside a child process, and nothing is registered.
	Admit(ctx context.Context, req AdmitRequest) (*Admission, error)
}

// AdmitRequest is an upload.
type AdmitRequest struct {
	Tenant string
	Type   string
	Module []byte
	Limits Limits
}

// Admission is what the check found.
type Admission struct {
	SHA256      string   // hex, of the uploaded bytes
	SizeBytes   int      //
	Kind        Kind     //
	Imports     []string // "module.name", sorted
	Memory      Memory   //
	Instance    Instance //
	CompileTime time.Duration
	Warnings    []string
	Exports     []string // "name (kind)", sorted
	Features    []string // of WebAssembly, beyond its first version; sorted
	Metered     bool     // its runs are counted in units of fuel, and can be stopped anywhere
	SourceLines bool     // traps name source lines: the module has line information
}

// Kind is how a module is a handler; see abi/SPEC.md.
type Kind string

// The kinds of Wasm handlers.
const (
	KindCommand Kind = "command"
	KindReactor Kind = "reactor"
	// KindNative is a plugin, which is no Wasm handler.
	KindNative Kind = "native"
)

// Memory is what a module declares, with the maximum clamped to the limit in force. Bytes.
type Memory struct {
	MinBytes int64 `json:"min_bytes"`
	MaxBytes int64 `json:"max_bytes"`
}

// Instance says how instances of a version are made, and why so.
type Instance struct {
	Mode   string `json:"mode"` // "fresh"
	Reason string `json:"reason"`
}

// Refusal says why a module is not accepted; it is the author's to mend.
type Refusal struct {
	Reason  string   // one sentence, complete
	Details []string // e.g. every unknown import with its signature
}

func (r *Refusal) Error() string {
	s := r.Reason
	for i, d := range r.Details {
		if i == 0 {
			s += ": "
		} else {
			s += ", "
		}
		s += d
	}
	return s
}

// Version is one immutable version of a handler.
type Version struct {
	Tenant  string // "" = host-wide
	Type    string // exact, or a pattern ending in "*" (host-wide only)
	Number  int    // 1, 2, …
	Runtime string
	SHA256  string
	Kind    Kind
	Limits  Limits
	Config  map[string]string // granted configuration
}

// Limits bound one attempt. Zero means the host's default, filled in before Invoke; for Fuel it means that there is no limit.
type Limits struct {
	MemoryBytes     int64
	ResultBytes     int
	LogBytes        int
	CheckpointBytes int
	Timeout         time.Duration // of an attempt, unless the job asks for another
	Fuel            int64         // units of what an attempt may execute, see abi/SPEC.md §7; 0 = no limit
}

// Invocation is one attempt of one job.
type Invocation struct {
	JobID       string
	Tenant      string
	Queue       string
	Type        string
	Run         int
	Attempt     int
	MaxAttempts int
	Payload     []byte
	Headers     map[string]string
	Checkpoint  []byte // nil = none
	Version     *Version
	Limits      Limits    // complete
	Deadline    time.Time // end of the attempt; required
	Alone       bool      // run without neighbours in the process: an earlier attempt brought its process down
	Events      Events    // where the handler's reports go; never nil
}

// Events receives what a running handler reports. Log and Progress never block; Checkpoint returns when the data is durable.
type Events interface {
	Log(at time.Time, level, message string)
	Progress(done, total int64, message string)
	Checkpoint(ctx context.Context, data []byte) error
}

// OutcomeKind is how an attempt ended.
type OutcomeKind string

// How an attempt ended.
const (
	OutcomeSucceeded   OutcomeKind = "succeeded"
	OutcomeRetry       OutcomeKind = "retry"       // counts an attempt
	OutcomePermanent   OutcomeKind = "permanent"   // no further attempt
	OutcomeDefer       OutcomeKind = "defer"       // again after RetryAfter, counts nothing; 0 = yield
	OutcomeInterrupted OutcomeKind = "interrupted" // stopped without fault of its own, counts nothing
	OutcomeCrashed     OutcomeKind = "crashed"     // its process died under it, counts a crash
	OutcomeUnavailable OutcomeKind = "unavailable" // it could not be started, counts nothing
)

// Outcome is the end of an attempt.
type Outcome struct {
	Kind       OutcomeKind
	Result     []byte        // OutcomeSucceeded
	Error      *Error        // every other kind
	RetryAfter time.Duration // OutcomeRetry, OutcomeDefer; negative = by policy
	Duration   time.Duration // from start to end as the runtime saw it
	Fuel       int64         // 0 = not metered
	PeakMemory int64         // bytes; 0 = not known
}

// Error is a failure: one of the kinds in abi and a message for people.
type Error struct {
	Kind    string
	Message string
}

func (e *Error) Error() string { return e.Kind + ": " + e.Message }

// Sentinels of the seam.
var (
	// ErrNoHandler: no live version serves the type.
	ErrNoHandler = errors.New("no handler")
	// ErrStopped: the runtime was closed.
	ErrStopped = errors.New("runtime stopped")
	// ErrBusy: the runtime takes no more of this now; the same request may be made again later.
	ErrBusy = errors.New("runtime busy")
	// ErrSandbox: child processes cannot be locked down as far as the configuration says, so nothing of a tenant is looked at.
	ErrSandbox = errors.New("the sandbox is below its configured level")
)

// Causes with which the host ends an invocation's context.
var (
	ErrCancelled = errors.New("job cancelled")
	ErrLeaseLost = errors.New("lease lost")
	ErrDraining  = errors.New("host is going away")
)

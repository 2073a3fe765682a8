package catalog

import (
	"fmt"
	"time"

	"github.com/taskhost/taskhost/handlers"
	"github.com/taskhost/taskhost/queue"
)

// State is where a version is in its life.
//
//	        ┌────────► refused
//	compiling ─► ready ─SetLive─► live ─another goes live─► ready
//
// A module that is refused while the uploader waits is not stored at all.
type State string

// The states of a version.
const (
	StateCompiling State = "compiling"
	StateReady     State = "ready"
	StateLive      State = "live"
	StateRefused   State = "refused"
)

// VersionInfo describes one version of a handler, as the API shows it.
type VersionInfo struct {
	Tenant    string            `json:"tenant,omitempty"` // empty = host-wide
	Type      string            `json:"type"`
	Version   int               `json:"version"`
	State     State             `json:"state"`
	Percent   int               `json:"percent"` // of the jobs of the type: 100 when live, else 0
	SHA256    string            `json:"sha256"`  // hex, of the uploaded bytes
	SizeBytes int               `json:"size_bytes"`
	Kind      handlers.Kind     `json:"kind,omitempty"`
	Imports   []string          `json:"imports"`
	Memory    handlers.Memory   `json:"memory"`
	Instance  handlers.Instance `json:"instance"`
	CompileMS int64             `json:"compile_ms"`
	Warnings  []string          `json:"warnings"`
	Exports   []string          `json:"exports,omitempty"`  // "name (kind)"
	Features  []string          `json:"features,omitempty"` // of WebAssembly, beyond its first version
	Metered   bool              `json:"metered,omitempty"`  // its fuel is counted, and it can be stopped anywhere
	Lines     bool              `json:"source_lines,omitempty"`
	Refusal   string            `json:"refusal,omitempty"` // why, when refused
	CreatedAt time.Time         `json:"created_at"`
}

// StateError says that a version is in a state that does not allow what was asked. It is a queue.ErrConflict.
type StateError struct {
	Type    string
	Version int
	State   State
	Op      string // "make live"
	Reason  string // of a refused version
}

func (e *StateError) Error() string {
	s := fmt.Sprintf("cannot %s %s version %d: it is %s", e.Op, e.Type, e.Version, e.State)
	if e.Reason != "" {
		s += ": " + e.Reason
	}
	return s
}

// Is makes errors.Is(err, queue.ErrConflict) true.
func (e *StateError) Is(target error) bool { return target == queue.ErrConflict }

// NoEarlierError says that there is no version to roll back to. It is a queue.ErrConflict.
type NoEarlierError struct{ Type string }

func (e *NoEarlierError) Error() string {
	return fmt.Sprintf("cannot roll back %s: no other version of it was live before", e.Type)
}

// Is makes errors.Is(err, queue.ErrConflict) true.
func (e *NoEarlierError) Is(target error) bool { return target == queue.ErrConflict }

func notFound(typ string, version int) error {
	if version == 0 {
		return fmt.Errorf("handler %s: %w", typ, queue.ErrNotFound)
	}
	return fmt.Errorf("handler %s version %d: %w", typ, version, queue.ErrNotFound)
}

package queue

import (
	"errors"
	"fmt"
)

// Sentinels of the seam; test with errors.Is.
var (
	ErrNotFound    = errors.New("not found")
	ErrConflict    = errors.New("conflict")
	ErrLeaseLost   = errors.New("lease lost")
	ErrUnavailable = errors.New("store unavailable")
	ErrClosed      = errors.New("store closed")
	ErrInvalid     = errors.New("invalid")
)

// InvalidError says which field of a request is wrong and what is allowed. It is an ErrInvalid.
type InvalidError struct {
	Field  string // as in the API, e.g. "queue"
	Reason string // complete: what was given and what is allowed
}

func (e *InvalidError) Error() string { return e.Field + ": " + e.Reason }

// Is makes errors.Is(err, ErrInvalid) true.
func (e *InvalidError) Is(target error) bool { return target == ErrInvalid }

// LimitError says that something is over a limit, with both numbers.
type LimitError struct {
	Field string // what is too large, e.g. "payload"
	Limit string // name of the limit
	Max   int64
	Got   int64
	Unit  string // "bytes", "jobs"
}

func (e *LimitError) Error() string {
	return fmt.Sprintf("%s: %d %s is over the limit %s of %d %s", e.Field, e.Got, e.Unit, e.Limit, e.Max, e.Unit)
}

// Is makes errors.Is(err, ErrInvalid) true.
func (e *LimitError) Is(target error) bool { return target == ErrInvalid }

// UniqueHeldError says which job holds a unique key. It is an ErrConflict.
type UniqueHeldError struct {
	Key   string
	JobID string
	State State // empty when the job is gone, and its key is held by a window
}

func (e *UniqueHeldError) Error() string {
	if e.State == "" {
		return fmt.Sprintf("unique key %q is held by %s, which was removed", e.Key, e.JobID)
	}
	return fmt.Sprintf("unique key %q is held by %s (%s)", e.Key, e.JobID, e.State)
}

// Is makes errors.Is(err, ErrConflict) true.
func (e *UniqueHeldError) Is(target error) bool { return target == ErrConflict }

// IdempotencyMismatchError says that an idempotency key was used before with another request. It is an ErrConflict.
type IdempotencyMismatchError struct {
	Key   string
	JobID string // of the first request
}

func (e *IdempotencyMismatchError) Error() string {
	return fmt.Sprintf("idempotency key %q was used for %s with a different request", e.Key, e.JobID)
}

// Is makes errors.Is(err, ErrConflict) true.
func (e *IdempotencyMismatchError) Is(target error) bool { return target == ErrConflict }

// StateError says that a job is in a state that does not allow the operation. It is an ErrConflict.
type StateError struct {
	JobID string
	State State
	Op    string // "cancel", "delete", "replay"
}

func (e *StateError) Error() string {
	return fmt.Sprintf("cannot %s %s: it is %s", e.Op, e.JobID, e.State)
}

// Is makes errors.Is(err, ErrConflict) true.
func (e *StateError) Is(target error) bool { return target == ErrConflict }

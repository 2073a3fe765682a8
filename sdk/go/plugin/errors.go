package plugin

import (
	"errors"
	"fmt"
	"time"
)

// Kind is what an error asks the host to do with the job.
type Kind int32

// The kinds of failure.
const (
	KindRetry     Kind = 1 // try again; counts an attempt
	KindPermanent Kind = 2 // never try again: the job is dead
	KindDefer     Kind = 3 // run again later; counts no attempt
)

// ByPolicy as Error.After leaves the delay before the next attempt to the job's retry policy.
const ByPolicy time.Duration = -1

// Error is a failure with an instruction for the host. Make one with [Retry], [RetryAfter], [Permanent], [Defer] or [Yield]; find one
// with errors.As. The outermost one in a chain decides.
type Error struct {
	Kind  Kind
	After time.Duration // before the next run; negative = by policy; whole milliseconds, rounded up
	Err   error         // why; nil for Defer and Yield
}

func (e *Error) Error() string {
	switch {
	case e.Err != nil:
		return e.Err.Error()
	case e.Kind == KindDefer && e.After == 0:
		return "yielded"
	case e.Kind == KindDefer:
		return "deferred for " + e.After.String()
	}
	return "failed"
}

// Unwrap returns why.
func (e *Error) Unwrap() error { return e.Err }

// Retry marks err as worth another attempt after the delay of the job's retry policy, which is also what an unmarked error gets: use it
// to override a Permanent deeper in the chain. Retry(nil) is nil.
func Retry(err error) error { return mark(KindRetry, ByPolicy, err) }

// RetryAfter marks err as worth another attempt after d. A negative d is taken as 0. RetryAfter(d, nil) is nil.
func RetryAfter(d time.Duration, err error) error { return mark(KindRetry, max(d, 0), err) }

// Permanent marks err as one that no further attempt can mend: the job goes to the dead-letter queue at once. Permanent(nil) is nil.
func Permanent(err error) error { return mark(KindPermanent, ByPolicy, err) }

func mark(kind Kind, after time.Duration, err error) error {
	if err == nil {
		return nil
	}
	return &Error{Kind: kind, After: after, Err: err}
}

// Defer is returned to run the job again after d without counting an attempt: the work is not ready yet. A negative d is taken as 0.
func Defer(d time.Duration) error { return &Error{Kind: KindDefer, After: max(d, 0)} }

// Yield is returned to let other jobs go first: the job goes to the tail of its queue and no attempt is counted.
func Yield() error { return Defer(0) }

// Errno is why the host refused a call.
type Errno int32

// The errnos a plugin can meet.
const (
	ErrTooLarge    Errno = -4 // over the limit of the attempt
	ErrCancelled   Errno = -6 // the lease was lost, or the attempt is over
	ErrUnavailable Errno = -7 // the store did not answer
)

// Error says what the errno means.
func (e Errno) Error() string {
	switch e {
	case ErrTooLarge:
		return "too large"
	case ErrCancelled:
		return "cancelled"
	case ErrUnavailable:
		return "unavailable"
	}
	return fmt.Sprintf("host error %d", int32(e))
}

// ErrStopped is the cause of a context that ended because the host asked to stop; the reason is in the text that wraps it.
var ErrStopped = errors.New("the host asked to stop")

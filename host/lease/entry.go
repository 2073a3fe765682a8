package lease

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/taskhost/taskhost/queue"
)

// Phases of an entry.
//
//	running ──Settling──► settling ──Remove──► gone
//	   │ (a lost lease, a cancel or an overdue deadline ends the invocation's context with its cause)
const (
	phaseRunning int32 = iota
	phaseSettling
	phaseGone
)

// Entry is one reservation as the keeper knows it. It is meant to be embedded; fill it in with Init before Keeper.Add.
type Entry struct {
	ref    queue.Ref
	ctx    context.Context
	cancel context.CancelCauseFunc

	sent     time.Time // when the Reserve was sent; carries the monotonic clock
	phase    atomic.Int32
	lost     atomic.Bool
	deadline atomic.Int64 // nanoseconds after sent; 0 = not started

	// Guarded by the keeper's lock.
	index     int
	renewed   time.Time // when the request was sent that the store last confirmed the lease for
	overdue   bool      // the watchdog has ended the context
	abandoned bool      // the watchdog has given the lease up
}

// Init prepares an entry for a reservation whose Reserve was sent at sent. The invocation's context has no parent: only the
// keeper, the drain and the owner end it.
func (e *Entry) Init(ref queue.Ref, sent time.Time) {
	e.ref, e.sent, e.renewed = ref, sent, sent
	e.ctx, e.cancel = context.WithCancelCause(context.Background())
}

// Ref names the reservation.
func (e *Entry) Ref() queue.Ref { return e.ref }

// Context is the context of the invocation.
func (e *Entry) Context() context.Context { return e.ctx }

// Cancel ends the invocation's context with cause.
func (e *Entry) Cancel(cause error) { e.cancel(cause) }

// Started tells the watchdog when the attempt has to be over (host clock).
func (e *Entry) Started(deadline time.Time) { e.deadline.Store(int64(max(deadline.Sub(e.sent), 1))) }

// late is how long the attempt is past its deadline; not started is not late.
func (e *Entry) late(now time.Time) time.Duration {
	d := e.deadline.Load()
	if d == 0 {
		return 0
	}
	return now.Sub(e.sent) - time.Duration(d)
}

// Settling says that the invocation is over and only its settlement is outstanding: the lease is still extended, but what
// the store says of it no longer stops anything. It returns false when the lease is known to be lost.
func (e *Entry) Settling() bool {
	e.phase.Store(phaseSettling)
	return !e.lost.Load()
}

// Lost reports whether the store said that the lease is lost.
func (e *Entry) Lost() bool { return e.lost.Load() }

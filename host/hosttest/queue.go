// Package hosttest has what tests of the host need around a real queue engine: a queue whose calls are counted and can be
// made to fail.
package hosttest

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/taskhost/taskhost/queue"
)

// Engine is everything an engine may offer to a host.
type Engine interface {
	queue.Queue
	queue.Jobs
	queue.Explainer
	queue.Queues
	queue.Notes
	queue.DeadLetters
	queue.Bulk
	queue.Leaser
	queue.Records
}

// Queue passes every call on to the engine it wraps, counts it, and fails it while told so.
type Queue struct {
	Engine
	Reserves, Waits, Settles, Extends, Maintains atomic.Int64

	mu        sync.Mutex
	down      error
	delay     time.Duration
	dropReply int
	onSettle  func([]queue.Settlement)
	settled   []queue.Settlement
}

// Wrap returns a Queue around e.
func Wrap(e Engine) *Queue { return &Queue{Engine: e} }

// Fail makes Reserve, Wait, Settle, Extend, Maintain, WaitDue and the named leases answer err without reaching the engine, until
// it is called with nil.
func (q *Queue) Fail(err error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.down = err
}

// DropSettleReplies makes the next n Settle calls take effect and answer ErrUnavailable.
func (q *Queue) DropSettleReplies(n int) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.dropReply = n
}

// OnSettle calls fn before every Settle.
func (q *Queue) OnSettle(fn func([]queue.Settlement)) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.onSettle = fn
}

// Settled returns copies of all settlements that reached the engine, in order.
func (q *Queue) Settled() []queue.Settlement {
	q.mu.Lock()
	defer q.mu.Unlock()
	return append([]queue.Settlement(nil), q.settled...)
}

func (q *Queue) failing() error {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.down
}

// Reserve counts and passes on.
func (q *Queue) Reserve(ctx context.Context, p queue.ReserveParams) ([]*queue.Job, error) {
	q.Reserves.Add(1)
	if err := q.failing(); err != nil {
		return nil, err
	}
	jobs, err := q.Engine.Reserve(ctx, p)
	q.mu.Lock()
	delay := q.delay
	q.mu.Unlock()
	if len(jobs) > 0 && delay > 0 {
		time.Sleep(delay)
	}
	return jobs, err
}

// DelayReserve makes the reply of a Reserve that took jobs arrive late.
func (q *Queue) DelayReserve(d time.Duration) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.delay = d
}

// Wait counts and passes on.
func (q *Queue) Wait(ctx context.Context, v queue.View) error {
	q.Waits.Add(1)
	if err := q.failing(); err != nil {
		return err
	}
	return q.Engine.Wait(ctx, v)
}

// Extend counts and passes on.
func (q *Queue) Extend(ctx context.Context, refs []queue.Ref, lease time.Duration) ([]queue.ExtendOutcome, error) {
	q.Extends.Add(1)
	if err := q.failing(); err != nil {
		return nil, err
	}
	return q.Engine.Extend(ctx, refs, lease)
}

// Maintain counts and passes on.
func (q *Queue) Maintain(ctx context.Context) (queue.MaintainReport, error) {
	q.Maintains.Add(1)
	if err := q.failing(); err != nil {
		return queue.MaintainReport{}, err
	}
	return q.Engine.Maintain(ctx)
}

// WaitDue passes on.
func (q *Queue) WaitDue(ctx context.Context) error {
	if err := q.failing(); err != nil {
		return err
	}
	return q.Engine.WaitDue(ctx)
}

// AcquireLease passes on.
func (q *Queue) AcquireLease(ctx context.Context, name, holder string, ttl time.Duration) (bool, error) {
	if err := q.failing(); err != nil {
		return false, err
	}
	return q.Engine.AcquireLease(ctx, name, holder, ttl)
}

// ReleaseLease passes on.
func (q *Queue) ReleaseLease(ctx context.Context, name, holder string) error {
	if err := q.failing(); err != nil {
		return err
	}
	return q.Engine.ReleaseLease(ctx, name, holder)
}

// Settle counts, records and passes on.
func (q *Queue) Settle(ctx context.Context, s []queue.Settlement) ([]queue.SettleOutcome, error) {
	q.Settles.Add(1)
	q.mu.Lock()
	down, hook := q.down, q.onSettle
	drop := q.dropReply > 0
	if drop {
		q.dropReply--
	}
	q.mu.Unlock()
	if hook != nil {
		hook(s)
	}
	if down != nil {
		return nil, down
	}
	q.mu.Lock()
	q.settled = append(q.settled, s...)
	q.mu.Unlock()
	outcomes, err := q.Engine.Settle(ctx, s)
	if drop && err == nil {
		return nil, queue.ErrUnavailable
	}
	return outcomes, err
}

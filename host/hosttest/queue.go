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

// Queue passes every call on to the queue it wraps, counts it, and fails it while told so.
type Queue struct {
	queue.Queue
	Reserves, Waits, Settles, Extends, Maintains atomic.Int64

	mu        sync.Mutex
	down      error
	dropReply int
	onSettle  func([]queue.Settlement)
	settled   []queue.Settlement
}

// Wrap returns a Queue around q.
func Wrap(q queue.Queue) *Queue { return &Queue{Queue: q} }

// Fail makes Reserve, Wait, Settle, Extend, Maintain and WaitDue answer err without reaching the engine, until it is called
// with nil.
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
	return q.Queue.Reserve(ctx, p)
}

// Wait counts and passes on.
func (q *Queue) Wait(ctx context.Context, v queue.View) error {
	q.Waits.Add(1)
	if err := q.failing(); err != nil {
		return err
	}
	return q.Queue.Wait(ctx, v)
}

// Extend counts and passes on.
func (q *Queue) Extend(ctx context.Context, refs []queue.Ref, lease time.Duration) ([]queue.ExtendOutcome, error) {
	q.Extends.Add(1)
	if err := q.failing(); err != nil {
		return nil, err
	}
	return q.Queue.Extend(ctx, refs, lease)
}

// Maintain counts and passes on.
func (q *Queue) Maintain(ctx context.Context) (queue.MaintainReport, error) {
	q.Maintains.Add(1)
	if err := q.failing(); err != nil {
		return queue.MaintainReport{}, err
	}
	return q.Queue.Maintain(ctx)
}

// WaitDue passes on.
func (q *Queue) WaitDue(ctx context.Context) error {
	if err := q.failing(); err != nil {
		return err
	}
	return q.Queue.WaitDue(ctx)
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
	outcomes, err := q.Queue.Settle(ctx, s)
	if drop && err == nil {
		return nil, queue.ErrUnavailable
	}
	return outcomes, err
}

// Package settle carries the ends of jobs to the store in batches: while one Settle call is in flight the next batch gathers,
// so that a slow store makes larger batches instead of a longer line (group commit). Settlements keep their order. One whose
// fate is unknown is sent again until the store answers: it is fenced by its token, so sending it twice does no harm, and once
// the lease is gone the store says so. Nothing is dropped while the store may still come back.
package settle

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"sync/atomic"

	"github.com/taskhost/taskhost/host/lifecycle"
	"github.com/taskhost/taskhost/host/outage"
	"github.com/taskhost/taskhost/queue"
)

// Settler is the part of queue.Queue the batcher needs.
type Settler interface {
	Settle(ctx context.Context, settlements []queue.Settlement) ([]queue.SettleOutcome, error)
}

// Owner learns what became of its settlement, in the batcher's goroutine; it must not block.
type Owner interface {
	// Settled is called once. The status is ok, lease_lost or rejected; unknown means that the batcher was stopped, or
	// the store closed, before it answered.
	Settled(o queue.SettleOutcome)
}

// Item is a settlement with its owner.
type Item struct {
	queue.Settlement
	Owner Owner

	resent bool // an earlier sending had no answer
}

// ErrResent comes with a lease_lost of a settlement that was sent before without an answer: that sending may have taken effect.
var ErrResent = errors.New("an earlier sending of it, which was not answered, may have taken effect")

// Options of a Batcher. Zero bounds mean the defaults.
type Options struct {
	Queue  Settler
	Log    *slog.Logger
	Random func() float64 // uniform in [0, 1)

	// Submit blocks while more than this waits to be settled, so that a store outage stops the taking of new work
	// instead of filling memory.
	MaxPending      int   // default 4096 settlements
	MaxPendingBytes int64 // of results; default 64 MiB
}

// Defaults of Options.
const (
	MaxPendingDefault            = 4096
	MaxPendingBytesDefault int64 = 64 << 20
)

// Stats counts since the start.
type Stats struct {
	Pending   int   // now: submitted and not answered
	StoreDown bool  // now: the last Settle failed
	Calls     int64 // Settle calls
	OK        int64
	LeaseLost int64
	Rejected  int64
	Retried   int64 // settlements sent again because their fate was unknown
	Resent    int64 // of those, answered lease_lost: an earlier sending took effect, or the lease was lost
	GivenUp   int64 // settlements whose fate stayed unknown when the host ended
}

// Batcher settles. Make one with New.
type Batcher struct {
	o    Options
	loop lifecycle.Loop
	wake chan struct{}
	end  chan struct{} // closed by Stop: flush, then end

	mu       sync.Mutex
	room     sync.Cond
	pending  []Item
	held     []Item // releases kept back by HoldReleases
	holding  bool
	size     int // pending, held and in flight
	bytes    int64
	stopping bool
	stopped  bool

	counts struct{ calls, ok, lost, rejected, retried, resent, givenUp atomic.Int64 }

	// Used by the loop only.
	gate  outage.Gate
	spare []Item
	sends []queue.Settlement
}

// New returns a batcher that is not started. Submit may be called before Start.
func New(o Options) *Batcher {
	if o.MaxPending <= 0 {
		o.MaxPending = MaxPendingDefault
	}
	if o.MaxPendingBytes <= 0 {
		o.MaxPendingBytes = MaxPendingBytesDefault
	}
	b := &Batcher{o: o, wake: make(chan struct{}, 1), end: make(chan struct{})}
	b.room.L = &b.mu
	b.gate = outage.Gate{Log: o.Log, What: "settle jobs", Random: o.Random}
	return b
}

// Start begins to settle.
func (b *Batcher) Start(ctx context.Context) error { return b.loop.Go(ctx, b.run) }

// Stop settles what was submitted, waits for the answers, and ends. It waits as long as the store does not answer; Kill
// ends that.
func (b *Batcher) Stop() {
	b.mu.Lock()
	if !b.stopping {
		b.stopping = true
		close(b.end)
	}
	b.releaseHeld()
	b.mu.Unlock()
	b.signal()
	// Before Start there is no loop to flush.
	<-b.loop.Finished()
	b.loop.Stop()
	b.giveUpRest()
}

// Kill ends now: a call in flight is broken off, and what is not answered is given up.
func (b *Batcher) Kill() { b.loop.Interrupt() }

// Submit hands settlements over in order, as one piece: they reach the store in one call. It blocks while too much is
// pending. After the end of the batcher owners are told "unknown" at once.
func (b *Batcher) Submit(items ...Item) {
	b.mu.Lock()
	for !b.stopped && b.size > 0 && (b.size >= b.o.MaxPending || b.bytes >= b.o.MaxPendingBytes) {
		b.room.Wait()
	}
	if b.stopped {
		b.mu.Unlock()
		b.giveUp(items)
		return
	}
	for i := range items {
		b.size++
		b.bytes += int64(len(items[i].Result))
		if b.holding && items[i].Verb == queue.VerbRelease {
			b.held = append(b.held, items[i])
			continue
		}
		b.pending = append(b.pending, items[i])
	}
	b.mu.Unlock()
	b.signal()
}

// Resubmit takes a settlement that replaces a rejected one. It never blocks, and is meant for Owner.Settled.
func (b *Batcher) Resubmit(it Item) {
	b.mu.Lock()
	if b.stopped {
		b.mu.Unlock()
		b.giveUp([]Item{it})
		return
	}
	b.size++
	b.bytes += int64(len(it.Result))
	b.pending = append(b.pending, it)
	b.mu.Unlock()
	b.signal()
}

// HoldReleases keeps releases back until FlushReleases, so that jobs given back by a drain form one batch: the store puts a
// batch to the front in the order in which it was reserved, but several batches in the reverse order of their arrival.
func (b *Batcher) HoldReleases() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.holding = !b.stopping
}

// FlushReleases sends the releases kept back, in one call.
func (b *Batcher) FlushReleases() {
	b.mu.Lock()
	b.releaseHeld()
	b.mu.Unlock()
	b.signal()
}

// releaseHeld needs the lock.
func (b *Batcher) releaseHeld() {
	b.holding = false
	b.pending = append(b.pending, b.held...)
	b.held = nil
}

func (b *Batcher) signal() {
	select {
	case b.wake <- struct{}{}:
	default:
	}
}

// Stats returns the counters.
func (b *Batcher) Stats() Stats {
	b.mu.Lock()
	size := b.size
	b.mu.Unlock()
	return Stats{Pending: size, StoreDown: !b.gate.Open(), Calls: b.counts.calls.Load(), OK: b.counts.ok.Load(),
		LeaseLost: b.counts.lost.Load(), Rejected: b.counts.rejected.Load(), Retried: b.counts.retried.Load(), Resent: b.counts.resent.Load(), GivenUp: b.counts.givenUp.Load()}
}

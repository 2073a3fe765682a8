// Package settle carries the ends of jobs to the store in batches: while one Settle call is in flight the next batch gathers,
// so that a slow store makes larger batches instead of a longer line (group commit). Settlements keep their order. One whose
// fate is unknown is sent again until the store answers: it is fenced by its token, so sending it twice does no harm, and once
// the lease is gone the store says so. Nothing is dropped while the store may still come back.
package settle

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime"
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

func (b *Batcher) run(ctx context.Context) {
	defer b.close()
	for {
		select {
		case <-ctx.Done():
			return
		case <-b.end:
			if b.empty() {
				return
			}
		case <-b.wake:
		}
		// Attempts that are about to end join this batch; when nothing else runs, this costs nothing.
		runtime.Gosched()
		batch := b.take()
		if len(batch) == 0 {
			continue
		}
		if err := b.settle(ctx, batch); err != nil {
			b.o.Log.Error("settling ended before the store answered; the leases will run out", "given_up", b.counts.givenUp.Load(), "error", err)
			return
		}
	}
}

func (b *Batcher) empty() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.pending) == 0
}

// take swaps the gathered batch against an empty one.
func (b *Batcher) take() []Item {
	b.mu.Lock()
	defer b.mu.Unlock()
	batch := b.pending
	b.pending = b.spare[:0]
	b.spare = batch
	return batch
}

// settle sends a batch until every settlement is answered. An error means that nobody will answer any more.
func (b *Batcher) settle(ctx context.Context, batch []Item) error {
	for first := true; len(batch) > 0; first = false {
		if !first {
			b.counts.retried.Add(int64(len(batch)))
			for i := range batch {
				batch[i].resent = true
			}
		}
		outcomes, err := b.send(ctx, batch)
		switch {
		case err == nil:
			before := len(batch)
			if batch = b.answer(batch, outcomes); len(batch) == 0 {
				b.gate.OK()
				return nil
			} else if len(batch) < before {
				b.gate.OK()
			}
			err = fmt.Errorf("%w: the fate of %d settlements is unknown", queue.ErrUnavailable, len(batch))
		case ctx.Err() != nil, errors.Is(err, queue.ErrClosed):
			b.giveUpBatch(batch)
			return err
		case !errors.Is(err, queue.ErrUnavailable):
			// A store that refuses a whole batch would block everyone behind it: find the one it is about.
			if len(batch) > 1 {
				for i := range batch {
					if err := b.settle(ctx, batch[i:i+1]); err != nil {
						b.giveUpBatch(batch[i+1:])
						return err
					}
				}
				return nil
			}
			b.done(&batch[0], queue.SettleOutcome{Status: queue.SettleRejected, Err: err})
			return nil
		}
		if outage.Sleep(ctx, b.gate.Failed(err)) != nil {
			b.giveUpBatch(batch)
			return context.Cause(ctx)
		}
	}
	return nil
}

func (b *Batcher) send(ctx context.Context, batch []Item) ([]queue.SettleOutcome, error) {
	b.sends = b.sends[:0]
	for i := range batch {
		b.sends = append(b.sends, batch[i].Settlement)
	}
	b.counts.calls.Add(1)
	outcomes, err := b.o.Queue.Settle(ctx, b.sends)
	clear(b.sends) // results must not outlive the call
	if err == nil && len(outcomes) != len(batch) {
		err = fmt.Errorf("%w: settle answered %d outcomes for %d settlements", queue.ErrUnavailable, len(outcomes), len(batch))
	}
	return outcomes, err
}

// answer tells the owners and returns what is still unknown, in order.
func (b *Batcher) answer(batch []Item, outcomes []queue.SettleOutcome) []Item {
	unknown := batch[:0]
	var settled int
	var bytes int64
	for i := range batch {
		if outcomes[i].Status == queue.SettleUnknown {
			unknown = append(unknown, batch[i])
			continue
		}
		settled++
		bytes += int64(len(batch[i].Result))
		o := outcomes[i]
		if o.Status == queue.SettleLeaseLost && batch[i].resent {
			o.Err = ErrResent
			b.counts.resent.Add(1)
		} else {
			b.count(o.Status)
		}
		batch[i].Owner.Settled(o)
	}
	b.makeRoom(settled, bytes)
	clear(batch[len(unknown):])
	return unknown
}

func (b *Batcher) done(it *Item, o queue.SettleOutcome) {
	b.count(o.Status)
	size := int64(len(it.Result))
	it.Owner.Settled(o)
	*it = Item{}
	b.makeRoom(1, size)
}

func (b *Batcher) count(s queue.SettleStatus) {
	switch s {
	case queue.SettleOK:
		b.counts.ok.Add(1)
	case queue.SettleLeaseLost:
		b.counts.lost.Add(1)
	case queue.SettleRejected:
		b.counts.rejected.Add(1)
	case queue.SettleUnknown:
		b.counts.givenUp.Add(1)
	}
}

func (b *Batcher) makeRoom(n int, bytes int64) {
	b.mu.Lock()
	b.size -= n
	b.bytes -= bytes
	b.mu.Unlock()
	b.room.Broadcast()
}

func (b *Batcher) giveUpBatch(batch []Item) {
	for i := range batch {
		b.done(&batch[i], queue.SettleOutcome{Status: queue.SettleUnknown, Err: queue.ErrUnavailable})
	}
}

// giveUp answers for items that were never taken in.
func (b *Batcher) giveUp(items []Item) {
	for i := range items {
		b.count(queue.SettleUnknown)
		items[i].Owner.Settled(queue.SettleOutcome{Status: queue.SettleUnknown, Err: lifecycle.ErrStopped})
	}
}

// close ends the taking of settlements.
func (b *Batcher) close() {
	b.mu.Lock()
	b.stopped = true
	b.mu.Unlock()
	b.room.Broadcast()
	b.giveUpRest()
}

// giveUpRest answers for what was taken in and never sent.
func (b *Batcher) giveUpRest() {
	b.mu.Lock()
	b.stopped = true
	rest := append(b.pending, b.held...)
	b.pending, b.held = nil, nil
	b.mu.Unlock()
	b.room.Broadcast()
	b.giveUpBatch(rest)
}

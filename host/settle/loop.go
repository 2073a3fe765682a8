package settle

import (
	"context"
	"errors"
	"fmt"
	"runtime"

	"github.com/taskhost/taskhost/host/lifecycle"
	"github.com/taskhost/taskhost/host/outage"
	"github.com/taskhost/taskhost/queue"
)

// run takes what gathered and settles it, until Kill, or until Stop and nothing is left.
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

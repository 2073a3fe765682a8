// Package lease keeps the leases of running jobs alive: one batched Extend for all of them per third of a lease, whatever
// their number, and none while nothing runs. The answers are how a handler learns that its job is no longer its own, or
// was cancelled.
//
// # What is trusted, and for how long
//
// A lease is counted from the moment the request was *sent* that the store confirmed, on the host's monotonic clock, so it
// is never believed longer than the store grants it. When the store has not answered for most of a lease, the leases are
// unsure: this is logged and counted, and the handlers go on. They are stopped only when the store says that a lease is lost,
// because a store that comes back after an outage lets hosts renew by token before it reclaims anything; stopping early would
// throw work away that is still wanted. What such a handler does to the store is fenced by its token all along.
//
// A host that was suspended (SIGSTOP, a frozen machine) extends at once when it resumes, and learns what it lost.
package lease

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/taskhost/taskhost/handlers"
	"github.com/taskhost/taskhost/host/lifecycle"
	"github.com/taskhost/taskhost/host/outage"
	"github.com/taskhost/taskhost/queue"
)

// Extender is the part of queue.Queue the keeper needs.
type Extender interface {
	Extend(ctx context.Context, refs []queue.Ref, lease time.Duration) ([]queue.ExtendOutcome, error)
}

// Options of a Keeper; all are required but OverdueGrace.
type Options struct {
	Queue  Extender
	Lease  time.Duration
	Log    *slog.Logger
	Random func() float64 // uniform in [0, 1)

	// OverdueGrace is how long after its deadline an invocation may take to return (default 10 s). Runtimes enforce
	// deadlines themselves; this is the net below them. After it the context ends; after it has passed once more the lease
	// is no longer extended, so that the job runs elsewhere.
	OverdueGrace time.Duration
}

// OverdueGraceDefault is the default of Options.OverdueGrace.
const OverdueGraceDefault = 10 * time.Second

// ErrOverdue is the cause when the watchdog ends an invocation that its runtime did not end in time.
var ErrOverdue = fmt.Errorf("the runtime did not stop it: %w", context.DeadlineExceeded)

// Stats counts since the start.
type Stats struct {
	Held      int   // now
	Unsure    bool  // now: the store has not confirmed leases for most of their length
	Extends   int64 // calls
	Lost      int64 // leases lost while the handler ran
	Cancelled int64 // cancels delivered to handlers
	Overdue   int64 // invocations the watchdog ended
	Abandoned int64 // leases given up because the runtime never returned
}

// Keeper extends leases. Make one with New.
type Keeper struct {
	o    Options
	loop lifecycle.Loop
	kick chan struct{}

	mu      sync.Mutex
	entries []*Entry

	unsure atomic.Bool
	counts struct{ extends, lost, cancelled, overdue, abandoned atomic.Int64 }

	// Used by the loop only.
	gate  outage.Gate
	batch []*Entry
	refs  []queue.Ref
}

// New returns a keeper that is not started.
func New(o Options) *Keeper {
	if o.OverdueGrace == 0 {
		o.OverdueGrace = OverdueGraceDefault
	}
	k := &Keeper{o: o, kick: make(chan struct{}, 1)}
	// A failed extend is tried again soon: there is less than a lease left to get through.
	k.gate = outage.Gate{Log: o.Log, What: "extend leases", Random: o.Random,
		Backoff: queue.Backoff{Base: o.Lease / 60, Max: o.Lease / 15}}
	return k
}

// Start begins to extend.
func (k *Keeper) Start(ctx context.Context) error { return k.loop.Go(ctx, k.run) }

// Stop ends extending. Leases still held run out.
func (k *Keeper) Stop() { k.loop.Stop() }

// Add takes over the entries of one Reserve.
func (k *Keeper) Add(entries []*Entry) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, e := range entries {
		e.index = len(k.entries)
		k.entries = append(k.entries, e)
	}
}

// Remove forgets an entry whose reservation is over, and ends its context.
func (k *Keeper) Remove(e *Entry) {
	e.phase.Store(phaseGone)
	e.cancel(context.Canceled)
	k.mu.Lock()
	defer k.mu.Unlock()
	last := len(k.entries) - 1
	if e.index > last || k.entries[e.index] != e {
		return // removed before
	}
	k.entries[e.index] = k.entries[last]
	k.entries[e.index].index = e.index
	k.entries[last] = nil
	k.entries = k.entries[:last]
}

// Check extends at once instead of at the next third of a lease, so that a cancel is delivered without that wait.
func (k *Keeper) Check() {
	select {
	case k.kick <- struct{}{}:
	default:
	}
}

// CancelAll ends the invocations that run now.
func (k *Keeper) CancelAll(cause error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, e := range k.entries {
		if e.phase.Load() == phaseRunning {
			e.cancel(cause)
		}
	}
}

// Running returns the ids of jobs whose invocation has not ended, at most limit.
func (k *Keeper) Running(limit int) []string {
	k.mu.Lock()
	defer k.mu.Unlock()
	var ids []string
	for _, e := range k.entries {
		if e.phase.Load() == phaseRunning && len(ids) < limit {
			ids = append(ids, e.ref.ID)
		}
	}
	return ids
}

// Stats returns the counters.
func (k *Keeper) Stats() Stats {
	k.mu.Lock()
	held := len(k.entries)
	k.mu.Unlock()
	return Stats{Held: held, Unsure: k.unsure.Load(), Extends: k.counts.extends.Load(), Lost: k.counts.lost.Load(),
		Cancelled: k.counts.cancelled.Load(), Overdue: k.counts.overdue.Load(), Abandoned: k.counts.abandoned.Load()}
}

func (k *Keeper) run(ctx context.Context) {
	third := max(k.o.Lease/3, time.Millisecond)
	timer := time.NewTimer(third)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-timer.C:
		case <-k.kick:
		}
		k.watch(time.Now())
		timer.Reset(k.extend(ctx, third))
	}
}

// extend renews every lease in one call and returns how long to wait before the next.
func (k *Keeper) extend(ctx context.Context, third time.Duration) time.Duration {
	k.collect()
	if len(k.refs) == 0 {
		return third
	}
	sent := time.Now()
	// A call that hangs must not use up the lease: it is given a third, then tried again.
	callCtx, cancel := context.WithTimeout(ctx, third)
	outcomes, err := k.o.Queue.Extend(callCtx, k.refs, k.o.Lease)
	cancel()
	if ctx.Err() != nil {
		return third
	}
	k.counts.extends.Add(1)
	if err == nil && len(outcomes) != len(k.refs) {
		err = fmt.Errorf("%w: extend answered %d outcomes for %d leases", queue.ErrUnavailable, len(outcomes), len(k.refs))
	}
	if err != nil {
		k.doubt(time.Now())
		return k.gate.Failed(err)
	}
	k.gate.OK()
	if k.unsure.Swap(false) {
		k.o.Log.Info("leases are confirmed again", "held", len(k.refs))
	}
	for i, e := range k.batch {
		k.answer(e, outcomes[i], sent)
	}
	return third
}

// collect copies what is to be extended out of the lock.
func (k *Keeper) collect() {
	k.mu.Lock()
	defer k.mu.Unlock()
	clear(k.batch)
	k.batch, k.refs = k.batch[:0], k.refs[:0]
	for _, e := range k.entries {
		if !e.abandoned && !e.lost.Load() {
			k.batch, k.refs = append(k.batch, e), append(k.refs, e.ref)
		}
	}
}

func (k *Keeper) answer(e *Entry, o queue.ExtendOutcome, sent time.Time) {
	switch o.Status {
	case queue.ExtendOK, queue.ExtendCancelRequested:
		k.mu.Lock()
		e.renewed = sent
		k.mu.Unlock()
		if o.Status == queue.ExtendCancelRequested && e.phase.Load() == phaseRunning && e.ctx.Err() == nil {
			k.counts.cancelled.Add(1)
			e.cancel(handlers.ErrCancelled)
		}
	case queue.ExtendLost:
		// A job whose settlement is on its way may be gone because that settlement arrived; its own answer tells.
		if e.phase.Load() == phaseRunning {
			e.lost.Store(true)
			k.counts.lost.Add(1)
			k.o.Log.Warn("lease lost; stopping the handler", "job", e.ref.ID, "held_since_confirmed", time.Since(e.renewed).Round(time.Millisecond))
			e.cancel(handlers.ErrLeaseLost)
		}
	}
}

// doubt says once per outage that leases may have ended.
func (k *Keeper) doubt(now time.Time) {
	margin := k.o.Lease / 5
	k.mu.Lock()
	var oldest time.Duration
	for _, e := range k.entries {
		oldest = max(oldest, now.Sub(e.renewed))
	}
	k.mu.Unlock()
	if oldest > k.o.Lease-margin && !k.unsure.Swap(true) {
		k.o.Log.Error("leases may have ended: the store has not confirmed them; handlers go on until it says that one is lost",
			"unconfirmed_for", oldest.Round(time.Millisecond), "lease", k.o.Lease)
	}
}

// watch is the net below the runtimes' own deadlines.
func (k *Keeper) watch(now time.Time) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, e := range k.entries {
		if e.phase.Load() != phaseRunning || e.abandoned {
			continue
		}
		late := e.late(now)
		switch {
		case late > 2*k.o.OverdueGrace && e.overdue:
			e.abandoned = true
			k.counts.abandoned.Add(1)
			k.o.Log.Error("handler did not stop; its lease is no longer extended and its slot stays taken", "job", e.ref.ID, "past_deadline", late.Round(time.Millisecond))
		case late > k.o.OverdueGrace && !e.overdue:
			e.overdue = true
			k.counts.overdue.Add(1)
			k.o.Log.Error("handler ran past its deadline; ending it", "job", e.ref.ID, "past_deadline", late.Round(time.Millisecond))
			e.cancel(ErrOverdue)
		}
	}
}

// Package dispatch takes jobs from the queue as fast as they can be run, and no faster. It holds the free slots of the host;
// while there is none it asks for nothing, while there is no work it *blocks* in Queue.Wait and makes no call at all. Under
// load it reserves for all slots that are free in one call, and the slots that become free while that call is under way are
// gathered for the next one, so the number of calls per job falls as the load rises.
package dispatch

import (
	"context"
	"errors"
	"log/slog"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/taskhost/taskhost/host/lifecycle"
	"github.com/taskhost/taskhost/host/outage"
	"github.com/taskhost/taskhost/queue"
)

// Source is the part of queue.Queue the dispatcher needs.
type Source interface {
	Reserve(ctx context.Context, p queue.ReserveParams) ([]*queue.Job, error)
	Wait(ctx context.Context, view queue.View) error
}

// Attempt is one reserved job.
type Attempt interface {
	// Run runs it to its end; the slot is free when it returns.
	Run()
}

// Runner makes attempts of reserved jobs.
type Runner interface {
	// Take takes over the jobs of one Reserve, in order; sent is when that was sent.
	Take(jobs []*queue.Job, sent time.Time) []Attempt
	// Release gives attempts back that were not run, as one batch.
	Release(attempts []Attempt)
}

// Options of a Dispatcher.
type Options struct {
	Queue    Source
	Runner   Runner
	Worker   string
	View     queue.View
	Slots    int // jobs at once; ≥ 1
	Lease    time.Duration
	MaxBytes int // payload bytes per Reserve; 0 = MaxBytesDefault
	Log      *slog.Logger
	Random   func() float64 // uniform in [0, 1)
}

// MaxBytesDefault bounds the payloads of one Reserve.
const MaxBytesDefault = 4 << 20

// Stats counts since the start.
type Stats struct {
	Slots     int
	Busy      int   // now
	StoreDown bool  // now: the last call failed
	Reserves  int64 // calls
	Reserved  int64 // jobs
	Waits     int64 // calls
	VainWakes int64 // waits that ended and found nothing
}

// Dispatcher reserves and runs. Make one with New.
//
//	running ──StopReserving──► draining ──Stop──► stopped
type Dispatcher struct {
	o    Options
	loop lifecycle.Loop
	kill context.CancelFunc // breaks off a Reserve under way
	ctx  context.Context    // of Reserve

	free    atomic.Int64
	freed   chan struct{} // at least one slot became free
	idle    atomic.Pointer[chan struct{}]
	work    chan Attempt
	workers sync.WaitGroup

	// Used by the loop only.
	spawned int
	gather  time.Duration // see gatherFor

	closeWork sync.Once
	gate      outage.Gate
	counts    struct{ reserves, reserved, waits, vain atomic.Int64 }
}

// New returns a dispatcher that is not started.
func New(o Options) *Dispatcher {
	o.Slots = max(o.Slots, 1)
	if o.MaxBytes <= 0 {
		o.MaxBytes = MaxBytesDefault
	}
	d := &Dispatcher{o: o, freed: make(chan struct{}, 1), work: make(chan Attempt, o.Slots)}
	d.free.Store(int64(o.Slots))
	d.ctx, d.kill = context.WithCancel(context.Background())
	d.gate = outage.Gate{Log: o.Log, What: "reserve jobs", Random: o.Random}
	return d
}

// Start begins to reserve.
func (d *Dispatcher) Start(ctx context.Context) error { return d.loop.Go(ctx, d.run) }

// StopReserving ends the taking of new jobs and returns when none will be started any more; those that run go on. A Reserve
// under way is not broken off, because the jobs it takes would be lost until their lease ends: they are given back.
func (d *Dispatcher) StopReserving() { d.loop.Stop() }

// WaitIdle returns when no attempt runs, or with the context's cause. Only after StopReserving is idle final.
func (d *Dispatcher) WaitIdle(ctx context.Context) error {
	ch := make(chan struct{})
	d.idle.Store(&ch)
	if d.Busy() == 0 {
		return nil
	}
	select {
	case <-ch:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// Busy is how many slots are taken.
func (d *Dispatcher) Busy() int { return d.o.Slots - int(d.free.Load()) }

// Stop ends reserving, waits for the attempts that run, and ends the slots' goroutines.
func (d *Dispatcher) Stop() {
	d.Abandon()
	d.workers.Wait()
}

// Abandon is Stop without the wait for attempts that do not end: their goroutines end when they do.
func (d *Dispatcher) Abandon() {
	d.StopReserving()
	d.closeWork.Do(func() { close(d.work) })
	d.kill()
}

// Kill breaks off a Reserve under way; what it took is lost until its lease ends.
func (d *Dispatcher) Kill() {
	d.kill()
	d.loop.Interrupt()
}

// Stats returns the counters.
func (d *Dispatcher) Stats() Stats {
	return Stats{Slots: d.o.Slots, Busy: d.Busy(), StoreDown: !d.gate.Open(), Reserves: d.counts.reserves.Load(),
		Reserved: d.counts.reserved.Load(), Waits: d.counts.waits.Load(), VainWakes: d.counts.vain.Load()}
}

func (d *Dispatcher) run(ctx context.Context) {
	vain := 0
	for d.waitFree(ctx) {
		if d.gather > 0 && d.Busy() > 0 && outage.Sleep(ctx, d.gather) != nil {
			return
		}
		n, err := d.reserve(ctx)
		switch {
		case ctx.Err() != nil:
			return
		case err == nil && n > 0:
			vain = 0
			d.gate.OK()
			continue
		case err == nil:
			d.gate.OK()
			if vain++; vain > 1 {
				d.counts.vain.Add(1)
				// A hint may be wrong, but an engine that gives wrong ones for ever must not cost a processor.
				if vain > vainFree && outage.Sleep(ctx, vainPause) != nil {
					return
				}
			}
			d.counts.waits.Add(1)
			if err = d.o.Queue.Wait(ctx, d.o.View); err == nil {
				continue
			}
		}
		if ctx.Err() != nil {
			return
		}
		if errors.Is(err, queue.ErrClosed) {
			d.gate.Failed(err)
			d.o.Log.Error("the store was closed; no more jobs are taken", "error", err)
			return
		}
		if outage.Sleep(ctx, d.gate.Failed(err)) != nil {
			return
		}
	}
}

// After vainFree waits in a row that found nothing, each further one is followed by a pause of vainPause.
const (
	vainFree  = 16
	vainPause = 20 * time.Millisecond
)

// waitFree blocks until a slot is free; false when ctx ended.
func (d *Dispatcher) waitFree(ctx context.Context) bool {
	for {
		if ctx.Err() != nil {
			return false
		}
		if d.free.Load() > 0 {
			return true
		}
		select {
		case <-d.freed:
			// Attempts that are about to end do so before the slots are counted.
			runtime.Gosched()
		case <-ctx.Done():
			return false
		}
	}
}

// reserve takes as many jobs as there are free slots and starts them.
func (d *Dispatcher) reserve(ctx context.Context) (int, error) {
	slots := int(d.free.Load())
	sent := time.Now()
	d.counts.reserves.Add(1)
	jobs, err := d.o.Queue.Reserve(d.ctx, queue.ReserveParams{Worker: d.o.Worker, View: d.o.View, Max: slots, MaxBytes: d.o.MaxBytes, Lease: d.o.Lease})
	d.gather = gatherFor(time.Since(sent), len(jobs) == slots)
	if err != nil || len(jobs) == 0 {
		return 0, err
	}
	d.counts.reserved.Add(int64(len(jobs)))
	attempts := d.o.Runner.Take(jobs, sent)
	if ctx.Err() != nil {
		d.o.Runner.Release(attempts)
		return len(jobs), nil //nolint:nilerr // an end that came meanwhile; the caller sees it
	}
	busy := d.o.Slots - int(d.free.Add(-int64(len(attempts))))
	for d.spawned < min(busy, d.o.Slots) {
		d.spawned++
		d.workers.Go(d.slot)
	}
	for _, a := range attempts {
		d.work <- a
	}
	return len(jobs), nil
}

// gatherFor is how long to let slots become free before the next Reserve, given how long the last one took and whether it
// brought all that was asked for. Short jobs started by one batch end while the next Reserve is under way; asking right away would
// settle into half batches for ever, each half idle while the other is fetched. An eighth of a round trip makes whole ones.
func gatherFor(took time.Duration, full bool) time.Duration {
	const least, most = 400 * time.Microsecond, 16 * time.Millisecond
	if !full || took < least {
		return 0
	}
	return min(took, most) / 8
}

// slot is the goroutine of one slot; it is used again for every attempt.
func (d *Dispatcher) slot() {
	for a := range d.work {
		a.Run()
		if d.free.Add(1) == int64(d.o.Slots) {
			if ch := d.idle.Swap(nil); ch != nil {
				close(*ch)
			}
		}
		select {
		case d.freed <- struct{}{}:
		default:
		}
	}
}

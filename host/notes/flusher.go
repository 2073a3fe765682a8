// Package notes carries what running handlers say about themselves to the store: log lines in batches, progress coalesced to
// its last report, checkpoints at once and durably. One flusher serves all jobs of a host; each job has a Sink.
package notes

import (
	"context"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/taskhost/taskhost/host/lifecycle"
	"github.com/taskhost/taskhost/host/outage"
	"github.com/taskhost/taskhost/queue"
)

// Store is the part of queue.Notes that writes.
type Store interface {
	SetProgress(ctx context.Context, ref queue.Ref, p queue.Progress) error
	AppendLogs(ctx context.Context, ref queue.Ref, lines []queue.LogLine) error
	PutCheckpoint(ctx context.Context, ref queue.Ref, data []byte) error
}

// Options of a Flusher. A nil Store means that the queue keeps no notes: reports are dropped and counted, checkpoints answer an
// error.
type Options struct {
	Store  Store
	Log    *slog.Logger
	Random func() float64 // uniform in [0, 1)

	Gather   time.Duration // how long reports gather before they are written; default 100 ms
	LastTry  time.Duration // how long the last write of a finished job may take, store outages included; default 2 s
	Parallel int           // writes at once; default 8
}

// Defaults of Options.
const (
	GatherDefault   = 100 * time.Millisecond
	LastTryDefault  = 2 * time.Second
	ParallelDefault = 8
)

// Stats counts since the start.
type Stats struct {
	LinesWritten int64
	LinesDropped int64 // beyond the limit of their attempt, or the store did not take them in time
	Progress     int64 // reports written
	Checkpoints  int64
}

// Flusher writes the notes of all running jobs. Make one with New.
type Flusher struct {
	o    Options
	loop lifecycle.Loop
	wake chan struct{}

	mu    sync.Mutex
	dirty []*Sink

	gate   outage.Gate
	counts struct{ written, dropped, progress, checkpoints atomic.Int64 }
}

// New returns a flusher that is not started.
func New(o Options) *Flusher {
	if o.Gather <= 0 {
		o.Gather = GatherDefault
	}
	if o.LastTry <= 0 {
		o.LastTry = LastTryDefault
	}
	if o.Parallel <= 0 {
		o.Parallel = ParallelDefault
	}
	f := &Flusher{o: o, wake: make(chan struct{}, 1)}
	f.gate = outage.Gate{Log: o.Log, What: "write logs and progress of jobs", Random: o.Random}
	return f
}

// Start begins to write.
func (f *Flusher) Start(ctx context.Context) error { return f.loop.Go(ctx, f.run) }

// Stop ends the writing of what gathers. A Sink still writes its rest when it is closed.
func (f *Flusher) Stop() { f.loop.Stop() }

// Stats returns the counters.
func (f *Flusher) Stats() Stats {
	return Stats{LinesWritten: f.counts.written.Load(), LinesDropped: f.counts.dropped.Load(),
		Progress: f.counts.progress.Load(), Checkpoints: f.counts.checkpoints.Load()}
}

// enqueue marks a sink as having something to write.
func (f *Flusher) enqueue(s *Sink) {
	f.mu.Lock()
	f.dirty = append(f.dirty, s)
	f.mu.Unlock()
	select {
	case f.wake <- struct{}{}:
	default:
	}
}

func (f *Flusher) run(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-f.wake:
		}
		if outage.Sleep(ctx, f.o.Gather) != nil {
			return
		}
		f.mu.Lock()
		batch := f.dirty
		f.dirty = nil
		f.mu.Unlock()
		err := f.flush(ctx, batch)
		if ctx.Err() != nil {
			return
		}
		if err == nil {
			f.gate.OK()
		} else if outage.Sleep(ctx, f.gate.Failed(err)) != nil {
			return
		}
	}
}

// flush writes the sinks' reports, several at once, and returns one of the errors of those that will be tried again.
func (f *Flusher) flush(ctx context.Context, batch []*Sink) error {
	var (
		wg    sync.WaitGroup
		mu    sync.Mutex
		first error
		slots = make(chan struct{}, f.o.Parallel)
	)
	for _, s := range batch {
		slots <- struct{}{}
		wg.Go(func() {
			defer func() { <-slots }()
			if err := s.flush(ctx); err != nil {
				mu.Lock()
				first = err
				mu.Unlock()
				s.again()
			}
		})
	}
	wg.Wait()
	return first
}

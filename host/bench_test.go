package host

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"testing"
	"time"

	"github.com/taskhost/taskhost/handlers"
	"github.com/taskhost/taskhost/host/catalog"
	"github.com/taskhost/taskhost/host/dispatch"
	"github.com/taskhost/taskhost/host/lease"
	"github.com/taskhost/taskhost/host/notes"
	"github.com/taskhost/taskhost/host/runjob"
	"github.com/taskhost/taskhost/host/settle"
	"github.com/taskhost/taskhost/queue"
)

// arrayQueue hands out n jobs made beforehand and keeps nothing, so that the benchmark measures the host alone.
type arrayQueue struct {
	mu   sync.Mutex
	jobs []*queue.Job
	next int
	left int
	done chan struct{}
	ok   []queue.SettleOutcome
}

func newArrayQueue(n int) *arrayQueue {
	q := &arrayQueue{jobs: make([]*queue.Job, n), left: n, done: make(chan struct{}), ok: make([]queue.SettleOutcome, 1<<16)}
	for i := range q.jobs {
		q.jobs[i] = &queue.Job{ID: fmt.Sprintf("job_%d", i), Tenant: "default", Queue: "default", Type: "noop", Run: 1, Attempt: 1, MaxAttempts: 5, Token: "t"}
	}
	for i := range q.ok {
		q.ok[i] = queue.SettleOutcome{Status: queue.SettleOK, State: queue.StateSucceeded}
	}
	return q
}

func (q *arrayQueue) Reserve(_ context.Context, p queue.ReserveParams) ([]*queue.Job, error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	n := min(p.Max, len(q.jobs)-q.next)
	batch := q.jobs[q.next : q.next+n]
	q.next += n
	return batch, nil
}

func (q *arrayQueue) Wait(ctx context.Context, _ queue.View) error {
	<-ctx.Done()
	return context.Cause(ctx)
}

func (q *arrayQueue) Settle(_ context.Context, s []queue.Settlement) ([]queue.SettleOutcome, error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.left -= len(s); q.left == 0 {
		close(q.done)
	}
	return q.ok[:len(s)], nil
}

func (q *arrayQueue) Extend(_ context.Context, refs []queue.Ref, _ time.Duration) ([]queue.ExtendOutcome, error) {
	out := make([]queue.ExtendOutcome, len(refs))
	for i := range out {
		out[i].Status = queue.ExtendOK
	}
	return out, nil
}

// noop is a runtime that does nothing; handlertest.Func would add its own costs.
type noop struct{}

func (noop) Name() string { return "noop" }
func (noop) Slots() int   { return 64 }
func (noop) Invoke(context.Context, *handlers.Invocation) handlers.Outcome {
	return handlers.Outcome{Kind: handlers.OutcomeSucceeded, Duration: 1}
}
func (noop) Prepare(context.Context, *handlers.Version, func(context.Context) ([]byte, error)) error {
	return nil
}

// BenchmarkHostOverhead is the whole way of a job through the host, from Reserve to the answer of Settle, with a store and a
// handler that cost nothing. The goal is 150,000 jobs/s.
func BenchmarkHostOverhead(b *testing.B) {
	for _, slots := range []int{8, 64, 512} {
		b.Run(fmt.Sprintf("slots=%d", slots), func(b *testing.B) {
			q := newArrayQueue(b.N)
			log := slog.New(slog.DiscardHandler)
			random := func() float64 { return 0.5 }
			registry := &handlers.Registry{}
			registry.SetLive(&handlers.Version{Type: "noop", Number: 1, Runtime: "noop"})
			keeper := lease.New(lease.Options{Queue: q, Lease: LeaseDefault, Log: log, Random: random})
			batcher := settle.New(settle.Options{Queue: q, Log: log, Random: random})
			runner := runjob.New(runjob.Options{Registry: registry, Runtimes: map[string]handlers.Runtime{"noop": noop{}}, Keeper: keeper, Settle: batcher,
				Notes: notes.New(notes.Options{Log: log, Random: random}), Quarantine: catalog.New(catalog.Options{Log: log}), Limits: StandardDefaults().limits(), HandlerWait: HandlerWaitDefault, Log: log, Random: random})
			d := dispatch.New(dispatch.Options{Queue: q, Runner: runner, Worker: "w-bench", Slots: slots, Lease: LeaseDefault, Log: log, Random: random})
			b.ReportAllocs()
			b.ResetTimer()
			for _, start := range []func(context.Context) error{keeper.Start, batcher.Start, d.Start} {
				if err := start(b.Context()); err != nil {
					b.Fatal(err)
				}
			}
			<-q.done
			b.StopTimer()
			d.Stop()
			batcher.Stop()
			keeper.Stop()
			if held := keeper.Stats().Held; held != 0 {
				b.Fatalf("%d leases still held at the end", held)
			}
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "jobs/s")
			b.ReportMetric(float64(b.N)/float64(d.Stats().Reserves), "jobs/reserve")
			b.ReportMetric(float64(b.N)/float64(batcher.Stats().Calls), "jobs/settle")
		})
	}
}

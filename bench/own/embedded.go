// Package own runs a workload on taskhost itself: the product's host with its defaults, a Go function as the handler.
package own

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/taskhost/taskhost/bench/run"
	"github.com/taskhost/taskhost/handlers"
	"github.com/taskhost/taskhost/handlers/handlertest"
	"github.com/taskhost/taskhost/host"
	"github.com/taskhost/taskhost/queue"
	"github.com/taskhost/taskhost/queue/sqliteq"
)

const (
	tenant   = "default"
	taskType = "bench"
)

// Embedded is taskhost on the embedded store, in a directory of its own under dir, with one fsync per commit group.
// retention < 0 keeps no finished job, 0 the product's default.
func Embedded(name, dir string, retention time.Duration) run.Side {
	return run.Side{Name: name, Run: func(ctx context.Context, w run.Workload, seen func([]byte)) (m run.Measure, err error) {
		data, err := os.MkdirTemp(dir, "taskhost-bench-")
		if err != nil {
			return m, err
		}
		defer func() { err = errors.Join(err, os.RemoveAll(data)) }()
		store, err := sqliteq.Open(ctx, sqliteq.Options{Dir: data})
		if err != nil {
			return m, err
		}
		defer func() { err = errors.Join(err, store.Close()) }()
		if err := store.Configure(ctx, queue.Scheduling{Retention: queue.Retention{Succeeded: retention}}); err != nil {
			return m, err
		}
		return process(ctx, store, w, seen)
	}}
}

// process enqueues and handles the workload on a store, at once, and returns when the last job is settled.
func process(ctx context.Context, store host.Store, w run.Workload, seen func([]byte)) (m run.Measure, err error) {
	native := handlertest.NewFunc("native", w.Workers, func(_ context.Context, inv *handlers.Invocation) handlers.Outcome {
		seen(inv.Payload)
		return handlers.Outcome{Kind: handlers.OutcomeSucceeded}
	})
	h, err := host.New(host.Options{Store: store, Runtimes: []handlers.Runtime{native}, Log: slog.New(slog.DiscardHandler), Concurrency: w.Workers})
	if err != nil {
		return m, err
	}
	h.Registry().SetLive(&handlers.Version{Type: taskType, Number: 1, Runtime: "native"})
	if err := h.Start(ctx); err != nil {
		return m, err
	}
	start := time.Now()
	err = produce(ctx, store, w)
	if err == nil {
		err = settled(ctx, h, int64(w.Jobs))
	}
	m.Elapsed = time.Since(start)
	return m, errors.Join(err, h.Stop(ctx))
}

func produce(ctx context.Context, store queue.Queue, w run.Workload) error {
	var next atomic.Int64
	var group sync.WaitGroup
	var failure atomic.Pointer[error]
	for range w.Producers {
		group.Go(func() {
			for failure.Load() == nil {
				i := int(next.Add(1)) - 1
				if i >= w.Jobs {
					return
				}
				outcomes, err := store.Enqueue(ctx, []queue.JobSpec{{Tenant: tenant, Queue: "default", Type: taskType, Payload: run.PayloadFor(w, i), MaxAttempts: 5}})
				if err == nil && outcomes[0].Status != queue.EnqueueCreated {
					err = fmt.Errorf("job %d: %s: %w", i, outcomes[0].Status, outcomes[0].Err)
				}
				if err != nil {
					failure.Store(&err)
				}
			}
		})
	}
	group.Wait()
	if err := failure.Load(); err != nil {
		return fmt.Errorf("enqueue: %w", *err)
	}
	return nil
}

// settled waits until the host has settled n jobs, all of them accepted.
func settled(ctx context.Context, h *host.Host, n int64) error {
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for {
		if s := h.Stats().Settle; s.OK >= n {
			if s.LeaseLost+s.Rejected+s.GivenUp > 0 {
				return fmt.Errorf("settlements: %d leases lost, %d rejected, %d given up", s.LeaseLost, s.Rejected, s.GivenUp)
			}
			return nil
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return fmt.Errorf("%d of %d jobs settled: %w", h.Stats().Settle.OK, n, context.Cause(ctx))
		}
	}
}

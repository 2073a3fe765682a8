// Package own runs a workload on taskhost itself: the product's host with its defaults, a Go function as the handler.
package own

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"strconv"
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
		return process(ctx, store, w, seen, nil)
	}}
}

// process enqueues and handles the workload on a store, as far and in the order the workload says, and returns when the last job is
// settled. cpu is the processor time the store's own process has used; nil = it has none.
func process(ctx context.Context, store host.Store, w run.Workload, seen func([]byte), cpu func() (time.Duration, error)) (m run.Measure, err error) {
	if w.Backlog {
		if err := produce(ctx, store, run.Workload{Jobs: w.Jobs, Payload: w.Payload, Producers: 4, Bulk: 500, Queues: w.Queues, Tenants: w.Tenants}); err != nil {
			return m, err
		}
	}
	var h *host.Host
	if !w.Store {
		if h, err = newHost(store, w.Workers, func(inv *handlers.Invocation) { seen(inv.Payload) }); err != nil {
			return m, err
		}
	}
	m, err = measure(cpu, func() (err error) {
		if h != nil {
			if err := h.Start(ctx); err != nil {
				return err
			}
		}
		if !w.Backlog {
			err = produce(ctx, store, w)
		}
		if err == nil && h != nil {
			err = settled(ctx, h, int64(w.Jobs))
		}
		return err
	})
	if h != nil {
		err = errors.Join(err, h.Stop(ctx))
	}
	return m, err
}

// newHost makes a host with a Go function as the handler.
func newHost(store host.Store, workers int, handle func(*handlers.Invocation)) (*host.Host, error) {
	native := handlertest.NewFunc("native", workers, func(_ context.Context, inv *handlers.Invocation) handlers.Outcome {
		handle(inv)
		return handlers.Outcome{Kind: handlers.OutcomeSucceeded}
	})
	h, err := host.New(host.Options{Store: store, Runtimes: []handlers.Runtime{native}, Log: slog.New(slog.DiscardHandler), Concurrency: workers})
	if err != nil {
		return nil, err
	}
	h.Registry().SetLive(&handlers.Version{Type: taskType, Number: 1, Runtime: "native"})
	return h, nil
}

func measure(cpu func() (time.Duration, error), f func() error) (m run.Measure, err error) {
	var before, after time.Duration
	if cpu != nil {
		if before, err = cpu(); err != nil {
			return m, err
		}
	}
	start := time.Now()
	if err := f(); err != nil {
		return m, err
	}
	m.Elapsed = time.Since(start)
	if cpu != nil {
		after, err = cpu()
	}
	m.StoreCPU = after - before
	return m, err
}

// spec is job i of a workload, spread over its tenants and their queues.
func spec(w run.Workload, i int) queue.JobSpec {
	s := queue.JobSpec{Tenant: tenant, Queue: "default", Type: taskType, Payload: run.PayloadFor(w, i), MaxAttempts: 5}
	tenants := max(w.Tenants, 1)
	if tenants > 1 {
		s.Tenant = "tenant" + strconv.Itoa(i%tenants)
	}
	if w.Queues > 1 {
		s.Queue = "queue" + strconv.Itoa(i/tenants%w.Queues)
	}
	return s
}

func produce(ctx context.Context, store queue.Queue, w run.Workload) error {
	var next atomic.Int64
	var group sync.WaitGroup
	var failure atomic.Pointer[error]
	bulk := max(w.Bulk, 1)
	for range w.Producers {
		group.Go(func() {
			specs := make([]queue.JobSpec, 0, bulk)
			for failure.Load() == nil {
				specs = specs[:0]
				end := int(next.Add(int64(bulk)))
				for i := end - bulk; i < min(end, w.Jobs); i++ {
					specs = append(specs, spec(w, i))
				}
				if len(specs) == 0 {
					return
				}
				outcomes, err := store.Enqueue(ctx, specs)
				for i := range outcomes {
					if err == nil && outcomes[i].Status != queue.EnqueueCreated {
						err = fmt.Errorf("job %d: %s: %w", end-bulk+i, outcomes[i].Status, outcomes[i].Err)
					}
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

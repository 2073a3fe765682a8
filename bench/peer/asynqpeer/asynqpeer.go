// Package asynqpeer runs a workload on hibiken/asynq over Redis.
package asynqpeer

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hibiken/asynq"

	"github.com/taskhost/taskhost/bench/redisproc"
	"github.com/taskhost/taskhost/bench/run"
)

const taskType = "bench"

// Side enqueues with w.Producers goroutines sharing one client and processes with Concurrency = w.Workers, at once.
// retention > 0 keeps finished tasks so long, as asynq's option of that name.
func Side(name string, redis *redisproc.Server, retention time.Duration) run.Side {
	return run.Side{Name: name, Run: func(ctx context.Context, w run.Workload, seen func([]byte)) (run.Measure, error) {
		opt := asynq.RedisClientOpt{Addr: redis.Addr}
		client := asynq.NewClient(opt)
		defer client.Close()

		if w.Backlog {
			fill := w
			fill.Producers = 64
			if err := produce(ctx, client, fill, retention); err != nil {
				return run.Measure{}, err
			}
		}
		cpu, err := redis.MainThreadCPU()
		if err != nil {
			return run.Measure{}, err
		}
		start := time.Now()
		if w.Store {
			err = produce(ctx, client, w, retention)
		} else {
			var stop func()
			stop, err = process(ctx, client, opt, w, retention, seen)
			defer stop()
		}
		elapsed := time.Since(start)
		if err != nil {
			return run.Measure{}, err
		}
		after, err := redis.MainThreadCPU()
		if err == nil && w.Store {
			err = stored(opt, w)
		}
		return run.Measure{Elapsed: elapsed, StoreCPU: after - cpu}, err
	}}
}

// stored counts what is pending.
func stored(opt asynq.RedisClientOpt, w run.Workload) error {
	inspector := asynq.NewInspector(opt)
	defer inspector.Close()
	info, err := inspector.GetQueueInfo("default")
	if err == nil && info.Pending != w.Jobs {
		err = fmt.Errorf("%d jobs are pending instead of %d", info.Pending, w.Jobs)
	}
	return err
}

// process handles the workload, and enqueues it at once unless that was done before; stop ends the server.
func process(ctx context.Context, client *asynq.Client, opt asynq.RedisClientOpt, w run.Workload, retention time.Duration, seen func([]byte)) (stop func(), err error) {
	var handled atomic.Int64
	all := make(chan struct{})
	server := asynq.NewServer(opt, asynq.Config{Concurrency: w.Workers, LogLevel: asynq.FatalLevel})
	err = server.Start(asynq.HandlerFunc(func(_ context.Context, t *asynq.Task) error {
		seen(t.Payload())
		if handled.Add(1) == int64(w.Jobs) {
			close(all)
		}
		return nil
	}))
	if err != nil {
		return func() {}, err
	}
	if !w.Backlog {
		if err := produce(ctx, client, w, retention); err != nil {
			return server.Shutdown, err
		}
	}
	select {
	case <-all:
		return server.Shutdown, nil
	case <-ctx.Done():
		return server.Shutdown, fmt.Errorf("%d of %d jobs handled: %w", handled.Load(), w.Jobs, context.Cause(ctx))
	}
}

func produce(ctx context.Context, client *asynq.Client, w run.Workload, retention time.Duration) error {
	var next atomic.Int64
	var group sync.WaitGroup
	var failure atomic.Pointer[error]
	for range w.Producers {
		group.Go(func() {
			for {
				i := int(next.Add(1)) - 1
				if i >= w.Jobs || failure.Load() != nil {
					return
				}
				_, err := client.EnqueueContext(ctx, asynq.NewTask(taskType, run.PayloadFor(w, i)), asynq.Retention(retention), asynq.MaxRetry(5))
				if err != nil {
					failure.Store(&err)
					return
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

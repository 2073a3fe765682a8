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

		var handled atomic.Int64
		all := make(chan struct{})
		server := asynq.NewServer(opt, asynq.Config{Concurrency: w.Workers, LogLevel: asynq.FatalLevel})
		err := server.Start(asynq.HandlerFunc(func(_ context.Context, t *asynq.Task) error {
			seen(t.Payload())
			if handled.Add(1) == int64(w.Jobs) {
				close(all)
			}
			return nil
		}))
		if err != nil {
			return run.Measure{}, err
		}
		defer server.Shutdown()

		cpu, err := redis.MainThreadCPU()
		if err != nil {
			return run.Measure{}, err
		}
		start := time.Now()
		if err := produce(ctx, client, w, retention); err != nil {
			return run.Measure{}, err
		}
		select {
		case <-all:
		case <-ctx.Done():
			return run.Measure{}, fmt.Errorf("%d of %d jobs handled: %w", handled.Load(), w.Jobs, context.Cause(ctx))
		}
		elapsed := time.Since(start)
		after, err := redis.MainThreadCPU()
		return run.Measure{Elapsed: elapsed, StoreCPU: after - cpu}, err
	}}
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

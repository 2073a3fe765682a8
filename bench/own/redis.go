package own

import (
	"context"
	"errors"
	"time"

	"github.com/taskhost/taskhost/bench/redisproc"
	"github.com/taskhost/taskhost/bench/run"
	"github.com/taskhost/taskhost/queue"
	"github.com/taskhost/taskhost/queue/redisq"
)

// Redis is taskhost on a Redis. retention < 0 keeps no finished job, 0 the product's default. The measure has the processor time
// of Redis's main thread.
func Redis(name string, server *redisproc.Server, retention time.Duration) run.Side {
	return run.Side{Name: name, Run: func(ctx context.Context, w run.Workload, seen func([]byte)) (m run.Measure, err error) {
		store, err := redisq.Open(ctx, redisq.Options{URL: "redis://" + server.Addr + "/0"})
		if err != nil {
			return m, err
		}
		defer func() { err = errors.Join(err, store.Close()) }()
		if err := store.Configure(ctx, queue.Scheduling{Retention: queue.Retention{Succeeded: retention}}); err != nil {
			return m, err
		}
		before, err := server.MainThreadCPU()
		if err != nil {
			return m, err
		}
		if m, err = process(ctx, store, w, seen); err != nil {
			return m, err
		}
		after, err := server.MainThreadCPU()
		m.StoreCPU = after - before
		return m, err
	}}
}

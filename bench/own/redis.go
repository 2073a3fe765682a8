package own

import (
	"context"
	"errors"
	"fmt"
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
		store, err := openRedis(ctx, server, retention)
		if err != nil {
			return m, err
		}
		defer func() { err = errors.Join(err, store.Close()) }()
		if m, err = process(ctx, store, w, seen, server.MainThreadCPU); err != nil || !w.Store {
			return m, err
		}
		books, err := store.Audit(ctx)
		if err == nil && (len(books.Faults) > 0 || books.Counts[queue.StateReady] != int64(w.Jobs)) {
			err = fmt.Errorf("%d jobs are stored instead of %d; faults: %v", books.Counts[queue.StateReady], w.Jobs, books.Faults)
		}
		return m, err
	}}
}

func openRedis(ctx context.Context, server *redisproc.Server, retention time.Duration) (*redisq.Store, error) {
	store, err := redisq.Open(ctx, redisq.Options{URL: "redis://" + server.Addr + "/0"})
	if err != nil {
		return nil, err
	}
	if err := store.Configure(ctx, queue.Scheduling{Retention: queue.Retention{Succeeded: retention}}); err != nil {
		return nil, errors.Join(err, store.Close())
	}
	return store, nil
}

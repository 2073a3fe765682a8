package asynqpeer

import (
	"context"
	"time"

	"github.com/hibiken/asynq"

	"github.com/taskhost/taskhost/bench/redisproc"
)

// Waits enqueues n tasks one after the other, each when the one before has started, and returns the times from before the enqueue to the
// handler's start.
func Waits(ctx context.Context, redis *redisproc.Server, n int) (waits []time.Duration, err error) {
	opt := asynq.RedisClientOpt{Addr: redis.Addr}
	client := asynq.NewClient(opt)
	defer client.Close()
	starts := make(chan time.Time, 1)
	server := asynq.NewServer(opt, asynq.Config{Concurrency: 64, LogLevel: asynq.FatalLevel})
	if err := server.Start(asynq.HandlerFunc(func(context.Context, *asynq.Task) error {
		starts <- time.Now()
		return nil
	})); err != nil {
		return nil, err
	}
	defer server.Shutdown()
	for range n {
		begun := time.Now()
		if _, err := client.EnqueueContext(ctx, asynq.NewTask(taskType, nil)); err != nil {
			return nil, err
		}
		select {
		case at := <-starts:
			waits = append(waits, at.Sub(begun))
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
	return waits, nil
}

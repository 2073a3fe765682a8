package wire

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/taskhost/taskhost/config"
	"github.com/taskhost/taskhost/queue"
	"github.com/taskhost/taskhost/queue/redisq"
)

// openRedis connects to the Redis that the configuration names. While it does not answer, it is tried again until ctx ends: hosts
// and their Redis often start together.
func openRedis(ctx context.Context, c *config.Config, log *slog.Logger) (Store, error) {
	redis.SetLogger(clientLog{log.With("part", "store")})
	o := redisq.Options{URL: c.Store, Limits: limits(c.Defaults), Logger: log.With("part", "store")}
	for wait, told := redisRetryMin, false; ; wait = min(2*wait, redisRetryMax) {
		s, err := redisq.Open(ctx, o)
		switch {
		case err == nil:
			return s, nil
		case ctx.Err() != nil:
			return nil, context.Cause(ctx)
		case !errors.Is(err, queue.ErrUnavailable):
			return nil, err
		case !told:
			log.Warn("the store does not answer; trying until it does", "store", config.RedactURL(c.Store), "error", err)
			told = true
		}
		timer := time.NewTimer(wait)
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return nil, context.Cause(ctx)
		}
	}
}

// How long to wait before a Redis that did not answer is tried again.
const (
	redisRetryMin = 100 * time.Millisecond
	redisRetryMax = 5 * time.Second
)

// clientLog takes what the client library would print to stderr, such as every failed dial. The store says itself what matters.
type clientLog struct{ log *slog.Logger }

// Printf implements the library's logging interface.
func (l clientLog) Printf(ctx context.Context, format string, v ...any) {
	l.log.DebugContext(ctx, "redis client", "message", fmt.Sprintf(format, v...))
}

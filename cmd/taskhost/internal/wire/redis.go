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

// openRedis connects to the Redis that the configuration names, in one try.
func openRedis(ctx context.Context, c *config.Config, log *slog.Logger) (Store, error) {
	log = log.With("part", "store")
	redis.SetLogger(clientLog{log})
	s, err := redisq.Open(ctx, redisq.Options{URL: c.Store, Limits: limits(c.Defaults), Logger: log})
	if err != nil {
		return nil, err
	}
	return s, nil
}

// SetStoreMode makes the Redis store that the configuration names one for hosts of the mode in its URL (lua=0 or not), and returns the
// mode it had ("" = none) and the one it has. Errors: as those of opening the store; another store has no mode.
func SetStoreMode(ctx context.Context, c config.Config) (before, now string, err error) {
	if !config.IsRedis(c.Store) {
		return "", "", fmt.Errorf("only a store on Redis has a mode; this one is %s: name it with --store redis://…", config.RedactURL(c.Store))
	}
	return redisq.SetMode(ctx, redisq.Options{URL: c.Store})
}

// awaitStore is openStore for a host: while a Redis does not answer, it is tried again until ctx ends, as hosts and their Redis
// often start together.
func awaitStore(ctx context.Context, c *config.Config, log *slog.Logger, fatal func(error)) (Store, error) {
	for wait, told := redisRetryMin, false; ; wait = min(2*wait, redisRetryMax) {
		s, err := openStore(ctx, c, log, fatal)
		switch {
		case err == nil:
			return s, nil
		case !config.IsRedis(c.Store):
			return nil, err
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

// Package outage is how a loop of the host behaves while the store does not answer: it backs off with jitter, and says so
// in the log once when the trouble begins and once when it is over.
package outage

import (
	"context"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/taskhost/taskhost/queue"
)

// Gate belongs to one goroutine; only Open may be asked by others.
type Gate struct {
	Log     *slog.Logger
	What    string         // what cannot be done meanwhile, e.g. "reserve jobs"
	Backoff queue.Backoff  // zero = BackoffDefault
	Random  func() float64 // uniform in [0, 1)

	failures int
	since    time.Time
	failing  atomic.Bool
}

// BackoffDefault is the backoff between tries: fast enough to notice a restarted store, slow enough not to burden a sick one.
func BackoffDefault() queue.Backoff {
	return queue.Backoff{Base: 50 * time.Millisecond, Max: 5 * time.Second}
}

// Failed notes a failure and returns how long to wait before the next try.
func (g *Gate) Failed(err error) time.Duration {
	if g.failures == 0 {
		g.since = time.Now()
		g.failing.Store(true)
		g.Log.Warn("store failed; trying again with backoff", "cannot", g.What, "error", err)
	}
	g.failures++
	b := g.Backoff
	if b == (queue.Backoff{}) {
		b = BackoffDefault()
	}
	return b.Delay(g.failures, g.Random())
}

// OK notes a success.
func (g *Gate) OK() {
	if g.failures == 0 {
		return
	}
	g.Log.Info("store answers again", "could_not", g.What, "failures", g.failures, "out_for", time.Since(g.since).Round(time.Millisecond))
	g.failures = 0
	g.failing.Store(false)
}

// Open reports whether the last try succeeded.
func (g *Gate) Open() bool { return !g.failing.Load() }

// Sleep waits for d, or returns the context's cause when that ends first.
func Sleep(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

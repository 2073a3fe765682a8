package plugin

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/taskhost/taskhost/abi/pluginpb"
	"github.com/taskhost/taskhost/handlers"
	"github.com/taskhost/taskhost/handlers/session"
	"github.com/taskhost/taskhost/handlers/wasm/child"
)

// group is one plugin: its instances and the attempts that wait for them.
type group struct {
	spec       Spec
	backoffMin time.Duration
	backoffMax time.Duration
	sockets    *sockets
	spawner    *child.Spawner
	log        *slog.Logger

	ctx     context.Context // of the keepers; ends at the end of close
	stop    context.CancelFunc
	keepers sync.WaitGroup
	flying  sync.WaitGroup
	settled chan struct{} // closed when the first instance has started, or failed to
	once    sync.Once

	mu            sync.Mutex
	instances     map[*instance]struct{}
	waiters       waiters
	extras        int // extra instances, those that start included
	extraStarting int
	failures      int // processes in a row that were of no use
	lastErr       error
	sum           string // of the program that started last
	closed        bool
	counts        Counts
}

func newGroup(spec Spec, o *Options, sock *sockets, s *child.Spawner) *group {
	g := &group{spec: spec, backoffMin: o.BackoffMin, backoffMax: o.BackoffMax, sockets: sock, spawner: s,
		log: o.Logger.With("plugin", spec.name()), instances: map[*instance]struct{}{}, settled: make(chan struct{})}
	g.ctx, g.stop = context.WithCancel(context.Background())
	for range spec.Instances {
		g.keepers.Go(g.keep)
	}
	return g
}

// keep keeps one instance running: it starts one, waits for its death, and starts the next one.
func (g *group) keep() {
	backoff := g.backoffMin
	for g.ctx.Err() == nil {
		if g.runOne(false) {
			backoff = g.backoffMin
			continue
		}
		timer := time.NewTimer(backoff)
		select {
		case <-timer.C:
		case <-g.ctx.Done():
		}
		timer.Stop()
		backoff = min(2*backoff, g.backoffMax)
	}
}

// runExtra runs one instance for attempts that want to be alone.
func (g *group) runExtra() {
	g.runOne(true)
	g.mu.Lock()
	g.extras--
	g.dispatch()
	g.mu.Unlock()
}

// runOne is the life of one instance. It returns false when that was of no use: it did not start, or died before it had finished anything.
func (g *group) runOne(extra bool) (useful bool) {
	i, err := g.startInstance(g.ctx)
	g.mu.Lock()
	if extra {
		g.extraStarting--
	}
	if err != nil {
		if g.ctx.Err() == nil {
			g.counts.Failed++
			g.failed(err)
		}
		g.dispatch()
		g.mu.Unlock()
		g.once.Do(func() { close(g.settled) })
		return false
	}
	g.counts.Started++
	first := g.counts.Started == 1
	g.sum = i.conn.sum
	i.slots.extra = extra
	g.instances[i] = struct{}{}
	g.dispatch()
	unused := extra && i.slots.busy == 0 // the attempt it was started for is gone
	if unused {
		i.slots.draining = true
	}
	g.mu.Unlock()
	g.once.Do(func() { close(g.settled) })
	i.log.Info("plugin is ready", "sha256", i.conn.sum, "engine", i.conn.about.GetEngine(), "concurrency", i.room, "alone", extra)
	if g.spec.SHA256 == "" && first {
		i.log.Warn("the program of the plugin is not pinned; to pin it, add its digest to the configuration", "sha256", i.conn.sum)
	}
	if unused {
		i.ask(errIdle)
	}
	g.watch(i)
	return g.bury(i)
}

// watch looks after an instance until it is dead.
func (g *group) watch(i *instance) {
	var health sync.WaitGroup
	health.Go(func() { g.examine(i) })
	select {
	case <-i.dead:
	case <-g.ctx.Done():
		i.ask(context.Cause(g.ctx))
		<-i.dead
	}
	health.Wait()
}

// failed notes a process that was of no use. The lock is held.
func (g *group) failed(err error) {
	g.failures++
	g.lastErr = err
	g.log.Error("a process of the plugin failed", "error", err, "failures", g.failures)
	if g.failures == failuresUntilBreak {
		g.log.Error("the plugin fails again and again; its jobs are put off until a process of it has started", "failures", g.failures)
	}
}

// bury takes a dead instance out and notes why it died.
func (g *group) bury(i *instance) bool {
	how, why, useful := i.death()
	g.mu.Lock()
	defer g.mu.Unlock()
	delete(g.instances, i)
	switch how {
	case fateStopped:
		useful = true
	case fateKilled:
		g.counts.Killed++
		useful = true
	case fateLost:
		g.counts.Unhealthy++
		useful = true
		i.log.Warn("a process of the plugin was replaced", "reason", why)
	case fateSilent:
		g.counts.Unhealthy++
	case fateBreach:
		g.counts.Breaches++
	default:
		g.counts.Crashed++
	}
	switch {
	case useful && how != fateStopped && how != fateKilled && how != fateLost:
		g.log.Error("a process of the plugin ended", "error", why, "attempts", i.slots.busy)
	case !useful:
		g.failed(why)
	}
	g.dispatch()
	return useful
}

// invoke runs one attempt.
func (g *group) invoke(ctx context.Context, inv *handlers.Invocation) handlers.Outcome {
	g.mu.Lock()
	if g.closed {
		g.mu.Unlock()
		return interrupted(handlers.ErrStopped, 0)
	}
	g.flying.Add(1)
	g.mu.Unlock()
	defer g.flying.Done()
	for {
		i, err := g.acquire(ctx, inv.Alone, inv.Deadline)
		if err != nil {
			if ctx.Err() != nil || errors.Is(err, handlers.ErrStopped) {
				return interrupted(err, 0)
			}
			return unavailable(err)
		}
		var a *session.Attempt
		if err = session.ErrEnded; !i.doomed() {
			a, err = i.session.Begin(ctx, inv, &pluginpb.Version{Sha256: i.conn.sum})
		}
		if errors.Is(err, session.ErrEnded) { // it was not used; the next one is better
			g.mu.Lock()
			i.slots.draining = true
			g.mu.Unlock()
			g.release(i, false)
			continue
		}
		if err != nil {
			g.release(i, false)
			return unavailable(err)
		}
		out := i.await(ctx, a, g.spec.Grace)
		a.Close()
		g.release(i, a.Ended())
		return out
	}
}

// close refuses new attempts, waits for those in flight until ctx ends, and ends the processes. The error says how many attempts had to be
// ended; nil if none.
func (g *group) close(ctx context.Context) error {
	g.mu.Lock()
	g.closed = true
	g.dispatch() // refuses those who wait
	g.mu.Unlock()
	landed := make(chan struct{})
	go func() {
		g.flying.Wait()
		close(landed)
	}()
	var err error
	select {
	case <-landed:
	case <-ctx.Done():
		n := 0
		g.mu.Lock()
		for i := range g.instances {
			n += i.slots.busy
			i.end(fateStopped, handlers.ErrStopped)
		}
		g.mu.Unlock()
		err = fmt.Errorf("plugin %s: %d attempts were still running: %w", g.spec.name(), n, context.Cause(ctx))
		<-landed
	}
	g.stop()
	g.keepers.Wait()
	return err
}

package pool

import (
	"context"
	"sync"
	"time"
)

// keep keeps one runner running: it starts one, waits for its death, and starts the next one.
func (p *Pool) keep() {
	backoff := p.opts.BackoffMin
	for p.ctx.Err() == nil {
		useful := p.runOne(false)
		if useful {
			backoff = p.opts.BackoffMin
			continue
		}
		select {
		case <-time.After(backoff):
		case <-p.ctx.Done():
		}
		backoff = min(2*backoff, p.opts.BackoffMax)
	}
}

// runExtra runs one runner for attempts that want to be alone, until there are none.
func (p *Pool) runExtra() {
	p.runOne(true)
	p.mu.Lock()
	p.extras--
	p.dispatch()
	p.mu.Unlock()
}

// runOne is the life of one runner. It returns false when that was of no use: it did not start, or died by itself before it had finished
// anything, so that the next one would probably do the same. What the pool itself ended was of use.
func (p *Pool) runOne(extra bool) (useful bool) {
	r, err := startRunner(p.ctx, &p.opts, p.spawner, p.args)
	p.mu.Lock()
	if extra {
		p.extraStarting--
	}
	if err != nil {
		if p.ctx.Err() == nil {
			p.stats.Failed++
			p.failures++
			p.lastErr = err
			p.opts.Logger.Error("a runner did not start", "error", err, "failures", p.failures)
		}
		p.dispatch()
		p.mu.Unlock()
		return false
	}
	p.stats.Started++
	p.failures = 0
	r.slots.extra = extra
	p.runners[r] = struct{}{}
	p.dispatch()
	unused := extra && r.slots.busy == 0 // the one it was started for is gone
	if unused {
		r.slots.draining = true
	}
	p.mu.Unlock()
	r.log.Debug("runner is ready", "extra", extra, "engine", r.engine, "took", time.Since(r.since))
	if unused {
		r.end(fateStopped, errIdle, false)
	}
	var pulse sync.WaitGroup
	pulse.Go(func() { p.pulse(r) })
	select {
	case <-r.dead:
	case <-p.ctx.Done():
		r.end(fateStopped, context.Cause(p.ctx), false)
		<-r.dead
	}
	pulse.Wait()
	return p.bury(r)
}

// bury takes a dead runner out of the pool and notes why it died.
func (p *Pool) bury(r *runner) bool {
	how, why, useful := r.death()
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.runners, r)
	switch how {
	case fateStopped:
		p.lastErr, useful = nil, true
	case fateKilled:
		p.stats.Killed++
		p.lastErr, useful = why, true
	case fateViolation:
		p.stats.Violations++
		p.lastErr = why
		r.log.Error("a runner was killed", "error", why)
	case fateDied:
		p.stats.Crashed++
		p.lastErr = why
		r.log.Error("a runner died", "error", why, "attempts", r.slots.busy)
	}
	p.dispatch()
	return useful
}

// discard keeps a runner that is on its way out from being picked again.
func (p *Pool) discard(r *runner) {
	p.mu.Lock()
	r.slots.draining = true
	p.mu.Unlock()
}

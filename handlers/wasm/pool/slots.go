package pool

import (
	"context"
	"fmt"
	"time"

	"github.com/taskhost/taskhost/handlers"
)

// slots is a runner's share of the work.
type slots struct {
	busy     int
	begun    int
	extra    bool // runs only attempts that want to be alone
	alone    bool // its one attempt runs alone
	draining bool // takes no more
	stalled  bool // it did not answer when it was last asked
}

// waiter is an attempt that waits for a slot.
type waiter struct {
	alone bool
	got   chan grant // capacity 1
}

type grant struct {
	r   *runner
	err error
}

// acquire takes a slot of the least busy runner, waiting for one if need be, in the order of arrival. alone takes a runner for itself.
func (p *Pool) acquire(ctx context.Context, alone bool, deadline time.Time) (*runner, error) {
	w := &waiter{alone: alone, got: make(chan grant, 1)}
	p.mu.Lock()
	el := p.waiters.PushBack(w)
	p.dispatch()
	p.mu.Unlock()

	select { // the ordinary case needs no timer
	case g := <-w.got:
		return g.r, g.err
	default:
	}
	timer := time.NewTimer(time.Until(deadline))
	defer timer.Stop()
	var err error
	select {
	case g := <-w.got:
		return g.r, g.err
	case <-ctx.Done():
		err = context.Cause(ctx)
	case <-timer.C:
		err = errNoSlot
	}
	p.mu.Lock()
	p.waiters.Remove(el)
	p.mu.Unlock()
	select {
	case g := <-w.got: // granted in the meantime
		if g.r != nil {
			p.release(g.r)
		}
	default:
	}
	return nil, err
}

var errNoSlot = fmt.Errorf("no runner had a free slot before the deadline")

// dispatch gives free slots to those who wait. The lock is held.
func (p *Pool) dispatch() {
	for el := p.waiters.Front(); el != nil; {
		w, next := el.Value.(*waiter), el.Next()
		g := grant{err: p.refusal()}
		if g.err == nil {
			g.r = p.pick(w.alone)
		}
		if g.r != nil || g.err != nil {
			p.waiters.Remove(el)
			w.got <- g
		} else if !w.alone && p.aloneWaiters() == 0 {
			return // nobody behind it can be served either
		}
		el = next
	}
	p.startExtras()
}

// refusal is why nobody can be served: the pool is closed, or no runner can be started.
func (p *Pool) refusal() error {
	switch {
	case p.closed:
		return handlers.ErrStopped
	case len(p.runners) == 0 && p.failures >= failuresUntilRefusal:
		return &startFailure{p.lastErr}
	}
	return nil
}

// failuresUntilRefusal is how often in a row the start of a runner may fail before attempts are refused instead of waiting.
const failuresUntilRefusal = 3

// startFailure says that runners cannot be started.
type startFailure struct{ err error }

func (s *startFailure) Error() string { return s.err.Error() }

// pick takes a slot; nil if there is none.
func (p *Pool) pick(alone bool) *runner {
	var best *runner
	for r := range p.runners {
		s := &r.slots
		if s.draining || s.stalled || s.alone || s.busy >= p.opts.Slots || s.extra && !alone || alone && s.busy > 0 {
			continue
		}
		if best == nil || s.busy < best.slots.busy || alone && s.extra {
			best = r
		}
	}
	if best != nil {
		best.slots.busy++
		best.slots.begun++
		best.slots.alone = alone
	}
	return best
}

func (p *Pool) aloneWaiters() (n int) {
	for el := p.waiters.Front(); el != nil; el = el.Next() {
		if el.Value.(*waiter).alone {
			n++
		}
	}
	return n
}

// startExtras starts runners for attempts that want to be alone and found none idle. The lock is held.
func (p *Pool) startExtras() {
	for want := p.aloneWaiters(); want > p.extraStarting && p.extras < p.opts.Extra && !p.closed; {
		p.extras++
		p.extraStarting++
		p.keepers.Go(p.runExtra)
	}
}

// release gives a slot back. A runner that has run enough, or that was started for one attempt only, goes when it is idle.
func (p *Pool) release(r *runner) {
	p.mu.Lock()
	s := &r.slots
	s.busy--
	s.alone = false
	if s.begun >= p.opts.RecycleAfter && !s.draining {
		s.draining = true
		p.stats.Recycled++
	}
	p.dispatch()
	idle := s.busy == 0 && (s.draining || s.extra)
	if idle {
		s.draining = true
	}
	p.mu.Unlock()
	if idle {
		r.end(fateStopped, errIdle, false)
	}
}

var errIdle = fmt.Errorf("the runner is replaced")

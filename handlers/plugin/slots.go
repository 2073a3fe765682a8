package plugin

import (
	"container/list"
	"context"
	"errors"
	"time"

	"github.com/taskhost/taskhost/handlers"
)

// slots is an instance's share of the work.
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
	i   *instance
	err error
}

// acquire takes a slot of the least busy instance, waiting for one if need be, in the order of arrival. alone takes an instance for itself.
func (g *group) acquire(ctx context.Context, alone bool, deadline time.Time) (*instance, error) {
	w := &waiter{alone: alone, got: make(chan grant, 1)}
	g.mu.Lock()
	el := g.waiters.PushBack(w)
	g.dispatch()
	g.mu.Unlock()

	select { // the ordinary case needs no timer
	case got := <-w.got:
		return got.i, got.err
	default:
	}
	timer := time.NewTimer(time.Until(deadline))
	defer timer.Stop()
	var err error
	select {
	case got := <-w.got:
		return got.i, got.err
	case <-ctx.Done():
		err = context.Cause(ctx)
	case <-timer.C:
		err = errNoSlot
	}
	g.mu.Lock()
	g.waiters.Remove(el)
	g.mu.Unlock()
	select {
	case got := <-w.got: // granted in the meantime
		if got.i != nil {
			g.release(got.i, false)
		}
	default:
	}
	return nil, err
}

var errNoSlot = errors.New("no process of the plugin had a free slot before the deadline")

// dispatch gives free slots to those who wait. The lock is held.
func (g *group) dispatch() {
	for el := g.waiters.Front(); el != nil; {
		w, next := el.Value.(*waiter), el.Next()
		got := grant{err: g.refusal()}
		if got.err == nil {
			got.i = g.pick(w.alone)
		}
		if got.i != nil || got.err != nil {
			g.waiters.Remove(el)
			w.got <- got
		} else if !w.alone && g.aloneWaiters() == 0 {
			break // nobody behind it can be served either
		}
		el = next
	}
	for want := g.aloneWaiters(); want > g.extraStarting && g.extras < extrasMax && !g.closed; {
		g.extras++
		g.extraStarting++
		g.keepers.Go(g.runExtra)
	}
}

// extrasMax is how many more processes may run attempts that want to be alone while no ordinary one is idle.
const extrasMax = 1

// refusal is why nobody can be served: the plugin is on its way out, or its breaker is open.
func (g *group) refusal() error {
	switch {
	case g.closed:
		return handlers.ErrStopped
	case len(g.instances) == 0 && g.failures >= failuresUntilBreak:
		return g.lastErr
	}
	return nil
}

// failuresUntilBreak is how many processes in a row may fail to start, or die without having finished anything, until attempts are refused
// instead of waiting. They are taken again when a process has started.
const failuresUntilBreak = 3

// pick takes a slot; nil if there is none.
func (g *group) pick(alone bool) *instance {
	var best *instance
	for i := range g.instances {
		s := &i.slots
		if s.draining || s.stalled || s.alone || s.busy >= i.room || s.extra && !alone || alone && s.busy > 0 {
			continue
		}
		if best == nil || s.busy < best.slots.busy || alone && s.extra {
			best = i
		}
	}
	if best != nil {
		best.slots.busy++
		best.slots.begun++
		best.slots.alone = alone
	}
	return best
}

func (g *group) aloneWaiters() (n int) {
	for el := g.waiters.Front(); el != nil; el = el.Next() {
		if el.Value.(*waiter).alone {
			n++
		}
	}
	return n
}

// release gives a slot back. A process that was started for one attempt only goes when it is idle.
func (g *group) release(i *instance, landed bool) {
	g.mu.Lock()
	s := &i.slots
	s.busy--
	s.alone = false
	if landed {
		g.failures, g.lastErr = 0, nil
	}
	g.dispatch()
	idle := s.busy == 0 && (s.draining || s.extra)
	if idle {
		s.draining = true
	}
	g.mu.Unlock()
	if idle {
		i.ask(errIdle)
	}
}

var errIdle = errors.New("the process is not needed any more")

// waiters is a queue in the order of arrival.
type waiters = list.List

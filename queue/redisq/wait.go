package redisq

import (
	"context"
	"math/rand/v2"
	"time"

	"github.com/taskhost/taskhost/queue"
)

// waitMost is how long a Wait blocks before it looks again: hints can be lost with the host that took one.
const waitMost = 30 * time.Second

// Wait implements queue.Queue: when nothing is ready, it blocks on the list of the view's hints. Redis serves blocked clients oldest
// first, so that one job wakes one host.
func (s *Store) Wait(ctx context.Context, view queue.View) error {
	if err := s.enter(ctx); err != nil {
		return err
	}
	if err := view.Validate(); err != nil {
		return err
	}
	for {
		v, err := s.run(ctx, "wait", viewName(view))
		if err != nil {
			return err
		}
		list, err := asList(v)
		if err != nil {
			return err
		}
		if asInt(list[0]) == 1 {
			return nil
		}
		woken, err := s.block(ctx, asString(list[1]), waitMost-rand.N(waitMost/4), nil)
		if err != nil || woken {
			return err
		}
	}
}

// WaitDue implements queue.Queue: it sleeps until the next due time that lua/due.lua knows, or until somebody makes something due
// earlier than that.
func (s *Store) WaitDue(ctx context.Context) error {
	if err := s.enter(ctx); err != nil {
		return err
	}
	for {
		asked := s.clockNow()
		v, err := s.run(ctx, "due")
		if err != nil {
			return err
		}
		ms := asInt(v)
		if ms == 0 {
			return nil
		}
		most := waitMost - rand.N(waitMost/4)
		var fire <-chan time.Time
		stop := func() bool { return true }
		if ms > 0 && s.clock == nil {
			most = min(most, time.Duration(ms)*time.Millisecond)
		}
		if ms > 0 && s.clock != nil {
			at := asked.Add(time.Duration(ms) * time.Millisecond)
			fire, stop = s.clock.NewTimer(at.Sub(s.clock.Now()))
			if !s.clock.Now().Before(at) { // it moved meanwhile
				stop()
				continue
			}
		}
		_, err = s.block(ctx, "due", most, fire)
		stop()
		if err != nil {
			return err
		}
	}
}

// clockNow is the time that scripts are told; zero when it is that of Redis.
func (s *Store) clockNow() time.Time {
	if s.clock == nil {
		return time.Time{}
	}
	return queue.Millis(s.clock.Now())
}

package memq

import (
	"context"
	"time"

	"github.com/taskhost/taskhost/queue"
)

// Wait implements queue.Queue.
func (s *Store) Wait(ctx context.Context, qv queue.View) error {
	return s.await(ctx, func() (bool, time.Duration, error) {
		if err := qv.Validate(); err != nil {
			return false, 0, err
		}
		v := s.viewOf(qv)
		s.syncViews() // a rate may let somebody in by now
		if _, ok := v.choose(0); ok {
			return true, 0, nil
		}
		next, ok := s.nextRate(v, s.now())
		if !ok {
			return false, -1, nil
		}
		return false, max(0, next.Sub(s.clock.Now())), nil // the clock is finer than store time
	})
}

// WaitDue implements queue.Queue.
func (s *Store) WaitDue(ctx context.Context) error {
	return s.await(ctx, func() (bool, time.Duration, error) {
		next, ok := s.nextDue()
		if !ok {
			return false, -1, nil
		}
		wait := next.Sub(s.clock.Now()) // the clock is finer than store time
		return wait <= 0, wait, nil
	})
}

// await blocks until cond holds. It asks again after every change and, when cond returned a duration ≥ 0, after that.
func (s *Store) await(ctx context.Context, cond func() (bool, time.Duration, error)) error {
	for {
		if err := s.lock(ctx); err != nil {
			return err
		}
		ok, wait, err := cond()
		changed := s.changed
		var timer <-chan time.Time
		stop := func() bool { return true }
		if err == nil && !ok && wait >= 0 {
			timer, stop = s.clock.NewTimer(wait)
		}
		s.mu.Unlock()
		if err != nil || ok {
			return err
		}
		select {
		case <-changed:
		case <-timer:
		case <-ctx.Done():
		}
		stop()
	}
}

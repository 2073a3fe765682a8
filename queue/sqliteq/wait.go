package sqliteq

import (
	"context"
	"time"

	"github.com/taskhost/taskhost/queue"
)

// Wait implements queue.Queue. Whoever waits on a view is woken when a queue begins to compete in it, and looks again
// whenever a rate lets a queue in.
func (s *Store) Wait(ctx context.Context, qv queue.View) error {
	if err := s.enter(ctx); err != nil {
		return err
	}
	if err := qv.Validate(); err != nil {
		return err
	}
	for {
		s.mu.Lock()
		v := s.viewOf(qv)
		s.openRates(s.now().UnixMilli())
		if s.closing || !v.sched.Empty() {
			closing := s.closing
			s.mu.Unlock()
			if closing {
				return queue.ErrClosed
			}
			return nil
		}
		if v.wake == nil {
			v.wake = make(chan struct{})
		}
		wake := v.wake
		var timer <-chan time.Time
		stop := func() bool { return true }
		next := s.nextRate()
		if next != never {
			timer, stop = s.clock.NewTimer(max(0, time.UnixMilli(next).Sub(s.clock.Now()))) // the clock is finer than store time
		}
		s.rateAnnounced = next
		if s.rateChanged == nil {
			s.rateChanged = make(chan struct{})
		}
		changed := s.rateChanged
		s.mu.Unlock()
		var err error
		select {
		case <-wake:
		case <-timer:
		case <-changed:
		case <-ctx.Done():
			err = context.Cause(ctx)
		case <-s.closed:
			err = queue.ErrClosed
		}
		stop()
		if err != nil {
			return err
		}
	}
}

// WaitDue implements queue.Queue.
func (s *Store) WaitDue(ctx context.Context) error {
	if err := s.enter(ctx); err != nil {
		return err
	}
	for {
		s.mu.Lock()
		if s.closing {
			s.mu.Unlock()
			return queue.ErrClosed
		}
		next := s.nextDue()
		var timer <-chan time.Time
		stop := func() bool { return true }
		if next != never {
			wait := time.UnixMilli(next).Sub(s.clock.Now()) // the clock is finer than store time
			if wait <= 0 {
				s.mu.Unlock()
				return nil
			}
			timer, stop = s.clock.NewTimer(wait)
		}
		s.dueAnnounced = next
		if s.dueChanged == nil {
			s.dueChanged = make(chan struct{})
		}
		changed := s.dueChanged
		s.mu.Unlock()
		var err error
		select {
		case <-timer:
		case <-changed:
		case <-ctx.Done():
			err = context.Cause(ctx)
		case <-s.closed:
			err = queue.ErrClosed
		}
		stop()
		if err != nil {
			return err
		}
	}
}

// nextDue is when Maintain has something to do; with s.mu held.
func (s *Store) nextDue() int64 {
	next := min(s.nextExpiry(), s.nextScheduled(), s.nextLeaseEnd(), s.forgetAt)
	if at := s.nextRetention(); at != never {
		next = min(next, max(at, s.retainAt))
	}
	return next
}

// announceDue wakes WaitDue when something became due earlier than what it waits for; with s.mu held. It may use lower
// bounds: who is woken looks again.
func (s *Store) announceDue() {
	if s.dueChanged == nil {
		return
	}
	next := s.forgetAt
	if len(s.expiry) > 0 {
		next = min(next, s.expiry[0].at)
	}
	if len(s.scheduled) > 0 {
		next = min(next, s.scheduled[0].at)
	}
	if len(s.batches) > 0 {
		next = min(next, s.batches[0].until)
	}
	if at := s.nextRetention(); at != never {
		next = min(next, max(at, s.retainAt))
	}
	if next < s.dueAnnounced {
		close(s.dueChanged)
		s.dueChanged = nil
	}
}

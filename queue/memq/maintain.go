package memq

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/taskhost/taskhost/queue"
)

// Maintain implements queue.Queue. It does everything that is due, so More is never set.
func (s *Store) Maintain(ctx context.Context) (queue.MaintainReport, error) {
	var report queue.MaintainReport
	if err := s.lock(ctx); err != nil {
		return report, err
	}
	defer s.mu.Unlock()
	now := s.now()
	report.Expired = s.expire(now)
	report.Promoted = s.promote(now)
	report.Reaped = s.reap(now)
	report.Retained = s.retain(now)
	for _, dead := range []bool{false, true} {
		report.Evicted += s.evict(dead)
	}
	report.Retained += report.Evicted
	for key, first := range s.idempotency {
		if !now.Before(first.until) {
			delete(s.idempotency, key)
		}
	}
	for key, w := range s.windows {
		if !now.Before(w.until) {
			delete(s.windows, key)
		}
	}
	return report, nil
}

// pick returns the jobs for which want is true, in the order of creation.
func (s *Store) pick(want func(*record) bool) []*record {
	var picked []*record
	for _, r := range s.jobs {
		if want(r) {
			picked = append(picked, r)
		}
	}
	return picked
}

func waiting(r *record) bool {
	return r.job.State == queue.StateReady || r.job.State == queue.StateScheduled
}

func (s *Store) expire(now time.Time) int {
	over := s.pick(func(r *record) bool { return waiting(r) && expired(r, now) })
	for _, r := range over {
		s.leaveLine(r)
		s.finish(r, queue.StateExpired, now)
	}
	return len(over)
}

func (s *Store) promote(now time.Time) int {
	due := s.pick(func(r *record) bool {
		return r.job.State == queue.StateScheduled && !now.Before(r.job.NextRunAt)
	})
	slices.SortStableFunc(due, func(a, b *record) int { return a.job.NextRunAt.Compare(b.job.NextRunAt) })
	for _, r := range due {
		s.toTail(r)
	}
	return len(due)
}

func (s *Store) reap(now time.Time) int {
	ended := s.pick(func(r *record) bool {
		return r.job.State == queue.StateRunning && !now.Before(r.job.LeaseUntil)
	})
	slices.SortFunc(ended, func(a, b *record) int { return cmp.Compare(a.reservation, b.reservation) })
	var front []*record
	for _, r := range ended {
		crash := &queue.Settlement{Verb: queue.VerbCrash, Duration: r.job.LeaseUntil.Sub(r.job.StartedAt)}
		if s.settle(r, crash, now) {
			front = append(front, r)
		}
	}
	s.toFront(front)
	return len(ended)
}

func (s *Store) retain(now time.Time) int {
	over := s.pick(func(r *record) bool {
		end, ok := s.keptUntil(r)
		return ok && !now.Before(end)
	})
	for _, r := range over {
		s.remove(r)
	}
	return len(over)
}

// evict removes what is over the bound on dead jobs, or on all other finished ones.
func (s *Store) evict(dead bool) int {
	kind := queue.StateSucceeded
	if dead {
		kind = queue.StateDead
	}
	most := s.scheduling.Retention.Most(kind)
	kept := s.pick(func(r *record) bool { return r.job.State.Terminal() && (r.job.State == queue.StateDead) == dead })
	if most == 0 || len(kept) <= most {
		return 0
	}
	slices.SortStableFunc(kept, func(a, b *record) int { return a.job.FinishedAt.Compare(b.job.FinishedAt) })
	over := kept[:len(kept)-most]
	for _, r := range over {
		s.remove(r)
	}
	return len(over)
}

// keptUntil says when retention removes a job; false for a job that is not finished or is kept for ever.
func (s *Store) keptUntil(r *record) (time.Time, bool) {
	if !r.job.State.Terminal() {
		return time.Time{}, false
	}
	age, forever := s.scheduling.Retention.Age(r.job.State)
	return queue.After(r.job.FinishedAt, age), !forever
}

// nextDue says when Maintain has something to do; false for never, as things stand.
func (s *Store) nextDue() (time.Time, bool) {
	var next time.Time
	found := false
	consider := func(t time.Time) {
		if !found || t.Before(next) {
			next, found = t, true
		}
	}
	for _, r := range s.jobs {
		if r.job.State == queue.StateScheduled {
			consider(r.job.NextRunAt)
		}
		if r.job.State == queue.StateRunning {
			consider(r.job.LeaseUntil)
		}
		if waiting(r) && !r.job.ExpiresAt.IsZero() && r.job.StartedAt.IsZero() {
			consider(r.job.ExpiresAt)
		}
		if end, ok := s.keptUntil(r); ok {
			consider(end)
		}
	}
	for kind, n := range s.finished() {
		if most := s.scheduling.Retention.Most(kind); most > 0 && n > most {
			consider(s.now())
		}
	}
	return next, found
}

// finished counts dead jobs, and all other finished ones as succeeded.
func (s *Store) finished() map[queue.State]int {
	n := map[queue.State]int{}
	for _, r := range s.jobs {
		switch {
		case r.job.State == queue.StateDead:
			n[queue.StateDead]++
		case r.job.State.Terminal():
			n[queue.StateSucceeded]++
		}
	}
	return n
}

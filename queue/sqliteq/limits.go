package sqliteq

import (
	"time"

	"github.com/taskhost/taskhost/queue"
	"github.com/taskhost/taskhost/queue/fair"
)

// full reports whether the queue runs as many jobs as it may.
func (q *queueState) full() bool {
	return q.settings.MaxRunning > 0 && q.running >= int64(q.settings.MaxRunning)
}

// heldBack reports whether the queue does not compete, whatever its jobs.
func (q *queueState) heldBack() bool {
	return q.settings.Paused || q.rateUntil != 0 || q.full()
}

// full reports whether the tenant runs as many jobs as it may.
func (t *tenantState) full() bool {
	return t.maxRunning > 0 && t.running >= int64(t.maxRunning)
}

// countRunning counts a job in (1) or out (-1) of what runs, and lets whoever reaches or leaves a cap leave or join; with
// s.mu held.
func (s *Store) countRunning(q *queueState, by int64) {
	t := q.tenant
	queueWas, tenantWas := q.full(), t.full()
	q.running += by
	t.running += by
	if q.full() != queueWas {
		s.syncQueue(q)
	}
	if t.full() != tenantWas {
		s.holdTenant(t)
	}
}

// holdTenant brings a tenant in all views to whether it is full; with s.mu held.
func (s *Store) holdTenant(t *tenantState) {
	for _, v := range s.views {
		v.sched.HoldTenant(t.name, t.full())
		if !v.sched.Empty() {
			v.rouse()
		}
	}
}

// fairRate is a rate as the arithmetic takes it.
func fairRate(r queue.Rate) fair.Rate {
	return fair.Rate{Count: int64(r.Count), Per: r.Per.Milliseconds(), Slack: queue.RateSlack.Milliseconds()}
}

// rateFrom is from when the rate of the queue allows one more job; 0 without a rate.
func (q *queueState) rateFrom() int64 {
	if q.settings.Rate.IsZero() {
		return 0
	}
	return q.bucket.From(fairRate(q.settings.Rate))
}

// chargeRate counts one reservation and holds the queue back when that was all the rate allows; with s.mu held.
func (s *Store) chargeRate(q *queueState, now int64) {
	if q.settings.Rate.IsZero() {
		return
	}
	q.bucket = q.bucket.Take(fairRate(q.settings.Rate), now)
	from := q.rateFrom()
	if from <= now {
		return
	}
	q.rateUntil = from
	s.rateTimers.push(due{at: from, seq: q.id})
	s.syncQueue(q)
	if s.rateChanged != nil && from < s.rateAnnounced {
		close(s.rateChanged)
		s.rateChanged = nil
	}
}

// openRates lets the queues in whose rates allow a job by now; with s.mu held.
func (s *Store) openRates(now int64) {
	for s.nextRate() <= now {
		q := s.queuesByID[s.rateTimers.pop().seq]
		q.rateUntil = 0
		s.syncQueue(q)
	}
}

// nextRate is when a rate lets the next queue in; with s.mu held.
func (s *Store) nextRate() int64 {
	for len(s.rateTimers) > 0 {
		top := s.rateTimers[0]
		if s.queuesByID[top.seq].rateUntil == top.at {
			return top.at
		}
		s.rateTimers.pop() // the rate was changed meanwhile
	}
	return never
}

// apply puts settings in force without letting anybody join or leave; with s.mu held.
func (s *Store) apply(q *queueState, e queue.EffectiveSettings) {
	if e.Rate != q.settings.Rate {
		q.bucket, q.rateUntil = fair.Bucket{}, 0
	}
	q.settings = e
	for _, l := range q.lines {
		for _, le := range l.entries {
			le.view.sched.Reweigh(le.entry, e.Weight*s.scheduling.ChargeUnit())
		}
	}
	for _, k := range q.slots {
		k.bringBack()
	}
}

// queueWaits lists what holds a whole queue back. Its state, and that of its tenant, may be nil; with s.mu held.
func queueWaits(e queue.EffectiveSettings, t *tenantState, q *queueState, now time.Time) []queue.WaitReason {
	var list []queue.WaitReason
	if e.Paused {
		list = append(list, queue.WaitReason{Code: queue.WaitPaused})
	}
	if q != nil && q.full() {
		list = append(list, queue.WaitReason{Code: queue.WaitMaxRunning, Limit: e.MaxRunning, Running: int(q.running)})
	}
	if t != nil && t.full() {
		list = append(list, queue.WaitReason{Code: queue.WaitTenantMaxRunning, Limit: t.maxRunning, Running: int(t.running)})
	}
	if q != nil {
		if from := q.rateFrom(); from > now.UnixMilli() {
			list = append(list, queue.WaitReason{Code: queue.WaitRate, Until: fromMillis(from)})
		}
	}
	return list
}

package memq

import (
	"context"
	"time"

	"github.com/taskhost/taskhost/queue"
)

// Reserve implements queue.Queue.
func (s *Store) Reserve(ctx context.Context, p queue.ReserveParams) ([]*queue.Job, error) {
	if err := s.lock(ctx); err != nil {
		return nil, err
	}
	defer s.mu.Unlock()
	if err := p.Validate(); err != nil {
		return nil, err
	}
	token, err := s.newToken()
	if err != nil {
		return nil, err
	}
	now := s.now()
	v := s.viewOf(p.View)
	s.syncViews() // a rate may let somebody in by now
	var batch []*queue.Job
	size, aside := 0, 0
	for len(batch) < p.Max {
		c, ok := v.choose(s.scheduling.MaxConsecutiveHigh)
		if !ok {
			break
		}
		r := s.front(c.lineKey)
		if expired(r, now) {
			s.leaveLine(r)
			s.finish(r, queue.StateExpired, now)
			continue
		}
		if slot := slotOf(&r.job); slot.key != "" && s.freeSlots(slot) <= 0 {
			if aside == queue.AsideMax {
				break
			}
			aside++
			r.aside, r.back = true, false
			s.syncViews()
			continue
		}
		if p.MaxBytes > 0 && len(batch) > 0 && size+len(r.job.Payload) > p.MaxBytes {
			break
		}
		size += len(r.job.Payload)
		s.takeFromLine(r)
		cost := s.estimate(c.queueKey)
		v.charge(c, cost) // before it leaves, so that a queue that empties is parked with what it was charged
		if s.scheduling.ChargeByTime > 0 {
			r.charge = charge{v, c.lineKey, cost}
		}
		s.start(r, p, token, now)
		s.syncViews()
		j := r.copyJob()
		j.Token = token
		batch = append(batch, j)
	}
	return batch, nil
}

// start puts a job that is in no line under a lease.
func (s *Store) start(r *record, p queue.ReserveParams, token queue.Token, now time.Time) {
	s.reservations++
	r.reservation = s.reservations
	s.used[keyOf(r).queueKey].served++
	s.chargeRate(keyOf(r).queueKey, now)
	if r.job.Unique.Until == queue.UniqueUntilStarted {
		s.freeUnique(r)
	}
	r.job.State = queue.StateRunning
	r.job.Attempt++
	r.job.StartedAt = now
	r.job.Worker = p.Worker
	r.job.LeaseUntil = queue.After(now, p.Lease)
	r.job.Token = token
	s.touch(r)
}

// expired says whether a waiting job's time is over: it has one, and never started.
func expired(r *record, now time.Time) bool {
	return !r.job.ExpiresAt.IsZero() && r.job.StartedAt.IsZero() && !now.Before(r.job.ExpiresAt)
}

package redisq

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/taskhost/taskhost/queue"
)

// maintainMost bounds each step of one Maintain in jobs, so that the script stays within some milliseconds.
const maintainMost = 250

// Maintain implements queue.Queue.
func (s *Store) Maintain(ctx context.Context) (queue.MaintainReport, error) {
	var r queue.MaintainReport
	if err := s.enter(ctx); err != nil {
		return r, err
	}
	run, gap := "", 0
	if s.clock == nil { // a clock of the caller's says nothing about the server
		run = s.outage.run()
		if s.outage.take() {
			gap = 1
			s.o.Logger.Warn("redis had been away: leases that ended meanwhile are given once more")
		}
	}
	v, err := s.run(ctx, "maintain", maintainMost, gap, run)
	if err != nil {
		if gap == 1 {
			s.outage.put()
		}
		return r, err
	}
	n, err := asList(v)
	if err != nil || len(n) != 6 {
		return r, fmt.Errorf("%w: redis answered maintenance with %d values", queue.ErrUnavailable, len(n))
	}
	return queue.MaintainReport{Promoted: int(asInt(n[0])), Reaped: int(asInt(n[1])), Expired: int(asInt(n[2])), Retained: int(asInt(n[3])), More: asInt(n[4]) == 1, Evicted: int(asInt(n[5]))}, nil
}

// pause waits a moment before something is tried again; false when ctx ended.
func pause(ctx context.Context) bool {
	t := time.NewTimer(50*time.Millisecond + rand.N(50*time.Millisecond))
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}

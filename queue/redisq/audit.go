package redisq

import (
	"context"
	"fmt"

	"github.com/taskhost/taskhost/queue"
)

// Audit implements queue.Auditor. The counts are of one moment: each job is in exactly one line, schedule, batch or index of ended
// jobs, and together with those removed they are those enqueued. It costs Redis a step per line, batch
// and running job, not per waiting job. Counts of what runs that are wrong are reported and put right.
func (s *Store) Audit(ctx context.Context) (queue.AuditReport, error) {
	if err := s.enter(ctx); err != nil {
		return queue.AuditReport{}, err
	}
	v, err := s.run(ctx, "audit")
	if err != nil {
		return queue.AuditReport{}, err
	}
	list, err := asList(v)
	states := []queue.State{queue.StateReady, queue.StateScheduled, queue.StateRunning, queue.StateSucceeded, queue.StateDead, queue.StateCancelled, queue.StateExpired}
	if err != nil || len(list) < 3+len(states) {
		return queue.AuditReport{}, fmt.Errorf("%w: redis answered an audit with %d values", queue.ErrUnavailable, len(list))
	}
	r := queue.AuditReport{Enqueued: asInt(list[0]), Removed: asInt(list[1]), Counts: make(map[queue.State]int64)}
	for i, st := range states {
		r.Counts[st] = asInt(list[2+i])
	}
	for _, f := range list[3+len(states):] {
		r.Faults = append(r.Faults, asString(f))
	}
	if asInt(list[2+len(states)]) == 1 {
		if _, err := s.run(ctx, "recount"); err != nil {
			return queue.AuditReport{}, err
		}
	}
	return r, nil
}

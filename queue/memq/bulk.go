package memq

import (
	"context"

	"github.com/taskhost/taskhost/queue"
)

// ChangeJobs implements queue.Bulk.
func (s *Store) ChangeJobs(ctx context.Context, tenant string, c queue.Change, ids []string) ([]queue.ChangeOutcome, error) {
	if err := s.lock(ctx); err != nil {
		return nil, err
	}
	defer s.mu.Unlock()
	if err := queue.ValidChange(tenant, c, ids); err != nil {
		return nil, err
	}
	outcomes := make([]queue.ChangeOutcome, len(ids))
	for i, id := range ids {
		r := s.find(tenant, id)
		switch {
		case r == nil:
			outcomes[i] = queue.ChangeMissing
		case s.change(r, c):
			outcomes[i] = queue.Changed
		default:
			outcomes[i] = queue.ChangeSkipped
		}
	}
	return outcomes, nil
}

// change reports whether it changed the job.
func (s *Store) change(r *record, c queue.Change) bool {
	state := r.job.State
	switch c.Action {
	case queue.ChangeCancel:
		switch {
		case waiting(r):
			s.leaveLine(r)
			s.finish(r, queue.StateCancelled, s.now())
		case state == queue.StateRunning && !r.job.CancelRequested:
			r.job.CancelRequested = true
			s.touch(r)
		default:
			return false
		}
		return true
	case queue.ChangeRetry:
		if state != queue.StateScheduled || r.job.Reason != queue.ReasonRetry {
			return false
		}
		s.toTail(r)
		return true
	case queue.ChangeReplay:
		return state == queue.StateDead && s.replay(r, c.ToQueue)
	case queue.ChangePurge:
		if state == queue.StateRunning {
			return false
		}
		s.remove(r)
		return true
	case queue.ChangeErase:
		if !state.Terminal() || !r.job.ErasedAt.IsZero() {
			return false
		}
		r.job.ErasedAt = s.now()
		r.job.Payload, r.job.PayloadJSON, r.job.PayloadBytes = nil, false, 0
		r.job.Result, r.job.ResultBytes, r.job.Checkpoint = nil, 0, nil
		r.dropLogs()
		s.touch(r)
		return true
	}
	return false
}

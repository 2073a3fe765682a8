package redisq

import (
	"context"

	"github.com/taskhost/taskhost/queue"
)

var _ queue.Explainer = (*Store)(nil)

// WaitingOn implements queue.Explainer.
func (s *Store) WaitingOn(ctx context.Context, tenant, id string) ([]queue.WaitReason, error) {
	if err := s.enter(ctx); err != nil {
		return nil, err
	}
	j, err := s.get(ctx, tenant, id, false)
	if err != nil {
		return nil, err
	}
	switch j.State {
	case queue.StateScheduled:
		return []queue.WaitReason{{Code: queue.WaitCodeOf(j.Reason), Until: j.NextRunAt}}, nil
	case queue.StateReady:
	case queue.StateRunning, queue.StateSucceeded, queue.StateDead, queue.StateCancelled, queue.StateExpired:
		return nil, nil
	}
	v, err := s.run(ctx, "ahead", tenant, j.Queue, j.Priority)
	if err != nil {
		return nil, err
	}
	parts, err := asList(v)
	if err != nil || len(parts) != 2 {
		return nil, err
	}
	var list []queue.WaitReason
	if asInt(parts[0]) == 1 {
		list = append(list, queue.WaitReason{Code: queue.WaitPaused})
	}
	if n := asInt(parts[1]) - 1; n > 0 { // itself
		list = append(list, queue.WaitReason{Code: queue.WaitAhead, AtMost: n})
	}
	return list, nil
}

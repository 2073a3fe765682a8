package redisq

import (
	"context"
	"fmt"

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
	v, err := s.run(ctx, "ahead", tenant, j.Queue, j.Priority, j.ConcurrencyKey)
	if err != nil {
		return nil, err
	}
	parts, err := asList(v)
	if err != nil || len(parts) != 9 {
		return nil, fmt.Errorf("%w: redis explained a wait with %d values", queue.ErrUnavailable, len(parts))
	}
	n := make([]int, len(parts))
	for i, p := range parts {
		n[i] = int(asInt(p))
	}
	var list []queue.WaitReason
	if n[0] == 1 {
		list = append(list, queue.WaitReason{Code: queue.WaitPaused})
	}
	if n[1] >= 0 {
		list = append(list, queue.WaitReason{Code: queue.WaitMaxRunning, Limit: n[2], Running: n[1]})
	}
	if n[3] >= 0 {
		list = append(list, queue.WaitReason{Code: queue.WaitTenantMaxRunning, Limit: n[4], Running: n[3]})
	}
	if from := asInt(parts[5]); from > 0 {
		list = append(list, queue.WaitReason{Code: queue.WaitRate, Until: millis(from)})
	}
	if j.ConcurrencyKey != "" && n[7] >= n[6] {
		list = append(list, queue.WaitReason{Code: queue.WaitKey, Key: j.ConcurrencyKey, Limit: n[6], Running: n[7]})
	}
	if ahead := n[8] - 1; ahead > 0 { // itself
		list = append(list, queue.WaitReason{Code: queue.WaitAhead, AtMost: int64(ahead)})
	}
	return list, nil
}

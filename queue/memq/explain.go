package memq

import (
	"context"

	"github.com/taskhost/taskhost/queue"
)

// WaitingOn implements queue.Explainer.
func (s *Store) WaitingOn(ctx context.Context, tenant, id string) ([]queue.WaitReason, error) {
	if err := s.lock(ctx); err != nil {
		return nil, err
	}
	defer s.mu.Unlock()
	r := s.find(tenant, id)
	if r == nil {
		return nil, queue.ErrNotFound
	}
	switch r.job.State {
	case queue.StateScheduled:
		return []queue.WaitReason{{Code: queue.WaitCodeOf(r.job.Reason), Until: r.job.NextRunAt}}, nil
	case queue.StateReady:
	case queue.StateRunning, queue.StateSucceeded, queue.StateDead, queue.StateCancelled, queue.StateExpired:
		return nil, nil
	}
	list := s.queueWaits(keyOf(r).queueKey)
	if slot := slotOf(&r.job); slot.key != "" && s.freeSlots(slot) <= 0 {
		list = append(list, queue.WaitReason{Code: queue.WaitKey, Key: slot.key,
			Limit: s.settings(slot.queueKey).MaxPerKey, Running: s.runningWith(slot)})
	}
	ahead := -1 // itself
	for _, o := range s.jobs {
		if o.job.State == queue.StateReady && keyOf(o).queueKey == keyOf(r).queueKey && o.job.Priority >= r.job.Priority {
			ahead++
		}
	}
	if ahead > 0 {
		list = append(list, queue.WaitReason{Code: queue.WaitAhead, AtMost: int64(ahead)})
	}
	return list, nil
}

// queueWaits lists what holds a whole queue back.
func (s *Store) queueWaits(key queueKey) []queue.WaitReason {
	var list []queue.WaitReason
	e := s.settings(key)
	if e.Paused {
		list = append(list, queue.WaitReason{Code: queue.WaitPaused})
	}
	if s.queueFull(key) {
		list = append(list, queue.WaitReason{Code: queue.WaitMaxRunning, Limit: e.MaxRunning, Running: s.runningIn(key)})
	}
	if s.tenantFull(key.tenant) {
		list = append(list, queue.WaitReason{Code: queue.WaitTenantMaxRunning,
			Limit: s.scheduling.TenantMaxRunning(key.tenant), Running: s.runningOf(key.tenant)})
	}
	if from := s.rateFrom(key); s.now().Before(from) {
		list = append(list, queue.WaitReason{Code: queue.WaitRate, Until: from})
	}
	return list
}

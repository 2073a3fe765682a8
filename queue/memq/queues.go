package memq

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"time"

	"github.com/taskhost/taskhost/queue"
)

// settings are those in force of one queue.
func (s *Store) settings(key queueKey) queue.EffectiveSettings {
	return queue.Effective(s.overrides[key], s.scheduling.Queues[key.queue])
}

// exists: configured, overridden, or ever used.
func (s *Store) exists(key queueKey) bool {
	_, configured := s.scheduling.Queues[key.queue]
	return configured || !s.overrides[key].Empty() || s.used[key] != nil
}

// Configure implements queue.Configurable.
func (s *Store) Configure(ctx context.Context, c queue.Scheduling) error {
	if err := s.lock(ctx); err != nil {
		return err
	}
	defer s.mu.Unlock()
	if err := c.Validate(); err != nil {
		return err
	}
	s.scheduling = c.Clone()
	if c.ChargeByTime == 0 {
		clear(s.costs)
	}
	s.followRates()
	s.syncViews()
	s.broadcast()
	return nil
}

// ListQueues implements queue.Queues.
func (s *Store) ListQueues(ctx context.Context, tenant string) ([]queue.QueueInfo, error) {
	if err := s.lock(ctx); err != nil {
		return nil, err
	}
	defer s.mu.Unlock()
	if err := queue.ValidName("tenant", tenant); err != nil {
		return nil, err
	}
	names := map[string]bool{}
	for name := range s.scheduling.Queues {
		names[name] = true
	}
	for key := range s.overrides {
		names[key.queue] = true
	}
	for key := range s.used {
		names[key.queue] = true
	}
	var infos []queue.QueueInfo
	for _, name := range slices.Sorted(maps.Keys(names)) {
		if key := (queueKey{tenant, name}); s.exists(key) {
			infos = append(infos, s.info(key))
		}
	}
	return infos, nil
}

// GetQueue implements queue.Queues.
func (s *Store) GetQueue(ctx context.Context, tenant, name string) (queue.QueueInfo, error) {
	if err := s.lock(ctx); err != nil {
		return queue.QueueInfo{}, err
	}
	defer s.mu.Unlock()
	key := queueKey{tenant, name}
	if queue.ValidName("tenant", tenant) != nil || !s.exists(key) {
		return queue.QueueInfo{}, queue.ErrNotFound
	}
	return s.info(key), nil
}

// SetQueue implements queue.Queues.
func (s *Store) SetQueue(ctx context.Context, tenant, name string, c queue.QueueChange) (queue.QueueInfo, error) {
	if err := s.lock(ctx); err != nil {
		return queue.QueueInfo{}, err
	}
	defer s.mu.Unlock()
	if err := cmp.Or(queue.ValidName("tenant", tenant), queue.ValidName("queue", name), c.Validate()); err != nil {
		return queue.QueueInfo{}, err
	}
	key := queueKey{tenant, name}
	s.overrides[key] = c.Apply(s.overrides[key])
	s.followRates()
	s.syncViews()
	s.broadcast()
	return s.info(key), nil
}

func (s *Store) info(key queueKey) queue.QueueInfo {
	e := s.settings(key)
	info := queue.QueueInfo{
		Tenant:     key.tenant,
		Name:       key.queue,
		Weight:     e.Weight,
		Priority:   e.Priority,
		Paused:     e.Paused,
		MaxRunning: e.MaxRunning,
		MaxPerKey:  e.MaxPerKey,
		Rate:       e.Rate,
		Override:   s.overrides[key].Clone(),
	}
	if waits := s.queueWaits(key); len(waits) > 0 {
		info.Waiting = waits[0].Code
	}
	if u := s.used[key]; u != nil {
		info.Served = u.served
	}
	var oldest time.Time
	for _, r := range s.jobs {
		if r.job.Tenant != key.tenant || r.job.Queue != key.queue {
			continue
		}
		switch r.job.State {
		case queue.StateScheduled:
			info.Scheduled++
		case queue.StateReady:
			info.Ready++
			if oldest.IsZero() || r.job.CreatedAt.Before(oldest) {
				oldest = r.job.CreatedAt
			}
		case queue.StateRunning:
			info.Running++
		case queue.StateDead:
			info.Dead++
		case queue.StateSucceeded, queue.StateCancelled, queue.StateExpired:
		}
	}
	if !oldest.IsZero() {
		info.OldestAge = s.now().Sub(oldest)
	}
	return info
}

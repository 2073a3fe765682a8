package memq

import (
	"context"
	"slices"
	"time"

	"github.com/taskhost/taskhost/queue"
)

// CountDead implements queue.DeadLetters.
func (s *Store) CountDead(ctx context.Context, f queue.DeadFilter) (int, error) {
	if err := s.lock(ctx); err != nil {
		return 0, err
	}
	defer s.mu.Unlock()
	if err := f.Validate(); err != nil {
		return 0, err
	}
	return len(s.dead(f)), nil
}

// ReplayDead implements queue.DeadLetters.
func (s *Store) ReplayDead(ctx context.Context, f queue.DeadFilter, toQueue string, limit int) (queue.DeadChunk, error) {
	return s.chunk(ctx, f, toQueue, limit, func(r *record) bool { return s.replay(r, toQueue) })
}

// PurgeDead implements queue.DeadLetters.
func (s *Store) PurgeDead(ctx context.Context, f queue.DeadFilter, limit int) (queue.DeadChunk, error) {
	return s.chunk(ctx, f, "", limit, func(r *record) bool {
		s.remove(r)
		return true
	})
}

// chunk applies act, which reports whether it changed the job, to the first limit matches.
func (s *Store) chunk(ctx context.Context, f queue.DeadFilter, toQueue string, limit int, act func(*record) bool) (queue.DeadChunk, error) {
	if err := s.lock(ctx); err != nil {
		return queue.DeadChunk{}, err
	}
	defer s.mu.Unlock()
	err := f.Validate()
	if err == nil {
		err = queue.ValidChunk(limit)
	}
	if err == nil && toQueue != "" {
		err = queue.ValidName("to_queue", toQueue)
	}
	if err != nil {
		return queue.DeadChunk{}, err
	}
	matching := s.dead(f)
	c := queue.DeadChunk{Last: f.After, Done: len(matching) <= limit}
	for _, r := range matching[:min(limit, len(matching))] {
		c.Last = r.job.ID
		if act(r) {
			c.Changed++
		} else {
			c.Skipped++
		}
	}
	return c, nil
}

// dead returns the matching jobs in the order of creation, which is that of their ids.
func (s *Store) dead(f queue.DeadFilter) []*record {
	return s.pick(func(r *record) bool {
		j := &r.job
		return j.State == queue.StateDead &&
			j.Tenant == f.Tenant &&
			(len(f.IDs) == 0 || slices.Contains(f.IDs, j.ID)) &&
			(f.Queue == "" || j.Queue == f.Queue) &&
			(f.Type == "" || j.Type == f.Type) &&
			(f.ErrorFingerprint == "" || queue.ErrorFingerprint(j.LastError) == f.ErrorFingerprint) &&
			(f.DeadBefore.IsZero() || j.FinishedAt.Before(f.DeadBefore)) &&
			j.ID > f.After
	})
}

// replay starts a new run; false when another job holds its unique key, or the job is erased.
func (s *Store) replay(r *record, toQueue string) bool {
	key := tenantKey{r.job.Tenant, r.job.Unique.Key}
	held := key.key != "" && (s.unique[key] != nil || s.now().Before(s.windows[key].until))
	if !r.job.ErasedAt.IsZero() || held && r.job.Unique.Until != queue.UniqueUntilWindow {
		return false
	}
	s.takeUnique(r)
	if toQueue != "" {
		r.job.Queue = toQueue
	}
	s.useQueue(queueKey{r.job.Tenant, r.job.Queue})
	r.job.Run++
	r.job.Attempt, r.job.Crashes, r.job.Interruptions = 0, 0, 0
	r.job.FinishedAt = time.Time{}
	r.job.Progress, r.job.Checkpoint = nil, nil
	s.toTail(r)
	return true
}

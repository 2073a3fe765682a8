package memq

import (
	"context"
	"slices"

	"github.com/taskhost/taskhost/queue"
)

// GetJob implements queue.Jobs.
func (s *Store) GetJob(ctx context.Context, tenant, id string) (*queue.Job, error) {
	if err := s.lock(ctx); err != nil {
		return nil, err
	}
	defer s.mu.Unlock()
	r := s.find(tenant, id)
	if r == nil {
		return nil, queue.ErrNotFound
	}
	return r.copyJob(), nil
}

// ListJobs implements queue.Jobs.
func (s *Store) ListJobs(ctx context.Context, f queue.JobFilter) (queue.JobPage, error) {
	if err := s.lock(ctx); err != nil {
		return queue.JobPage{}, err
	}
	defer s.mu.Unlock()
	if err := f.Validate(); err != nil {
		return queue.JobPage{}, err
	}
	if _, ok := queue.ParseID(queue.JobIDPrefix, f.Cursor); f.Cursor != "" && !ok {
		return queue.JobPage{}, queue.BadCursor(f.Cursor)
	}
	limit := f.PageLimit()
	matching := s.pick(func(r *record) bool {
		behind := f.Cursor == "" || (r.job.ID > f.Cursor) == f.OldestFirst && r.job.ID != f.Cursor
		return behind && f.Matches(&r.job)
	})
	if !f.OldestFirst {
		slices.Reverse(matching)
	}
	var page queue.JobPage
	for _, r := range matching {
		if len(page.Jobs) == limit {
			page.Next = page.Jobs[limit-1].ID
			break
		}
		page.Jobs = append(page.Jobs, r.preview())
	}
	return page, nil
}

// CancelJob implements queue.Jobs.
func (s *Store) CancelJob(ctx context.Context, tenant, id string) (*queue.Job, error) {
	if err := s.lock(ctx); err != nil {
		return nil, err
	}
	defer s.mu.Unlock()
	r := s.find(tenant, id)
	if r == nil {
		return nil, queue.ErrNotFound
	}
	switch {
	case waiting(r):
		s.leaveLine(r)
		s.finish(r, queue.StateCancelled, s.now())
	case r.job.State == queue.StateRunning:
		r.job.CancelRequested = true
		s.touch(r)
	case r.job.State != queue.StateCancelled:
		return nil, &queue.StateError{JobID: id, State: r.job.State, Op: "cancel"}
	}
	return r.copyJob(), nil
}

// DeleteJob implements queue.Jobs.
func (s *Store) DeleteJob(ctx context.Context, tenant, id string) error {
	if err := s.lock(ctx); err != nil {
		return err
	}
	defer s.mu.Unlock()
	r := s.find(tenant, id)
	if r == nil {
		return queue.ErrNotFound
	}
	if r.job.State == queue.StateRunning {
		return &queue.StateError{JobID: id, State: r.job.State, Op: "delete"}
	}
	for key, first := range s.idempotency {
		if first.id == id {
			delete(s.idempotency, key)
		}
	}
	if key := (tenantKey{tenant, r.job.Unique.Key}); s.windows[key].id == id {
		delete(s.windows, key)
	}
	s.remove(r)
	return nil
}

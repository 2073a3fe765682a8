package memq

import (
	"context"
	"slices"
	"strings"

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
	limit := f.Limit
	if limit == 0 {
		limit = queue.ListLimitDefault
	}
	matching := s.pick(func(r *record) bool { return matches(r, f) })
	slices.Reverse(matching) // newest first
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

func matches(r *record, f queue.JobFilter) bool {
	j := &r.job
	for k, v := range f.Labels {
		if got, ok := j.Labels[k]; !ok || got != v {
			return false
		}
	}
	inQuery := strings.Contains(j.ID, f.Query) || j.LastError != nil && strings.Contains(j.LastError.Message, f.Query)
	return j.Tenant == f.Tenant &&
		(len(f.States) == 0 || slices.Contains(f.States, j.State)) &&
		(f.Queue == "" || j.Queue == f.Queue) &&
		(f.Type == "" || j.Type == f.Type) &&
		inQuery &&
		!j.CreatedAt.Before(f.Since) &&
		(f.Cursor == "" || j.ID < f.Cursor)
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
	s.remove(r)
	return nil
}

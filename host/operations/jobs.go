package operations

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/taskhost/taskhost/queue"
)

// JobsFilter selects the jobs of an operation that is not bound to the dead-letter queue. Zero fields do not filter.
type JobsFilter struct {
	IDs              []string          `json:"ids,omitempty"`
	States           []queue.State     `json:"states,omitempty"` // default: see Service.CreateJobs
	Queue            string            `json:"queue,omitempty"`
	Type             string            `json:"type,omitempty"`
	Labels           map[string]string `json:"labels,omitempty"`
	Query            string            `json:"q,omitempty"` // part of the id or of the last error
	ErrorFingerprint string            `json:"error_fingerprint,omitempty"`
	Since            time.Time         `json:"since,omitzero"`
	Before           time.Time         `json:"before,omitzero"` // at most when the operation was created
	FinishedSince    time.Time         `json:"finished_since,omitzero"`
	FinishedBefore   time.Time         `json:"finished_before,omitzero"`
}

// JobsRequest asks for an operation on jobs in any state.
type JobsRequest struct {
	Action        Action
	Filter        JobsFilter
	ToQueue       string // replay only; empty = the job's own queue
	ExpectedCount *int   // refuse with *CountChangedError unless so many match; nil = whatever
	DryRun        bool   // count and do nothing
}

// filter is what the store is asked.
func (r *record) filter() queue.JobFilter {
	f := r.Jobs
	q := queue.JobFilter{Tenant: r.Tenant, States: f.States, Queue: f.Queue, Type: f.Type, Labels: f.Labels, Query: f.Query,
		ErrorFingerprint: f.ErrorFingerprint, Since: f.Since, Before: f.Before, FinishedSince: f.FinishedSince, FinishedBefore: f.FinishedBefore,
		OldestFirst: true, Limit: queue.ListLimitMax}
	if r.Action == ActionRetry {
		q.Reason = queue.ReasonRetry
	}
	return q
}

// needs reports whether the action would change a job that the filter matches.
func (r *record) needs(j *queue.Job) bool {
	return !(r.Action == ActionCancel && j.CancelRequested || r.Action == ActionErase && !j.ErasedAt.IsZero())
}

// CreateJobs begins an operation on the jobs of a tenant that a filter selects, oldest first. Jobs created after it never match.
// Without states, the filter means those that the action fits (queue.ChangeAction.Fits), and for a purge only dead
// ones. Where unfinished jobs are meant it looks again until it finds nothing more to do, because they move while it works.
// After the death of the host that works on it, up to one chunk may be missing in Operation.Done.
func (s *Service) CreateJobs(ctx context.Context, tenant string, req JobsRequest) (Operation, error) {
	now, err := s.o.Now(ctx)
	if err != nil {
		return Operation{}, err
	}
	f := req.Filter
	if err := f.complete(req.Action, now); err != nil {
		return Operation{}, err
	}
	if err := queue.ValidChange(tenant, queue.Change{Action: queue.ChangeAction(req.Action), ToQueue: req.ToQueue}, nil); err != nil {
		return Operation{}, err
	}
	r := &record{Operation: Operation{Tenant: tenant, Action: req.Action, State: StateRunning, ToQueue: req.ToQueue, DryRun: req.DryRun, CreatedAt: now, Jobs: &f}}
	if r.Matched, err = s.countJobs(ctx, r); err != nil {
		return Operation{}, fmt.Errorf("count jobs: %w", err)
	}
	return s.begin(ctx, r, req.ExpectedCount)
}

// complete checks the states, fills in the default ones and fixes the end of the creation times.
func (f *JobsFilter) complete(a Action, now time.Time) error {
	fits := queue.ChangeAction(a).Fits()
	for _, state := range f.States {
		if !slices.Contains(fits, state) {
			return &queue.InvalidError{Field: "filter.states", Reason: fmt.Sprintf("%s applies to jobs that are %v, got %.40q", a, fits, string(state))}
		}
	}
	switch {
	case len(f.States) > 0:
	case a == ActionPurge:
		f.States = []queue.State{queue.StateDead}
	default:
		f.States = fits
	}
	if end := now.Add(time.Millisecond); f.Before.IsZero() || f.Before.After(end) { // what was created in this millisecond is known to the caller
		f.Before = end
	}
	f.IDs = slices.Clone(f.IDs)
	slices.Sort(f.IDs)
	f.IDs = slices.Compact(f.IDs)
	return nil
}

// countJobs counts what matches, page by page.
func (s *Service) countJobs(ctx context.Context, r *record) (n int, err error) {
	for after := ""; ; {
		ids, next, err := s.selectJobs(ctx, r, after)
		if err != nil {
			return 0, err
		}
		n += len(ids)
		if after = next; after == "" {
			return n, nil
		}
	}
}

// selectJobs returns the jobs of the next chunk, and what continues behind it; "" when nothing does.
func (s *Service) selectJobs(ctx context.Context, r *record, after string) (ids []string, next string, err error) {
	if len(r.Jobs.IDs) > 0 {
		return s.selectNamed(ctx, r, after)
	}
	f := r.filter()
	f.Limit, f.Cursor = min(s.o.Chunk, queue.ListLimitMax), after
	page, err := s.o.Jobs.ListJobs(ctx, f)
	for _, j := range page.Jobs {
		if r.needs(j) && !slices.Contains(ids, j.ID) {
			ids = append(ids, j.ID)
		}
	}
	return ids, page.Next, err
}

func (s *Service) selectNamed(ctx context.Context, r *record, after string) (ids []string, next string, err error) {
	f := r.filter()
	from, found := slices.BinarySearch(r.Jobs.IDs, after)
	if found {
		from++
	}
	rest := r.Jobs.IDs[from:]
	chunk := rest[:min(len(rest), s.o.Chunk, queue.ChangeMax)]
	for _, id := range chunk {
		j, err := s.o.Jobs.GetJob(ctx, r.Tenant, id)
		if errors.Is(err, queue.ErrNotFound) {
			continue
		}
		if err != nil {
			return nil, "", err
		}
		if f.Matches(j) && r.needs(j) {
			ids = append(ids, id)
		}
	}
	if len(chunk) < len(rest) {
		next = chunk[len(chunk)-1]
	}
	return ids, next, nil
}

// actOnJobs does one chunk of an operation on jobs in any state.
func (s *Service) actOnJobs(r *record) (queue.DeadChunk, error) {
	if r.After == "" { // a pass begins: what was skipped is looked at again
		r.Skipped, r.Changed = 0, 0
	}
	ids, next, err := s.selectJobs(s.ctx, r, r.After)
	if err != nil {
		return queue.DeadChunk{}, err
	}
	c := queue.DeadChunk{Last: next}
	if len(ids) > 0 {
		change := queue.Change{Action: queue.ChangeAction(r.Action), ToQueue: r.ToQueue}
		outcomes, err := s.o.Bulk.ChangeJobs(s.ctx, r.Tenant, change, ids)
		if err != nil {
			return queue.DeadChunk{}, err
		}
		for _, o := range outcomes {
			switch o {
			case queue.Changed:
				c.Changed++
			case queue.ChangeSkipped:
				c.Skipped++
			case queue.ChangeMissing: // gone meanwhile: nothing is left to do
			}
		}
	}
	r.Changed += c.Changed
	unfinished := slices.ContainsFunc(r.Jobs.States, func(st queue.State) bool { return !st.Terminal() })
	again := unfinished && len(r.Jobs.IDs) == 0 && r.Changed > 0
	c.Done = next == "" && !again
	return c, nil
}

package sqliteq

import (
	"context"
	"database/sql/driver"
	"errors"
	"slices"
	"strings"

	"github.com/taskhost/taskhost/queue"
)

// ListJobs implements queue.Jobs. It reads three sources, each newest first, and merges them: waiting and running jobs,
// and finished ones. Job numbers rise with ids, so a page is a range of job numbers.
//
// Waiting jobs have no index by tenant, which every enqueue would pay for: a tenant with few waiting jobs behind a
// large backlog of others costs a scan of that backlog (a tenant with none costs nothing).
func (s *Store) ListJobs(ctx context.Context, f queue.JobFilter) (queue.JobPage, error) {
	if err := s.enter(ctx); err != nil {
		return queue.JobPage{}, err
	}
	if err := f.Validate(); err != nil {
		return queue.JobPage{}, err
	}
	l := &lister{s: s, f: &f, limit: f.Limit, before: never}
	if l.limit == 0 {
		l.limit = queue.ListLimitDefault
	}
	if f.Cursor != "" {
		if _, seq, ok := s.ids.parse(f.Cursor); ok {
			l.before = seq
		}
	}
	if !l.snapshot() {
		return queue.JobPage{}, nil
	}
	err := s.read(ctx, func(c *conn) error {
		if err := l.waiting(ctx, c); err != nil {
			return err
		}
		return l.finished(ctx, c)
	})
	if err != nil {
		return queue.JobPage{}, err
	}
	slices.SortFunc(l.found, func(a, b *queue.Job) int { return strings.Compare(b.ID, a.ID) })
	page := queue.JobPage{Jobs: l.found}
	if len(l.found) > l.limit {
		page.Jobs = l.found[:l.limit]
		page.Next = page.Jobs[l.limit-1].ID
	}
	return page, nil
}

// lister is one ListJobs on its way.
type lister struct {
	s       *Store
	f       *queue.JobFilter
	limit   int
	before  int64 // job numbers below this
	tenant  *tenantState
	queues  map[int64]*queueState
	running map[int64]jobView
	live    bool // the tenant, or the queue asked for, has jobs that are not finished
	onlyQ   *queueState
	found   []*queue.Job
}

// snapshot notes what memory knows; false when nothing can match. Running jobs are noted before the database is read: a
// job that starts after that is shown as waiting, one that ends as finished.
func (l *lister) snapshot() bool {
	s := l.s
	s.mu.Lock()
	defer s.mu.Unlock()
	l.tenant = s.tenants[l.f.Tenant]
	if l.tenant == nil {
		return false
	}
	l.queues = make(map[int64]*queueState, len(l.tenant.queues))
	l.running = make(map[int64]jobView)
	for _, q := range l.tenant.queues {
		if l.f.Queue != "" && q.name != l.f.Queue {
			continue
		}
		l.queues[q.id] = q
		if l.f.Queue != "" {
			l.onlyQ = q
		}
		if q.scheduled+q.ready+q.running > 0 {
			l.live = true
		}
	}
	if l.wants(queue.StateRunning, queue.StateReady, queue.StateScheduled) {
		for seq, r := range s.running {
			if r.q.tenant == l.tenant {
				l.running[seq] = r.view()
			}
		}
	}
	return true
}

// wants reports whether the filter admits one of the states.
func (l *lister) wants(states ...queue.State) bool {
	if len(l.f.States) == 0 {
		return true
	}
	return slices.ContainsFunc(states, func(s queue.State) bool { return slices.Contains(l.f.States, s) })
}

func (l *lister) waiting(ctx context.Context, c *conn) error {
	if !l.live && len(l.running) == 0 || !l.wants(queue.StateRunning, queue.StateReady, queue.StateScheduled) {
		return nil
	}
	n := 0
	each := func(row []driver.Value) error {
		q := l.queues[asInt(row[1])]
		if q == nil {
			return nil
		}
		v, runs := l.running[asInt(row[0])]
		if !runs {
			v = *l.s.scanJob(row).view()
		}
		return l.add(&v, &n)
	}
	if l.onlyStates(queue.StateRunning) { // no need to look at the backlog
		seqs := make([]int64, 0, len(l.running))
		for seq := range l.running {
			seqs = append(seqs, seq)
		}
		slices.SortFunc(seqs, func(a, b int64) int { return int(b - a) })
		for _, seq := range seqs {
			v := l.running[seq]
			if l.queues[v.q.id] == nil || seq >= l.before {
				continue
			}
			if err := l.add(&v, &n); errors.Is(err, errStop) {
				break
			} else if err != nil {
				return err
			}
		}
		return nil
	}
	if l.onlyQ != nil {
		return c.query(ctx, sqlJobsDownQueue, each, l.before, l.onlyQ.id)
	}
	return c.query(ctx, sqlJobsDown, each, l.before)
}

func (l *lister) onlyStates(states ...queue.State) bool {
	return len(l.f.States) > 0 && !slices.ContainsFunc(l.f.States, func(s queue.State) bool { return !slices.Contains(states, s) })
}

func (l *lister) finished(ctx context.Context, c *conn) error {
	if !l.wants(queue.StateSucceeded, queue.StateDead, queue.StateCancelled, queue.StateExpired) {
		return nil
	}
	text := sqlFinishedDown
	if l.onlyStates(queue.StateDead, queue.StateRunning, queue.StateReady, queue.StateScheduled) {
		text = sqlDeadDown
	}
	n := 0
	return c.query(ctx, text, func(row []driver.Value) error {
		if l.f.Queue != "" && l.queues[asInt(row[2])] == nil {
			return nil
		}
		return l.add(&l.s.scanFinished(row).jobView, &n)
	}, l.tenant.id, l.before)
}

// add takes a job that matches; it ends the source after one more than a page, or when all others are too old.
func (l *lister) add(v *jobView, n *int) error {
	f := l.f
	if v.birth.time().Before(f.Since) {
		return errStop
	}
	if len(f.States) > 0 && !slices.Contains(f.States, v.state) {
		return nil
	}
	j := preview(l.s.job(v))
	if f.Cursor != "" && j.ID >= f.Cursor || f.Type != "" && j.Type != f.Type {
		return nil
	}
	for k, want := range f.Labels {
		if got, ok := j.Labels[k]; !ok || got != want {
			return nil
		}
	}
	if !strings.Contains(j.ID, f.Query) && (j.LastError == nil || !strings.Contains(j.LastError.Message, f.Query)) {
		return nil
	}
	l.found = append(l.found, j)
	if *n++; *n > l.limit {
		return errStop
	}
	return nil
}

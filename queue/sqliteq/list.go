package sqliteq

import (
	"cmp"
	"context"
	"database/sql/driver"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/taskhost/taskhost/queue"
)

// What a page may look at, per source: listWork units, of which a row whose job is decoded costs listDecoded and one of
// another tenant or queue a single unit: some 50 ms.
const (
	listWork    = 40_000
	listDecoded = 10
)

// listTime is how long a page looks for jobs that match, whatever the machine is doing; listAlways is the work that it does at least, per
// source, so that short lists do not come in pieces. Jobs that match are not held back by it.
const (
	listTime   = 50 * time.Millisecond
	listAlways = 500
)

// ListJobs implements queue.Jobs. It reads two sources in the order of job numbers, which rise with ids, and merges them:
// waiting and running jobs, and finished ones.
//
// Waiting jobs have no index by tenant, which every enqueue would pay for: a tenant with few waiting jobs behind a large
// backlog of others finds them after some pages without a job.
func (s *Store) ListJobs(ctx context.Context, f queue.JobFilter) (queue.JobPage, error) {
	if err := s.enter(ctx); err != nil {
		return queue.JobPage{}, err
	}
	if err := f.Validate(); err != nil {
		return queue.JobPage{}, err
	}
	l := &lister{s: s, f: &f, limit: f.PageLimit(), from: never, work: s.listWork, until: s.listNow().Add(listTime)}
	if f.OldestFirst {
		l.from = -1
	}
	if f.Cursor != "" {
		_, seq, ok := s.ids.parse(f.Cursor)
		if !ok {
			return queue.JobPage{}, queue.BadCursor(f.Cursor)
		}
		l.from = seq
	}
	if !l.snapshot() {
		return queue.JobPage{}, nil
	}
	err := s.read(ctx, func(c *conn) error {
		if err := l.skip(ctx, c); err != nil {
			return err
		}
		if err := l.waiting(ctx, c); err != nil {
			return err
		}
		return l.finished(ctx, c)
	})
	if err != nil {
		return queue.JobPage{}, err
	}
	return l.page(), nil
}

// lister is one ListJobs on its way.
type lister struct {
	s       *Store
	f       *queue.JobFilter
	limit   int
	work    int // units per source
	until   time.Time
	from    int64 // job numbers behind this: below it, or above it for the oldest first
	tenant  *tenantState
	queues  map[int64]*queueState
	running map[int64]jobView
	live    bool // the tenant, or the queue asked for, has jobs that are not finished
	onlyQ   *queueState
	found   []foundJob
	stopped *place // the nearest place at which a source was left
}

type foundJob struct {
	seq int64
	job *queue.Job
}

// place is a job number with the birth that belongs to it, which make a cursor.
type place struct {
	seq   int64
	birth birth
}

// source is one of the two lists that are merged.
type source struct {
	work  int
	taken int
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
	if l.f.Wants(queue.StateRunning, queue.StateReady, queue.StateScheduled) {
		for seq, r := range s.running {
			if r.q.tenant == l.tenant {
				l.running[seq] = r.view()
			}
		}
	}
	return true
}

// skip goes to the end of the time range at which the list begins.
func (l *lister) skip(ctx context.Context, c *conn) error {
	at := l.f.Before
	if l.f.OldestFirst {
		at = l.f.Since
	}
	if at.IsZero() {
		return nil
	}
	seq, err := l.firstAt(ctx, c, at)
	if l.f.OldestFirst {
		l.from = max(l.from, seq-1)
	} else {
		l.from = min(l.from, seq)
	}
	return err
}

// firstAt returns a number that parts the tenant's jobs created before at from those created later. Births rise with
// numbers, so it is found by halving.
func (l *lister) firstAt(ctx context.Context, c *conn, at time.Time) (int64, error) {
	ms := queue.MillisUp(at)
	low, high := int64(0), int64(seqMax+1)
	for low < high {
		mid := low + (high-low)/2
		next := place{seq: never}
		note := func(row []driver.Value) error {
			if seq := asInt(row[0]); seq < next.seq {
				next = place{seq, birth(asInt(row[1]))}
			}
			return nil
		}
		if err := c.query(ctx, sqlFinishedNext, note, l.tenant.id, mid); err != nil {
			return 0, err
		}
		if err := c.query(ctx, sqlJobsNext, note, mid); err != nil {
			return 0, err
		}
		if next.seq == never || next.birth.time().UnixMilli() >= ms {
			high = mid
		} else {
			low = next.seq + 1
		}
	}
	return low, nil
}

func (l *lister) waiting(ctx context.Context, c *conn) error {
	if !l.live && len(l.running) == 0 || !l.f.Wants(queue.StateRunning, queue.StateReady, queue.StateScheduled) {
		return nil
	}
	src := &source{work: l.work}
	each := func(row []driver.Value) error {
		at := place{asInt(row[0]), birth(asInt(row[3]))}
		if l.queues[asInt(row[1])] == nil {
			return l.missed(src, at, 1)
		}
		v, runs := l.running[at.seq]
		if !runs {
			v = *l.s.scanJob(row).view()
		}
		return l.add(src, &v)
	}
	if !l.f.Wants(queue.StateReady, queue.StateScheduled) { // no need to look at the backlog
		return l.runningOnly(src)
	}
	down, up := sqlJobsDown, sqlJobsUp
	args := []driver.Value{l.from}
	if l.onlyQ != nil {
		down, up = sqlJobsDownQueue, sqlJobsUpQueue
		args = append(args, l.onlyQ.id)
	}
	return c.query(ctx, l.text(down, up), each, args...)
}

// text is the statement for the direction of the list.
func (l *lister) text(down, up string) string {
	if l.f.OldestFirst {
		return up
	}
	return down
}

func (l *lister) runningOnly(src *source) error {
	seqs := make([]int64, 0, len(l.running))
	for seq := range l.running {
		seqs = append(seqs, seq)
	}
	slices.SortFunc(seqs, l.order)
	for _, seq := range seqs {
		v := l.running[seq]
		if l.queues[v.q.id] == nil || l.order(seq, l.from) <= 0 {
			continue
		}
		if err := l.add(src, &v); errors.Is(err, errStop) {
			return nil
		} else if err != nil {
			return err
		}
	}
	return nil
}

// order compares two job numbers in the order of the list.
func (l *lister) order(a, b int64) int {
	if l.f.OldestFirst {
		return cmp.Compare(a, b)
	}
	return cmp.Compare(b, a)
}

func (l *lister) finished(ctx context.Context, c *conn) error {
	if !l.f.Wants(queue.StateSucceeded, queue.StateDead, queue.StateCancelled, queue.StateExpired) {
		return nil
	}
	text := l.text(sqlFinishedDown, sqlFinishedUp)
	if !l.f.Wants(queue.StateSucceeded, queue.StateCancelled, queue.StateExpired) {
		text = l.text(sqlDeadDown, sqlDeadUp)
	}
	src := &source{work: l.work}
	return c.query(ctx, text, func(row []driver.Value) error {
		if l.f.Queue != "" && l.queues[asInt(row[2])] == nil {
			return l.missed(src, place{asInt(row[1]), birth(asInt(row[5]))}, 1)
		}
		return l.add(src, &l.s.scanFinished(row).jobView)
	}, l.tenant.id, l.from)
}

// add takes a job that matches; it ends the source after one more than a page, or when all others are outside the times.
func (l *lister) add(src *source, v *jobView) error {
	born := v.birth.time()
	if l.f.OldestFirst && !l.f.Before.IsZero() && !born.Before(l.f.Before) || !l.f.OldestFirst && born.Before(l.f.Since) {
		return errStop
	}
	if len(l.f.States) > 0 && !slices.Contains(l.f.States, v.state) {
		return l.missed(src, place{v.seq, v.birth}, 1)
	}
	if l.s.unlike(l.f, v) {
		return l.missed(src, place{v.seq, v.birth}, listDecoded)
	}
	j := preview(l.s.job(v))
	if !l.f.Matches(j) {
		return l.missed(src, place{v.seq, v.birth}, listDecoded)
	}
	l.found = append(l.found, foundJob{v.seq, j})
	if src.taken++; src.taken > l.limit {
		return errStop
	}
	return l.passed(src, place{v.seq, v.birth}, listDecoded)
}

// unlike reports, from what needs no decoding, that a job cannot match.
func (s *Store) unlike(f *queue.JobFilter, v *jobView) bool {
	e := v.st.lastError
	return f.Type != "" && !recordHasType(v.record, f.Type) ||
		f.ErrorFingerprint != "" && (e == nil || queue.ErrorFingerprint(e) != f.ErrorFingerprint) ||
		f.Query != "" && (e == nil || !strings.Contains(e.Message, f.Query)) && !strings.Contains(s.ids.id(v.birth, v.seq), f.Query)
}

// missed books what looking at a job cost that does not match, and leaves the source behind it when the work or the time is spent.
func (l *lister) missed(src *source, at place, units int) error {
	if err := l.passed(src, at, units); err != nil || l.work-src.work < listAlways || l.s.listNow().Before(l.until) {
		return err
	}
	return l.leave(at)
}

// passed books what looking at a job cost, and leaves the source behind it when that is enough.
func (l *lister) passed(src *source, at place, units int) error {
	if src.work -= units; src.work > 0 {
		return nil
	}
	return l.leave(at)
}

// leave ends a source behind a job.
func (l *lister) leave(at place) error {
	if l.stopped == nil || l.order(at.seq, l.stopped.seq) < 0 {
		l.stopped = &at
	}
	return errStop
}

// page merges what the sources gave. What lies behind the place at which one of them was left belongs to the next page.
func (l *lister) page() queue.JobPage {
	slices.SortFunc(l.found, func(a, b foundJob) int { return l.order(a.seq, b.seq) })
	var p queue.JobPage
	for _, j := range l.found {
		if l.stopped != nil && l.order(j.seq, l.stopped.seq) > 0 {
			break
		}
		if len(p.Jobs) == l.limit {
			p.Next = p.Jobs[l.limit-1].ID
			return p
		}
		p.Jobs = append(p.Jobs, j.job)
	}
	if l.stopped != nil {
		p.Next = l.s.ids.id(l.stopped.birth, l.stopped.seq)
	}
	return p
}

package redisq

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/taskhost/taskhost/queue"
)

// Bounds of one page of a list.
const (
	// listScan is how many records a page reads.
	listScan = 4000
	// listReady is how many ready jobs of a tenant are listed by id. Their ids are read whole for that, 28 bytes each.
	listReady = 10_000
	// readMost bounds the records of one plain read.
	readMost = 500
)

// ListJobs implements queue.Jobs. Ended and scheduled jobs are read from their indexes, which are ordered by id. Ready jobs have
// none (it would cost each job more than the rest of its life). Up to listReady of them are sorted for the page; where a
// tenant has more, they come behind all other jobs, line by line, each from its tail, which takes newer jobs first but for those that
// entered their line again (see queue.LimitationListOrder). Jobs that move while the list is read may be missed, be shown as
// they were, or, in that second part, be shown on two pages.
func (s *Store) ListJobs(ctx context.Context, f queue.JobFilter) (queue.JobPage, error) {
	if err := s.enter(ctx); err != nil {
		return queue.JobPage{}, err
	}
	if err := f.Validate(); err != nil {
		return queue.JobPage{}, err
	}
	l := &lister{s: s, f: &f, limit: f.PageLimit(), left: s.listScan}
	if err := l.begin(ctx); err != nil {
		return queue.JobPage{}, err
	}
	if l.at == nil {
		more, err := l.indexed(ctx)
		if err != nil || more {
			return l.page, err
		}
		if !l.sections {
			return l.page, nil
		}
		now, err := s.Now(ctx)
		if err != nil {
			return queue.JobPage{}, err
		}
		l.at = &readyPlace{below: idAt(now.Add(time.Millisecond))}
	}
	err := l.ready(ctx)
	return l.page, err
}

// lister is one ListJobs on its way.
type lister struct {
	s        *Store
	f        *queue.JobFilter
	limit    int
	left     int // records that may still be read
	page     queue.JobPage
	lines    []string // "<queue>:<band>" of the lines with ready jobs, by name
	sections bool     // too many ready jobs to be sorted
	sources  []*source
	last     string      // the id that was taken last
	from     string      // id of the cursor
	at       *readyPlace // of a cursor in the second part
}

// begin looks where the jobs are that the filter may admit.
func (l *lister) begin(ctx context.Context) error {
	f := l.f
	if f.Cursor != "" {
		var ok bool
		if l.at, ok = parsePlace(f.Cursor); !ok {
			if l.from, ok = short(f.Cursor); !ok {
				return queue.BadCursor(f.Cursor)
			}
		}
	}
	var pending []string
	if f.Wants(queue.StateReady) {
		if err := l.findLines(ctx); err != nil {
			return err
		}
		if l.at != nil {
			return nil
		}
		var err error
		if pending, err = l.readyIDs(ctx); err != nil {
			return err
		}
	}
	if l.at != nil {
		return queue.BadCursor(f.Cursor)
	}
	if f.Wants(queue.StateReady, queue.StateRunning) { // behind the lines: a job that was started meanwhile is found here
		v, err := l.s.run(ctx, "running")
		if err != nil {
			return err
		}
		ids, err := asList(v)
		if err != nil {
			return err
		}
		for _, id := range ids {
			pending = append(pending, asString(id))
		}
	}
	from, to := l.bounds()
	for key, states := range map[string][]queue.State{
		keyEnded:   {queue.StateSucceeded, queue.StateCancelled, queue.StateExpired},
		keyDead:    {queue.StateDead},
		keyDelayed: {queue.StateScheduled},
	} {
		if f.Wants(states...) {
			l.sources = append(l.sources, &source{key: l.s.prefix + key + f.Tenant, from: from, to: to})
		}
	}
	l.sources = append(l.sources, &source{ids: l.sorted(pending)})
	return nil
}

// bounds are the ends of the range of ids that the times and the cursor leave, as Redis writes them.
func (l *lister) bounds() (from, to string) {
	from, to = "-", "+"
	if !l.f.Since.IsZero() {
		from = "[" + idAt(l.f.Since)
	}
	if !l.f.Before.IsZero() {
		to = "(" + idAt(l.f.Before)
	}
	if l.from != "" {
		switch cursor := "(" + l.from; {
		case l.f.OldestFirst && (from == "-" || cursor[1:] > from[1:]):
			from = cursor
		case !l.f.OldestFirst && (to == "+" || cursor[1:] < to[1:]):
			to = cursor
		}
	}
	return from, to
}

// idAt is where the ids of jobs begin that are created at t or later.
func idAt(t time.Time) string {
	id, _ := short(queue.FormatID(queue.JobIDPrefix, queue.NewUUID(time.UnixMilli(queue.MillisUp(t)), [10]byte{})))
	return id[:10]
}

// before reports whether id a comes before b in the list.
func (l *lister) before(a, b string) bool {
	if l.f.OldestFirst {
		return a < b
	}
	return a > b
}

// sorted brings ids in the order of the list, each once, without those up to the cursor.
func (l *lister) sorted(ids []string) []string {
	set := make(map[string]bool, len(ids))
	for _, id := range ids {
		if l.from == "" || l.before(l.from, id) {
			set[id] = true
		}
	}
	list := slices.Sorted(maps.Keys(set))
	if !l.f.OldestFirst {
		slices.Reverse(list)
	}
	return list
}

// indexed lists what is ordered by id; more says that the page ends here.
func (l *lister) indexed(ctx context.Context) (more bool, err error) {
	for n := max(fetchMost, min(l.limit+1, readMost)); ; n = readMost {
		ids, err := l.take(ctx, min(n, max(l.left, 1)))
		if err != nil || len(ids) == 0 {
			return false, err
		}
		jobs, err := l.s.peek(ctx, ids)
		if err != nil {
			return false, err
		}
		for _, j := range jobs {
			if j == nil || !l.f.Matches(j) {
				continue
			}
			if len(l.page.Jobs) == l.limit {
				l.page.Next = l.page.Jobs[l.limit-1].ID
				return true, nil
			}
			l.add(j)
		}
		if l.left -= len(ids); l.left <= 0 {
			l.page.Next = queue.JobIDPrefix + "_" + ids[len(ids)-1]
			return true, nil
		}
	}
}

func (l *lister) add(j *queue.Job) {
	j.Payload, j.Attempts = nil, nil
	l.page.Jobs = append(l.page.Jobs, j)
}

// source gives ids in the order of the list, a page at a time: those it holds, then those of its index.
type source struct {
	ids      []string
	key      string // a ZSET by id; empty: nothing more
	from, to string // what is left of it
}

// take returns up to n ids, each once.
func (l *lister) take(ctx context.Context, n int) ([]string, error) {
	var out []string
	for len(out) < n {
		var best *source
		for _, src := range l.sources {
			if len(src.ids) == 0 && src.key != "" {
				if err := l.refill(ctx, src, n); err != nil {
					return nil, err
				}
			}
			if len(src.ids) > 0 && (best == nil || l.before(src.ids[0], best.ids[0])) {
				best = src
			}
		}
		if best == nil {
			return out, nil
		}
		if id := best.ids[0]; id != l.last {
			out = append(out, id)
			l.last = id
		}
		best.ids = best.ids[1:]
	}
	return out, nil
}

func (l *lister) refill(ctx context.Context, src *source, n int) error {
	args := redis.ZRangeArgs{Key: src.key, ByLex: true, Rev: !l.f.OldestFirst, Start: src.from, Stop: src.to, Count: int64(n)}
	if args.Rev { // Redis counts down from the first of the two
		args.Start, args.Stop = args.Stop, args.Start
	}
	ids, err := l.s.client.ZRangeArgs(ctx, args).Result()
	if err != nil {
		return l.s.failure(ctx, "zrange", err)
	}
	src.ids = ids
	switch {
	case len(ids) < n:
		src.key = ""
	case l.f.OldestFirst:
		src.from = "(" + ids[len(ids)-1]
	default:
		src.to = "(" + ids[len(ids)-1]
	}
	return nil
}

// peek reads jobs without payload by their short ids, nil for what does not exist: in plain reads as long as they are ended or
// scheduled, which a record says of itself.
func (s *Store) peek(ctx context.Context, ids []string) ([]*queue.Job, error) {
	jobs := make([]*queue.Job, 0, len(ids))
	var others []int
	for chunk := range slices.Chunk(ids, readMost) {
		keys := make([]string, len(chunk))
		for i, id := range chunk {
			keys[i] = s.prefix + keyMessage + id
		}
		values, err := s.client.MGet(ctx, keys...).Result()
		if err != nil {
			return nil, s.failure(ctx, "mget", err)
		}
		for i, v := range values {
			j := s.decode(chunk[i], []any{v, nil, nil, nil, nil})
			if j != nil && j.State == queue.StateReady {
				others = append(others, len(jobs))
			}
			jobs = append(jobs, j)
		}
	}
	if len(others) == 0 {
		return jobs, nil
	}
	again := make([]string, len(others))
	for i, n := range others {
		again[i] = ids[n]
	}
	live, err := s.fetch(ctx, false, again...)
	if err != nil {
		return nil, err
	}
	if len(live) != len(others) {
		return nil, fmt.Errorf("%w: redis answered for %d jobs with %d", queue.ErrUnavailable, len(others), len(live))
	}
	for i, n := range others {
		jobs[n] = live[i]
	}
	return jobs, nil
}

// bandOf splits "<queue>:<band>".
func bandOf(line string) (queueName, band string) {
	queueName, band, _ = strings.Cut(line, ":")
	return queueName, band
}

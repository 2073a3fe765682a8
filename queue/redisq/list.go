package redisq

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/redis/go-redis/v9"

	"github.com/taskhost/taskhost/queue"
)

// ListJobs implements queue.Jobs. Ended and scheduled jobs are read page by page from their indexes. Ready and running jobs have
// none (it would cost each job more than the rest of its life): the ids in their lines are read whole, 28 bytes each, and
// only the records of the page. Jobs that move while the list is read may be missed or shown as they were.
func (s *Store) ListJobs(ctx context.Context, f queue.JobFilter) (queue.JobPage, error) {
	if err := s.enter(ctx); err != nil {
		return queue.JobPage{}, err
	}
	if err := f.Validate(); err != nil {
		return queue.JobPage{}, err
	}
	limit := f.Limit
	if limit == 0 {
		limit = queue.ListLimitDefault
	}
	ids, err := s.candidates(ctx, &f)
	if err != nil {
		return queue.JobPage{}, err
	}
	var page queue.JobPage
	for {
		next, err := ids.take(ctx, fetchMost)
		if err != nil {
			return queue.JobPage{}, err
		}
		if len(next) == 0 {
			return page, nil
		}
		jobs, err := s.fetch(ctx, false, next...)
		if err != nil {
			return queue.JobPage{}, err
		}
		for _, j := range jobs {
			if j == nil || !matches(j, &f) {
				continue
			}
			if len(page.Jobs) == limit {
				page.Next = page.Jobs[limit-1].ID
				return page, nil
			}
			j.Payload, j.Attempts = nil, nil
			page.Jobs = append(page.Jobs, j)
		}
	}
}

func matches(j *queue.Job, f *queue.JobFilter) bool {
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
		!j.CreatedAt.Before(f.Since)
}

// source gives ids in falling order, a page at a time: those it holds, then those of its index.
type source struct {
	ids    []string
	key    string // a ZSET by id; empty: nothing more
	before string // continue below this id
}

// merged merges sources.
type merged struct {
	s       *Store
	sources []*source
	last    string
}

// take returns up to n ids, each once, falling.
func (m *merged) take(ctx context.Context, n int) ([]string, error) {
	var out []string
	for len(out) < n {
		var best *source
		for _, src := range m.sources {
			if len(src.ids) == 0 && src.key != "" {
				if err := m.refill(ctx, src, n); err != nil {
					return nil, err
				}
			}
			if len(src.ids) > 0 && (best == nil || src.ids[0] > best.ids[0]) {
				best = src
			}
		}
		if best == nil {
			return out, nil
		}
		if id := best.ids[0]; id != m.last {
			out = append(out, id)
			m.last = id
		}
		best.ids = best.ids[1:]
	}
	return out, nil
}

func (m *merged) refill(ctx context.Context, src *source, n int) error {
	from := "+"
	if src.before != "" {
		from = "(" + src.before
	}
	ids, err := m.s.client.ZRangeArgs(ctx, redis.ZRangeArgs{Key: src.key, ByLex: true, Rev: true, Start: from, Stop: "-", Count: int64(n)}).Result()
	if err != nil {
		return m.s.failure(ctx, "zrange", err)
	}
	if src.ids = ids; len(ids) < n {
		src.key = ""
	} else {
		src.before = ids[len(ids)-1]
	}
	return nil
}

// candidates are the ids of the tenant's jobs in the states that f asks for, below its cursor.
func (s *Store) candidates(ctx context.Context, f *queue.JobFilter) (*merged, error) {
	wants := func(states ...queue.State) bool {
		return len(f.States) == 0 || slices.ContainsFunc(states, func(st queue.State) bool { return slices.Contains(f.States, st) })
	}
	cursor, _ := short(f.Cursor)
	m := &merged{s: s}
	for key, states := range map[string][]queue.State{
		keyEnded:   {queue.StateSucceeded, queue.StateCancelled, queue.StateExpired},
		keyDead:    {queue.StateDead},
		keyDelayed: {queue.StateScheduled},
	} {
		if wants(states...) {
			m.sources = append(m.sources, &source{key: s.prefix + key + f.Tenant, before: cursor})
		}
	}
	if !wants(queue.StateReady, queue.StateRunning) {
		return m, nil
	}
	ids, err := s.pending(ctx, f)
	if err != nil {
		return nil, err
	}
	set := make(map[string]bool, len(ids))
	for _, id := range ids {
		if cursor == "" || id < cursor {
			set[id] = true
		}
	}
	list := slices.Sorted(maps.Keys(set))
	slices.Reverse(list)
	m.sources = append(m.sources, &source{ids: list})
	return m, nil
}

// pending returns the ids of the tenant's ready jobs and of all running ones, in no order.
func (s *Store) pending(ctx context.Context, f *queue.JobFilter) ([]string, error) {
	v, err := s.run(ctx, "pending", f.Tenant)
	if err != nil {
		return nil, err
	}
	parts, err := asList(v)
	if err != nil || len(parts) != 2 {
		return nil, fmt.Errorf("%w: redis answered with %d values for the pending jobs", queue.ErrUnavailable, len(parts))
	}
	lines, err := asList(parts[0])
	if err != nil {
		return nil, err
	}
	run, err := asList(parts[1])
	if err != nil {
		return nil, err
	}
	var ids []string
	for _, id := range run {
		ids = append(ids, asString(id))
	}
	const chunk = 10_000
	for _, key := range lines {
		for from := int64(0); ; from += chunk {
			entries, err := s.client.LRange(ctx, asString(key), from, from+chunk-1).Result()
			if err != nil {
				return nil, s.failure(ctx, "lrange", err)
			}
			for _, e := range entries {
				ids = append(ids, e[:min(len(e), queue.IDLen)])
			}
			if len(entries) < chunk {
				break
			}
		}
	}
	return ids, nil
}

package redisq

import (
	"context"
	"fmt"
	"slices"

	"github.com/redis/go-redis/v9"

	"github.com/taskhost/taskhost/queue"
)

// deadChunk bounds the jobs of one script call.
const deadChunk = 100

// CountDead implements queue.DeadLetters. It reads the records of all dead jobs of the tenant, page by page, unless the filter names
// nothing but the tenant.
func (s *Store) CountDead(ctx context.Context, f queue.DeadFilter) (int, error) {
	if err := s.enter(ctx); err != nil {
		return 0, err
	}
	if err := f.Validate(); err != nil {
		return 0, err
	}
	if len(f.IDs) == 0 && f.Queue == "" && f.Type == "" && f.ErrorFingerprint == "" && f.DeadBefore.IsZero() && f.After == "" {
		n, err := s.client.ZCard(ctx, s.prefix+keyDead+f.Tenant).Result()
		if err != nil {
			return 0, s.failure(ctx, "zcard", err)
		}
		return int(n), nil
	}
	n := 0
	err := s.eachDead(ctx, &f, func(*queue.Job) bool {
		n++
		return true
	})
	return n, err
}

// ReplayDead implements queue.DeadLetters.
func (s *Store) ReplayDead(ctx context.Context, f queue.DeadFilter, toQueue string, limit int) (queue.DeadChunk, error) {
	return s.deadChunk(ctx, "replay", f, toQueue, limit)
}

// PurgeDead implements queue.DeadLetters.
func (s *Store) PurgeDead(ctx context.Context, f queue.DeadFilter, limit int) (queue.DeadChunk, error) {
	return s.deadChunk(ctx, "purge", f, "", limit)
}

func (s *Store) deadChunk(ctx context.Context, verb string, f queue.DeadFilter, toQueue string, limit int) (queue.DeadChunk, error) {
	if err := s.enter(ctx); err != nil {
		return queue.DeadChunk{}, err
	}
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
	c := queue.DeadChunk{Last: f.After, Done: true}
	var ids []string
	err = s.eachDead(ctx, &f, func(j *queue.Job) bool {
		if len(ids) == limit {
			c.Done = false
			return false
		}
		ids = append(ids, j.ID)
		return true
	})
	if err != nil {
		return queue.DeadChunk{}, err
	}
	for chunk := range slices.Chunk(ids, deadChunk) {
		args := []any{verb, f.Tenant, toQueue}
		for _, id := range chunk {
			key, _ := short(id)
			args = append(args, key)
		}
		v, err := s.numbered(ctx, "dead", args...)
		if err != nil {
			return c, err
		}
		letters := asString(v)
		if len(letters) != len(chunk) {
			return c, fmt.Errorf("%w: redis answered %d of %d dead jobs", queue.ErrUnavailable, len(letters), len(chunk))
		}
		for _, l := range letters {
			switch l {
			case 'C':
				c.Changed++
			case 'S':
				c.Skipped++
			}
		}
		c.Last = chunk[len(chunk)-1]
	}
	return c, nil
}

// eachDead calls f for the matching dead jobs, by id, until it returns false.
func (s *Store) eachDead(ctx context.Context, f *queue.DeadFilter, visit func(*queue.Job) bool) error {
	after, _ := short(f.After)
	wanted := make([]string, 0, len(f.IDs))
	for _, id := range f.IDs {
		if key, ok := short(id); ok {
			wanted = append(wanted, key)
		}
	}
	slices.Sort(wanted)
	wanted = slices.Compact(wanted)
	for {
		var ids []string
		if len(f.IDs) > 0 {
			n := min(len(wanted), fetchMost)
			ids, wanted = wanted[:n], wanted[n:]
		} else {
			from := "-"
			if after != "" {
				from = "(" + after
			}
			var err error
			ids, err = s.client.ZRangeArgs(ctx, redis.ZRangeArgs{Key: s.prefix + keyDead + f.Tenant, ByLex: true, Start: from, Stop: "+", Count: fetchMost}).Result()
			if err != nil {
				return s.failure(ctx, "zrange", err)
			}
		}
		if len(ids) == 0 {
			return nil
		}
		after = ids[len(ids)-1]
		jobs, err := s.fetch(ctx, false, ids...)
		if err != nil {
			return err
		}
		for _, j := range jobs {
			if j != nil && matchesDead(j, f) && !visit(j) {
				return nil
			}
		}
	}
}

func matchesDead(j *queue.Job, f *queue.DeadFilter) bool {
	return j.State == queue.StateDead &&
		j.Tenant == f.Tenant &&
		(f.Queue == "" || j.Queue == f.Queue) &&
		(f.Type == "" || j.Type == f.Type) &&
		(f.ErrorFingerprint == "" || queue.ErrorFingerprint(j.LastError) == f.ErrorFingerprint) &&
		(f.DeadBefore.IsZero() || j.FinishedAt.Before(f.DeadBefore)) &&
		j.ID > f.After
}

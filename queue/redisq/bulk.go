package redisq

import (
	"context"
	"fmt"

	"github.com/taskhost/taskhost/queue"
)

// Bounds of one call of lua/bulk.lua, which keep it within some milliseconds.
const (
	bulkChunk = 50
	// bulkWalk is how many entries of lines it may walk over: taking a ready job out of the middle of its line does.
	bulkWalk = 200_000
)

// ChangeJobs implements queue.Bulk, in calls of up to 50 jobs; jobs that the earlier ones changed stay changed when a later one
// fails. Taking a ready job out of its line costs what lies before it, so that a cancel of few jobs deep in a line of a million
// takes milliseconds each; in the order of the line it costs nothing.
func (s *Store) ChangeJobs(ctx context.Context, tenant string, c queue.Change, ids []string) ([]queue.ChangeOutcome, error) {
	if err := s.enter(ctx); err != nil {
		return nil, err
	}
	if err := queue.ValidChange(tenant, c, ids); err != nil {
		return nil, err
	}
	outcomes := make([]queue.ChangeOutcome, len(ids))
	var todo []bulkJob
	for i, id := range ids {
		outcomes[i] = queue.ChangeMissing
		if key, ok := short(id); ok {
			todo = append(todo, bulkJob{i, key})
		}
	}
	for len(todo) > 0 {
		chunk := todo[:min(len(todo), bulkChunk)]
		letters, err := s.changeSome(ctx, tenant, c, chunk)
		if err != nil {
			return nil, err
		}
		if letters == "" || len(letters) > len(chunk) {
			return nil, fmt.Errorf("%w: redis answered %d of %d changed jobs", queue.ErrUnavailable, len(letters), len(chunk))
		}
		for k := range len(letters) {
			switch letters[k] {
			case 'C':
				outcomes[chunk[k].index] = queue.Changed
			case 'S':
				outcomes[chunk[k].index] = queue.ChangeSkipped
			}
		}
		todo = todo[len(letters):]
	}
	return outcomes, nil
}

// bulkJob is a job to be changed, and where its outcome goes.
type bulkJob struct {
	index int
	key   string
}

func (s *Store) changeSome(ctx context.Context, tenant string, c queue.Change, chunk []bulkJob) (string, error) {
	args := make([]any, 0, 4+2*len(chunk))
	args = append(args, string(c.Action), tenant, c.ToQueue, bulkWalk)
	var jobs []*queue.Job
	if c.Action == queue.ChangeErase {
		keys := make([]string, len(chunk))
		for i, j := range chunk {
			keys[i] = j.key
		}
		var err error
		if jobs, err = s.peek(ctx, keys); err != nil {
			return "", err
		}
	}
	for i, j := range chunk {
		args = append(args, j.key)
		if c.Action == queue.ChangeErase {
			args = append(args, withoutPayload(jobs[i]))
		}
	}
	v, err := s.numbered(ctx, "bulk", args...)
	return asString(v), err
}

// withoutPayload is the rest of a job's record as an erase leaves it.
func withoutPayload(j *queue.Job) []byte {
	if j == nil {
		return nil
	}
	return appendRest(nil, &queue.JobSpec{Type: j.Type, Headers: j.Headers, Labels: j.Labels, Timeout: j.Timeout, Backoff: j.Backoff, Unique: j.Unique,
		RetriedFrom: j.RetriedFrom})
}

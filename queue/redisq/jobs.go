package redisq

import (
	"context"
	"errors"
	"fmt"

	"github.com/taskhost/taskhost/queue"
)

// fetch reads jobs by their short ids; nil for what does not exist. whole: payload, result and checkpoint too. A record that
// cannot be read is logged and counts as not there.
func (s *Store) fetch(ctx context.Context, whole bool, ids ...string) ([]*queue.Job, error) {
	jobs := make([]*queue.Job, 0, len(ids))
	for len(ids) > 0 {
		n := min(len(ids), fetchMost)
		args := []any{0}
		if whole {
			args[0] = 1
		}
		for _, id := range ids[:n] {
			args = append(args, id)
		}
		v, err := s.run(ctx, "jobs", args...)
		if err != nil {
			return nil, err
		}
		list, err := asList(v)
		if err != nil || len(list) != 5*n {
			return nil, fmt.Errorf("%w: redis answered for %d jobs with %d values", queue.ErrUnavailable, n, len(list))
		}
		for k, id := range ids[:n] {
			jobs = append(jobs, s.decode(id, list[5*k:5*k+5]))
		}
		ids = ids[n:]
	}
	return jobs, nil
}

// fetchMost bounds the jobs of one read.
const fetchMost = 100

// decode makes a job of the five values that lua/jobs.lua returns.
func (s *Store) decode(id string, v []any) *queue.Job {
	text, ok := v[0].(string)
	if !ok {
		return nil
	}
	j, _, err := decodeRecord(id, text)
	if err == nil && j.State == queue.StateReady {
		if value, runs := v[1].(string); runs {
			err = running(j, value, asString(v[2]))
		}
	}
	if err != nil {
		s.o.Logger.Error("a job's record cannot be read", "id", id, "error", err)
		return nil
	}
	if large, ok := v[4].([]any); ok && len(large) == 3 {
		for i, to := range []*[]byte{&j.Payload, &j.Result, &j.Checkpoint} {
			if t, ok := large[i].(string); ok {
				*to = []byte(t)
			}
		}
	}
	return j
}

func (s *Store) get(ctx context.Context, tenant, id string, whole bool) (*queue.Job, error) {
	key, ok := short(id)
	if !ok {
		return nil, queue.ErrNotFound
	}
	jobs, err := s.fetch(ctx, whole, key)
	if err != nil {
		return nil, err
	}
	if jobs[0] == nil || jobs[0].Tenant != tenant {
		return nil, queue.ErrNotFound
	}
	return jobs[0], nil
}

// GetJob implements queue.Jobs.
func (s *Store) GetJob(ctx context.Context, tenant, id string) (*queue.Job, error) {
	if err := s.enter(ctx); err != nil {
		return nil, err
	}
	return s.get(ctx, tenant, id, true)
}

// numbered runs a script that changes something: in a lane, so that it can be sent again.
func (s *Store) numbered(ctx context.Context, name string, args ...any) (any, error) {
	l := s.lanes.take()
	defer s.lanes.give(l)
	return s.run(ctx, name, append([]any{l.name, l.number}, args...)...)
}

// CancelJob implements queue.Jobs.
func (s *Store) CancelJob(ctx context.Context, tenant, id string) (*queue.Job, error) {
	if err := s.enter(ctx); err != nil {
		return nil, err
	}
	before, err := s.get(ctx, tenant, id, true)
	if err != nil {
		return nil, err
	}
	key, _ := short(id)
	v, err := s.numbered(ctx, "cancel", tenant, key)
	if err != nil {
		return nil, err
	}
	switch letter := asString(v); letter {
	case "N":
		return nil, queue.ErrNotFound
	case "K", "X":
	default:
		return nil, &queue.StateError{JobID: id, State: stateOfLetter[letter], Op: "cancel"}
	}
	j, err := s.get(ctx, tenant, id, true)
	if err == nil {
		return j, nil
	}
	if errors.Is(err, queue.ErrNotFound) { // cancelled jobs are not kept
		now, err := s.Now(ctx)
		if err != nil {
			return nil, err
		}
		before.State, before.Reason, before.FinishedAt = queue.StateCancelled, queue.ReasonNone, now
		before.NextRunAt, before.Checkpoint = millis(0), nil
		return before, nil
	}
	return nil, err
}

// DeleteJob implements queue.Jobs.
func (s *Store) DeleteJob(ctx context.Context, tenant, id string) error {
	if err := s.enter(ctx); err != nil {
		return err
	}
	key, ok := short(id)
	if !ok {
		return queue.ErrNotFound
	}
	v, err := s.numbered(ctx, "delete", tenant, key)
	if err != nil {
		return err
	}
	switch asString(v) {
	case "N":
		return queue.ErrNotFound
	case "r":
		return &queue.StateError{JobID: id, State: queue.StateRunning, Op: "delete"}
	}
	return nil
}

package operations

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/taskhost/taskhost/host/outage"
	"github.com/taskhost/taskhost/queue"
)

// run works on one operation until it is over or the service stops.
func (s *Service) run(tenant, id string, resumed bool) {
	select {
	case s.slots <- struct{}{}:
		defer func() { <-s.slots }()
	case <-s.ctx.Done():
		return
	}
	gate := outage.Gate{Log: s.o.Log, What: "work on " + id, Random: s.o.Random}
	for {
		err := s.attempt(tenant, id, resumed, &gate)
		switch {
		case s.ctx.Err() != nil, errors.Is(err, queue.ErrClosed):
			return
		case err == nil, errors.Is(err, errFinished), errors.Is(err, queue.ErrNotFound):
			return
		}
		resumed = true // a chunk may have taken effect whose progress was not stored
		if outage.Sleep(s.ctx, gate.Failed(err)) != nil {
			return
		}
	}
}

// errHeld: another host works on the operation.
var errHeld = errors.New("another host works on it")

func (s *Service) attempt(tenant, id string, resumed bool, gate *outage.Gate) error {
	release, err := s.hold(id)
	if errors.Is(err, errHeld) {
		if err := outage.Sleep(s.ctx, s.o.LeaseTTL); err != nil {
			return err
		}
		if r, err := s.get(s.ctx, tenant, id); err != nil || r.State != StateRunning {
			return errors.Join(err, errFinished)
		}
		return s.attempt(tenant, id, true, gate)
	}
	if err != nil {
		return err
	}
	defer release()
	r, err := s.get(s.ctx, tenant, id)
	if err != nil {
		return err
	}
	if r.State != StateRunning {
		return errFinished
	}
	if resumed {
		if err := s.recount(r); err != nil {
			return err
		}
	}
	for renewed := time.Now(); ; {
		if s.o.Leaser != nil && time.Since(renewed) > s.o.LeaseTTL/3 {
			if _, err := s.hold(id); err != nil {
				return err
			}
			renewed = time.Now()
		}
		over, err := s.step(r)
		if err != nil || over {
			return err
		}
		gate.OK()
	}
}

// hold takes or renews the lease of an operation.
func (s *Service) hold(id string) (release func(), err error) {
	if s.o.Leaser == nil {
		return func() {}, nil
	}
	name := "operation/" + id
	held, err := s.o.Leaser.AcquireLease(s.ctx, name, s.o.Holder, s.o.LeaseTTL)
	if err != nil {
		return nil, err
	}
	if !held {
		return nil, errHeld
	}
	return func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		if err := s.o.Leaser.ReleaseLease(ctx, name, s.o.Holder); err != nil && !errors.Is(err, queue.ErrClosed) {
			s.o.Log.Warn("lease of an operation not handed back", "operation", id, "error", err)
		}
	}, nil
}

// recount makes up for a chunk that took effect and whose progress was not stored: what no longer matches was done.
func (s *Service) recount(r *record) error {
	if r.Jobs != nil { // they also change by themselves, so it cannot be told what was done
		return nil
	}
	left, err := s.o.Dead.CountDead(s.ctx, r.deadFilter())
	if err != nil {
		return err
	}
	r.Done = max(r.Done, r.Matched-r.Skipped-left)
	return nil
}

// step does one chunk and stores the progress; over says that it was the last.
func (s *Service) step(r *record) (over bool, err error) {
	chunk, err := s.act(r)
	if err != nil {
		return s.refused(r, err)
	}
	r.Done += chunk.Changed
	r.Skipped += chunk.Skipped
	r.After = chunk.Last
	if chunk.Done {
		now, err := s.o.Now(s.ctx)
		if err != nil {
			return false, err
		}
		r.finish(StateSucceeded, now)
	}
	if err := s.put(s.ctx, r); err != nil {
		if !errors.Is(err, queue.ErrConflict) {
			return false, err
		}
		return true, s.cancelled(r, chunk)
	}
	if chunk.Done {
		s.o.Log.Info("operation succeeded", "operation", r.ID, "tenant", r.Tenant, "action", string(r.Action), "done", r.Done, "skipped", r.Skipped)
	}
	return chunk.Done, nil
}

func (s *Service) act(r *record) (queue.DeadChunk, error) {
	if r.Jobs != nil {
		return s.actOnJobs(r)
	}
	switch r.Action {
	case ActionReplay:
		return s.o.Dead.ReplayDead(s.ctx, r.deadFilter(), r.ToQueue, s.o.Chunk)
	case ActionPurge:
		return s.o.Dead.PurgeDead(s.ctx, r.deadFilter(), s.o.Chunk)
	case ActionCancel, ActionRetry, ActionErase: // of jobs in any state only
	}
	return queue.DeadChunk{}, fmt.Errorf("%w: action %q", queue.ErrInvalid, string(r.Action))
}

// refused ends an operation whose chunk the store will never take.
func (s *Service) refused(r *record, cause error) (over bool, err error) {
	if !errors.Is(cause, queue.ErrInvalid) {
		return false, cause
	}
	now, err := s.o.Now(s.ctx)
	if err != nil {
		return false, err
	}
	r.Error, r.Failed = cause.Error(), max(r.Matched-r.Done-r.Skipped, 0)
	r.finish(StateFailed, now)
	s.o.Log.Error("operation failed", "operation", r.ID, "tenant", r.Tenant, "action", string(r.Action), "error", cause)
	return true, s.put(s.ctx, r)
}

// cancelled books the last chunk of an operation that was cancelled while that was under way.
func (s *Service) cancelled(r *record, chunk queue.DeadChunk) error {
	now, err := s.get(s.ctx, r.Tenant, r.ID)
	if err != nil {
		return err
	}
	if now.State != StateCancelled {
		return fmt.Errorf("operation %s: %w: another host works on it", r.ID, queue.ErrConflict)
	}
	now.Done, now.Skipped, now.After = r.Done, r.Skipped, chunk.Last
	return s.put(s.ctx, now)
}

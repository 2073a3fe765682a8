package memq

import (
	"context"
	"time"

	"github.com/taskhost/taskhost/queue"
)

// Settle implements queue.Queue.
func (s *Store) Settle(ctx context.Context, settlements []queue.Settlement) ([]queue.SettleOutcome, error) {
	if err := s.lock(ctx); err != nil {
		return nil, err
	}
	defer s.mu.Unlock()
	now := s.now()
	outcomes := make([]queue.SettleOutcome, len(settlements))
	var front []*record
	var measured []measurement
	for i := range settlements {
		st := &settlements[i]
		if err := st.Validate(s.limits); err != nil {
			outcomes[i] = queue.SettleOutcome{Status: queue.SettleRejected, Err: err}
			continue
		}
		r := s.held(st.Ref)
		if r == nil {
			outcomes[i] = queue.SettleOutcome{Status: queue.SettleLeaseLost}
			continue
		}
		measured = append(measured, measurement{r.charge, st.Duration.Milliseconds()})
		if s.settle(r, st, now) {
			front = append(front, r)
		}
		outcomes[i] = queue.SettleOutcome{Status: queue.SettleOK, State: r.job.State}
	}
	s.toFront(front)
	s.correct(measured)
	return outcomes, nil
}

// settle ends one reservation. It reports whether the job, ready now, goes to the front of its line: a block of such jobs
// goes there together.
func (s *Store) settle(r *record, st *queue.Settlement, now time.Time) (front bool) {
	j := &r.job
	r.charge = charge{}
	cancelled := j.CancelRequested && st.Verb != queue.VerbAck && st.Verb != queue.VerbDead
	note := queue.Attempt{
		Run:             j.Run,
		Attempt:         j.Attempt,
		StartedAt:       j.StartedAt,
		DurationMS:      st.Duration.Milliseconds(),
		Fuel:            st.Fuel,
		PeakMemoryBytes: st.PeakMemoryBytes,
		Worker:          j.Worker,
		Handler:         st.Handler,
	}
	switch st.Verb {
	case queue.VerbAck:
		note.Outcome = queue.AttemptSucceeded
	case queue.VerbNack, queue.VerbDead:
		note.Outcome = queue.AttemptFailed
		note.Error = copyError(st.Error)
	case queue.VerbDefer, queue.VerbYield:
		note.Outcome = queue.AttemptDeferred
		j.Attempt--
	case queue.VerbRelease:
		note.Outcome = queue.AttemptInterrupted
		j.Attempt--
		j.Interruptions++
	case queue.VerbCrash:
		note.Outcome = queue.AttemptCrashed
		note.Error = copyError(st.Error)
		if note.Error == nil {
			note.Error = queue.LeaseRanOut()
		}
		j.Attempt--
		j.Crashes++
	}
	if cancelled {
		note.Outcome = queue.AttemptCancelled
	} else if note.Error != nil {
		j.LastError = copyError(note.Error)
	}
	j.Attempts = queue.AppendAttempt(j.Attempts, note)
	if st.Handler != (queue.Handler{}) {
		j.Handler = st.Handler
	}
	j.Worker, j.Token, j.LeaseUntil, j.CancelRequested = "", "", time.Time{}, false

	switch {
	case cancelled:
		s.finish(r, queue.StateCancelled, now)
	case st.Verb == queue.VerbAck:
		j.Result, j.ResultBytes = st.Result, len(st.Result)
		s.finish(r, queue.StateSucceeded, now)
	case st.Verb == queue.VerbDead:
		s.finish(r, queue.StateDead, now)
	case st.Verb == queue.VerbNack && j.Attempt >= queue.AttemptBudget(j.MaxAttempts):
		s.finish(r, queue.StateDead, now)
	case st.Verb == queue.VerbNack:
		s.schedule(r, queue.ReasonRetry, st.Delay, now)
	case st.Verb == queue.VerbDefer:
		s.schedule(r, queue.ReasonDefer, st.Delay, now)
	case st.Verb == queue.VerbYield:
		s.toTail(r)
	case st.Verb == queue.VerbCrash && j.Crashes >= s.scheduling.CrashBudget():
		j.LastError = queue.CrashBudgetSpent(j.Crashes, note.Error)
		s.finish(r, queue.StateDead, now)
	default: // release, and a crash within the budget
		s.makeReady(r)
		return true
	}
	return false
}

// Extend implements queue.Queue.
func (s *Store) Extend(ctx context.Context, refs []queue.Ref, lease time.Duration) ([]queue.ExtendOutcome, error) {
	if err := s.lock(ctx); err != nil {
		return nil, err
	}
	defer s.mu.Unlock()
	if err := queue.ValidLease(lease); err != nil {
		return nil, err
	}
	until := queue.After(s.now(), lease)
	outcomes := make([]queue.ExtendOutcome, len(refs))
	for i, ref := range refs {
		r := s.held(ref)
		if r == nil {
			outcomes[i] = queue.ExtendOutcome{Status: queue.ExtendLost}
			continue
		}
		r.job.LeaseUntil = until
		outcomes[i] = queue.ExtendOutcome{Status: queue.ExtendOK, Until: until}
		if r.job.CancelRequested {
			outcomes[i].Status = queue.ExtendCancelRequested
		}
		s.broadcast()
	}
	return outcomes, nil
}

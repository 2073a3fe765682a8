package queuetest

import (
	"errors"
	"time"

	"github.com/taskhost/taskhost/queue"
)

func cancelCases() []testCase {
	return []testCase{
		{name: "a waiting job ends at once", run: cancelWaiting},
		{name: "a running job is marked and its holder told", run: cancelRunning},
		{name: "how each verb ends a job with a cancel request", run: cancelVerbs},
		{name: "a reaped job with a cancel request is cancelled", run: cancelReaped},
		{name: "cancel is idempotent, other ends are conflicts", run: cancelTerminal},
	}
}

func (f *fixture) cancel(id string) *queue.Job {
	f.Helper()
	j, err := f.jobs.CancelJob(f.ctx, "acme", id)
	if err != nil {
		f.Fatalf("CancelJob: %v", err)
	}
	return j
}

func cancelWaiting(f *fixture) {
	ready, later := f.put("q", "ready"), f.put("q", "later", delay(time.Minute))
	for _, id := range []string{ready, later} {
		if j := f.cancel(id); j.State != queue.StateCancelled || j.CancelRequested || j.ID != id {
			f.Errorf("CancelJob = %+v, want cancelled", j)
		}
		got := f.wantState(id, queue.StateCancelled)
		if got.FinishedAt.IsZero() || got.Reason != queue.ReasonNone || !got.NextRunAt.IsZero() || len(got.Attempts) != 0 {
			f.Errorf("a cancelled job = %+v", got)
		}
	}
	f.pass(time.Hour)
	f.wantOrder("")
}

func cancelRunning(f *fixture) {
	id := f.put("q", "a")
	j := f.takeOne()
	if got := f.cancel(id); got.State != queue.StateRunning || !got.CancelRequested || got.Token != "" {
		f.Errorf("CancelJob of a running job = %+v, want running with the request, and no token", got)
	}
	if o := f.extend(j, lease); o.Status != queue.ExtendCancelRequested || o.Until.IsZero() {
		f.Errorf("Extend = %+v, want cancel_requested with a renewed lease", o)
	}
	f.cancel(id) // again: still marked
	s := settlement(j, queue.VerbRelease)
	f.settle(s, queue.StateCancelled)
	got := f.wantState(id, queue.StateCancelled)
	if got.CancelRequested || got.FinishedAt.IsZero() || len(got.Attempts) != 1 || got.Attempts[0].Outcome != queue.AttemptCancelled {
		f.Errorf("the cancelled job = %+v, want its attempt recorded as cancelled", got)
	}
	f.wantOrder("")
}

func cancelVerbs(f *fixture) {
	f.configure(queue.Scheduling{MaxCrashes: 5})
	cases := []struct {
		verb                            queue.Verb
		state                           queue.State
		attempt, crashes, interruptions int
		outcome                         queue.AttemptOutcome
	}{
		{queue.VerbAck, queue.StateSucceeded, 1, 0, 0, queue.AttemptSucceeded},
		{queue.VerbDead, queue.StateDead, 1, 0, 0, queue.AttemptFailed},
		{queue.VerbNack, queue.StateCancelled, 1, 0, 0, queue.AttemptCancelled},
		{queue.VerbDefer, queue.StateCancelled, 0, 0, 0, queue.AttemptCancelled},
		{queue.VerbYield, queue.StateCancelled, 0, 0, 0, queue.AttemptCancelled},
		{queue.VerbRelease, queue.StateCancelled, 0, 0, 1, queue.AttemptCancelled},
		{queue.VerbCrash, queue.StateCancelled, 0, 1, 0, queue.AttemptCancelled},
	}
	for _, c := range cases {
		id := f.put("q", "a")
		j := f.takeOne()
		f.cancel(id)
		s := settlement(j, c.verb)
		if c.verb == queue.VerbNack || c.verb == queue.VerbDefer {
			s.Delay = time.Minute
		}
		f.settle(s, c.state)
		got := f.get(id)
		if got.Attempt != c.attempt || got.Crashes != c.crashes || got.Interruptions != c.interruptions || got.CancelRequested ||
			len(got.Attempts) != 1 || got.Attempts[0].Outcome != c.outcome {
			f.Errorf("after %s: %+v, want attempt %d, crashes %d, interruptions %d, outcome %s", c.verb, got, c.attempt, c.crashes, c.interruptions, c.outcome)
		}
		if (got.LastError != nil) != (c.verb == queue.VerbDead) {
			f.Errorf("after %s the last error is %+v: a cancelled attempt is no failed one", c.verb, got.LastError)
		}
	}
	f.pass(time.Hour)
	f.wantOrder("")
}

func cancelReaped(f *fixture) {
	id := f.put("q", "a")
	f.takeOne()
	f.cancel(id)
	if r := f.pass(lease); r.Reaped != 1 {
		f.Errorf("reaped %d, want 1", r.Reaped)
	}
	f.wantState(id, queue.StateCancelled)
	f.wantOrder("")
}

func cancelTerminal(f *fixture) {
	cancelled := f.put("q", "a")
	f.cancel(cancelled)
	if j := f.cancel(cancelled); j.State != queue.StateCancelled {
		f.Errorf("the second cancel = %+v", j)
	}
	done, dead := f.put("q", "done"), f.put("q", "dead")
	f.ack(f.takeOne())
	f.bury(dead)
	for id, want := range map[string]queue.State{done: queue.StateSucceeded, dead: queue.StateDead} {
		var state *queue.StateError
		if _, err := f.jobs.CancelJob(f.ctx, "acme", id); !errors.As(err, &state) || !errors.Is(err, queue.ErrConflict) || state.State != want || state.Op != "cancel" {
			f.Errorf("CancelJob of a %s job = %v, want a StateError", want, err)
		}
		f.wantState(id, want)
	}
}

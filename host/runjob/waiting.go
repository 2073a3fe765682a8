package runjob

import (
	"fmt"
	"time"

	"github.com/taskhost/taskhost/abi"
	"github.com/taskhost/taskhost/handlers"
	"github.com/taskhost/taskhost/queue"
)

// A job that cannot be started here is deferred: it counts no attempt, goes to the tail, and another host may take it. What
// remembers how long that has been going on is the job's own history: every defer leaves an attempt record with its start in
// store time, and one without a handler says that none was found. So the memory is shared by all hosts, survives them, and
// ends by itself when a handler runs.

// waitForHandler defers a job of whose type no version is live here, until it has waited HandlerWait since it was first found
// so; then it is dead.
func (a *Attempt) waitForHandler() queue.Settlement {
	a.r.counts.noHandler.Add(1)
	waited := waitedForHandler(a.job)
	if waited >= a.r.o.HandlerWait {
		return queue.Settlement{Verb: queue.VerbDead, Error: &queue.JobError{Kind: abi.KindNoHandler,
			Message: fmt.Sprintf("no handler for type %s", a.job.Type)}}
	}
	return queue.Settlement{Verb: queue.VerbDefer, Delay: handlerPause(waited, a.r.o.HandlerWait)}
}

// waitedForHandler is the time from the first of the unbroken row of records without a handler at the end of the job's
// history to now, in store time.
func waitedForHandler(j *queue.Job) time.Duration {
	first := j.StartedAt
	for i := len(j.Attempts) - 1; i >= 0; i-- {
		rec := &j.Attempts[i]
		if rec.Run != j.Run || rec.Outcome != queue.AttemptDeferred || rec.Handler != (queue.Handler{}) {
			break
		}
		first = rec.StartedAt
	}
	return j.StartedAt.Sub(first)
}

// handlerPause is the time to the next look: a quarter of what it waited so far, within [1 s, the larger of 5 s and 1/50 of
// wait], and never beyond the end of the wait. The bounds keep the row of records below queue.AttemptsKept, so that its first one
// is not dropped.
func handlerPause(waited, wait time.Duration) time.Duration {
	pause := min(max(waited/4, time.Second), max(5*time.Second, wait/50))
	return min(pause, max(wait-waited, time.Millisecond))
}

// waitForRuntime defers a job whose handler could not be started: its artifact is not in place yet, its runner or plugin does
// not come up. It waits as long as that takes, with a growing pause.
func (a *Attempt) waitForRuntime(v *handlers.Version, why *handlers.Error) queue.Settlement {
	a.r.counts.unavailable.Add(1)
	reason := "this host has no such runtime"
	if why != nil {
		reason = why.Message
	}
	delay := unavailableBackoff().Delay(failedStarts(a.job)+1, a.r.o.Random())
	a.r.o.Log.Warn("handler could not be started; the job waits", "job", a.job.ID, "tenant", a.job.Tenant, "type", a.job.Type,
		"runtime", v.Runtime, "version", v.Number, "reason", reason, "next_in", delay.Round(time.Millisecond))
	return queue.Settlement{Verb: queue.VerbDefer, Delay: delay, Handler: queue.Handler{Runtime: v.Runtime, Version: v.Number}}
}

// waitForRelease defers a job whose version is quarantined, for as long as that lasts. The pauses are those of a handler that cannot be
// started but begin longer: a quarantine lasts until somebody ends it.
func (a *Attempt) waitForRelease(v *handlers.Version) queue.Settlement {
	a.r.counts.quarantined.Add(1)
	b := queue.Backoff{Base: 2 * time.Second, Max: 15 * time.Second}
	return queue.Settlement{Verb: queue.VerbDefer, Delay: b.Delay(failedStarts(a.job)+1, a.r.o.Random()),
		Handler: queue.Handler{Runtime: v.Runtime, Version: v.Number}}
}

// waitForMemory defers a job that found no memory, so that it does not keep a slot from jobs that need less.
func (a *Attempt) waitForMemory(v *handlers.Version, why error) queue.Settlement {
	if a.Context().Err() != nil {
		return a.translate(handlers.Outcome{Kind: handlers.OutcomeInterrupted})
	}
	a.r.counts.noMemory.Add(1)
	a.r.o.Log.Debug("no memory for the job; it waits", "job", a.job.ID, "tenant", a.job.Tenant, "type", a.job.Type, "reason", why)
	b := queue.Backoff{Base: time.Second, Max: 5 * time.Second}
	return queue.Settlement{Verb: queue.VerbDefer, Delay: b.Delay(failedStarts(a.job)+1, a.r.o.Random()),
		Handler: queue.Handler{Runtime: v.Runtime, Version: v.Number}}
}

func unavailableBackoff() queue.Backoff {
	return queue.Backoff{Base: 500 * time.Millisecond, Max: 30 * time.Second}
}

// failedStarts counts the unbroken row of starts that failed at the end of the job's history: deferred, by a handler, after
// no time at all.
func failedStarts(j *queue.Job) int {
	n := 0
	for i := len(j.Attempts) - 1; i >= 0; i-- {
		rec := &j.Attempts[i]
		if rec.Run != j.Run || rec.Outcome != queue.AttemptDeferred || rec.Handler == (queue.Handler{}) || rec.DurationMS != 0 {
			break
		}
		n++
	}
	return n
}

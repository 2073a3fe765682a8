package runjob

import (
	"context"
	"errors"
	"fmt"
	"time"
	"unicode/utf8"

	"github.com/taskhost/taskhost/abi"
	"github.com/taskhost/taskhost/handlers"
	"github.com/taskhost/taskhost/host/lease"
	"github.com/taskhost/taskhost/queue"
)

// MessageMax is how many bytes of an error message are kept with a job.
const MessageMax = 4 << 10

// translate says how an attempt with this outcome is settled. A lease that was lost is not settled at all, and a cancel needs
// nothing here: the store ends a job as cancelled whose cancel was requested and that comes back by any verb but ack and dead.
func (a *Attempt) translate(out handlers.Outcome) queue.Settlement {
	s := queue.Settlement{Duration: out.Duration, Fuel: out.Fuel, PeakMemoryBytes: out.PeakMemory, Handler: a.handler()}
	c := &a.r.counts
	switch out.Kind {
	case handlers.OutcomeSucceeded:
		if limit := a.inv.Limits.ResultBytes; len(out.Result) > limit {
			c.permanent.Add(1)
			s.Verb, s.Error = queue.VerbDead, resultTooLarge(len(out.Result), limit)
			break
		}
		c.succeeded.Add(1)
		s.Verb, s.Result = queue.VerbAck, out.Result
	case handlers.OutcomeRetry:
		c.retried.Add(1)
		s.Verb, s.Error = queue.VerbNack, jobError(out.Error, abi.KindRetryable, true)
		s.Delay = a.retryDelay(out.RetryAfter)
	case handlers.OutcomePermanent:
		c.permanent.Add(1)
		s.Verb, s.Error = queue.VerbDead, jobError(out.Error, abi.KindPermanent, false)
	case handlers.OutcomeDefer:
		c.deferred.Add(1)
		s.Verb = queue.VerbYield
		if out.RetryAfter > 0 {
			s.Verb, s.Delay = queue.VerbDefer, min(out.RetryAfter, queue.DelayMax)
		}
	case handlers.OutcomeInterrupted:
		a.interrupted(&s)
	case handlers.OutcomeCrashed:
		c.crashed.Add(1)
		s.Verb, s.Error = queue.VerbCrash, jobError(out.Error, abi.KindCrash, true)
	case handlers.OutcomeUnavailable:
		return a.waitForRuntime(a.inv.Version, out.Error)
	default:
		c.crashed.Add(1)
		a.r.o.Log.Error("a runtime gave an outcome that does not exist", "outcome", string(out.Kind), "job", a.job.ID)
		s.Verb = queue.VerbCrash
		s.Error = &queue.JobError{Kind: abi.KindCrash, Message: fmt.Sprintf("the runtime ended with the unknown outcome %q", string(out.Kind)), Retryable: true}
	}
	return s
}

// interrupted settles an attempt that was stopped: given back to the front, unless it was stopped for running past its
// deadline.
func (a *Attempt) interrupted(s *queue.Settlement) {
	if errors.Is(context.Cause(a.Context()), lease.ErrOverdue) {
		a.r.counts.retried.Add(1)
		s.Verb, s.Delay = queue.VerbNack, a.retryDelay(-1)
		s.Error = &queue.JobError{Kind: abi.KindDeadline, Retryable: true,
			Message: fmt.Sprintf("deadline exceeded: stopped by the host after %s; the timeout is %s", s.Duration.Round(time.Millisecond), a.inv.Limits.Timeout)}
		return
	}
	a.r.counts.interrupted.Add(1)
	s.Verb = queue.VerbRelease
	if a.Context().Err() == nil && a.job.Interruptions >= interruptionsFree {
		// Nobody here stopped it, and it was not the first time: whatever does so must not make the job spin.
		s.Verb, s.Delay = queue.VerbDefer, interruptionPause
	}
}

// A job that is interrupted by others more than interruptionsFree times pauses before it runs again.
const (
	interruptionsFree = 3
	interruptionPause = time.Second
)

// retryDelay is how long the job waits for its next attempt: as long as the handler asked for, else by the job's backoff with
// the host's in the fields it leaves open.
func (a *Attempt) retryDelay(asked time.Duration) time.Duration {
	if asked >= 0 {
		return min(asked, queue.DelayMax)
	}
	b := a.job.Backoff
	if b.Base <= 0 {
		b.Base = a.r.o.Backoff.Base
	}
	if b.Max <= 0 {
		b.Max = a.r.o.Backoff.Max
	}
	if b.Jitter == "" {
		b.Jitter = a.r.o.Backoff.Jitter
	}
	return min(b.Delay(a.job.Attempt, a.r.o.Random()), queue.DelayMax)
}

func resultTooLarge(got, limit int) *queue.JobError {
	err := &queue.LimitError{Field: "result", Limit: "result", Max: int64(limit), Got: int64(got), Unit: "bytes"}
	return &queue.JobError{Kind: abi.KindResultSize, Message: err.Error()}
}

// refusedError is why a job is dead whose settlement the store refused.
func refusedError(err error) *queue.JobError {
	kind := abi.KindPermanent
	if limit, ok := errors.AsType[*queue.LimitError](err); ok && limit.Field == "result" {
		kind = abi.KindResultSize
	}
	return &queue.JobError{Kind: kind, Message: clip("the store refused the end of the attempt: " + err.Error())}
}

// jobError is the stored form of a failure.
func jobError(e *handlers.Error, kind string, retryable bool) *queue.JobError {
	j := &queue.JobError{Kind: kind, Retryable: retryable}
	if e == nil {
		j.Message = "no reason was given"
		return j
	}
	if e.Kind != "" {
		j.Kind = e.Kind
	}
	j.Message = clip(e.Message)
	return j
}

// clip cuts a message to MessageMax bytes, at a character.
func clip(s string) string {
	if len(s) <= MessageMax {
		return s
	}
	end := MessageMax
	for end > 0 && !utf8.RuneStart(s[end]) {
		end--
	}
	return fmt.Sprintf("%s… (%d bytes in all)", s[:end], len(s))
}

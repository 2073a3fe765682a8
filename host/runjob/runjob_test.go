package runjob

import (
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/taskhost/taskhost/handlers"
	"github.com/taskhost/taskhost/host/lease"
	"github.com/taskhost/taskhost/queue"
)

var (
	errX      = &handlers.Error{Kind: "trap", Message: "unreachable"}
	version   = &handlers.Version{Runtime: "wasm", Number: 3}
	ranOnWasm = queue.Handler{Runtime: "wasm", Version: 3}
)

func attempt(t *testing.T) *Attempt {
	r := New(Options{Limits: handlers.Limits{ResultBytes: 10, Timeout: time.Minute}, Backoff: queue.Backoff{Base: 2 * time.Second, Max: time.Minute, Jitter: queue.JitterFull},
		HandlerWait: 5 * time.Minute, Log: slog.New(slog.NewTextHandler(t.Output(), nil)), Random: func() float64 { return 0 }})
	a := &Attempt{r: r, job: &queue.Job{ID: "job_1", Type: "work", Run: 1, Attempt: 2, MaxAttempts: 5}}
	a.Init(queue.Ref{ID: "job_1", Token: "t"}, time.Now())
	a.plan(version, time.Now())
	return a
}

func TestTranslate(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		out   handlers.Outcome
		cause error // of the context
		want  queue.Settlement
		err   queue.JobError
	}{
		"success":              {out: handlers.Outcome{Kind: handlers.OutcomeSucceeded, Result: []byte("ok")}, want: queue.Settlement{Verb: queue.VerbAck, Result: []byte("ok")}},
		"success, drained":     {out: handlers.Outcome{Kind: handlers.OutcomeSucceeded}, cause: handlers.ErrDraining, want: queue.Settlement{Verb: queue.VerbAck}},
		"largest result":       {out: handlers.Outcome{Kind: handlers.OutcomeSucceeded, Result: make([]byte, 10)}, want: queue.Settlement{Verb: queue.VerbAck, Result: make([]byte, 10)}},
		"result too large":     {out: handlers.Outcome{Kind: handlers.OutcomeSucceeded, Result: make([]byte, 11)}, want: queue.Settlement{Verb: queue.VerbDead}, err: queue.JobError{Kind: "result_too_large", Message: "result: 11 bytes is over the limit result of 10 bytes"}},
		"retry by policy":      {out: handlers.Outcome{Kind: handlers.OutcomeRetry, RetryAfter: -1, Error: errX}, want: queue.Settlement{Verb: queue.VerbNack, Delay: 4 * time.Second}, err: queue.JobError{Kind: "trap", Message: "unreachable", Retryable: true}},
		"retry at once":        {out: handlers.Outcome{Kind: handlers.OutcomeRetry, RetryAfter: 0, Error: errX}, want: queue.Settlement{Verb: queue.VerbNack}, err: queue.JobError{Kind: "trap", Message: "unreachable", Retryable: true}},
		"retry in ages":        {out: handlers.Outcome{Kind: handlers.OutcomeRetry, RetryAfter: 1 << 62, Error: errX}, want: queue.Settlement{Verb: queue.VerbNack, Delay: queue.DelayMax}, err: queue.JobError{Kind: "trap", Message: "unreachable", Retryable: true}},
		"retry without reason": {out: handlers.Outcome{Kind: handlers.OutcomeRetry, RetryAfter: -1}, want: queue.Settlement{Verb: queue.VerbNack, Delay: 4 * time.Second}, err: queue.JobError{Kind: "retryable", Message: "no reason was given", Retryable: true}},
		"permanent":            {out: handlers.Outcome{Kind: handlers.OutcomePermanent, Error: errX}, want: queue.Settlement{Verb: queue.VerbDead}, err: queue.JobError{Kind: "trap", Message: "unreachable"}},
		"defer":                {out: handlers.Outcome{Kind: handlers.OutcomeDefer, RetryAfter: time.Hour}, want: queue.Settlement{Verb: queue.VerbDefer, Delay: time.Hour}},
		"yield":                {out: handlers.Outcome{Kind: handlers.OutcomeDefer}, want: queue.Settlement{Verb: queue.VerbYield}},
		"drained":              {out: handlers.Outcome{Kind: handlers.OutcomeInterrupted}, cause: handlers.ErrDraining, want: queue.Settlement{Verb: queue.VerbRelease}},
		"neighbour's fault":    {out: handlers.Outcome{Kind: handlers.OutcomeInterrupted}, want: queue.Settlement{Verb: queue.VerbRelease}},
		"overdue": {out: handlers.Outcome{Kind: handlers.OutcomeInterrupted, Duration: 70 * time.Second}, cause: lease.ErrOverdue, want: queue.Settlement{Verb: queue.VerbNack, Delay: 4 * time.Second, Duration: 70 * time.Second},
			err: queue.JobError{Kind: "deadline", Message: "deadline exceeded: stopped by the host after 1m10s; the timeout is 1m0s", Retryable: true}},
		"crashed":     {out: handlers.Outcome{Kind: handlers.OutcomeCrashed, Error: errX}, want: queue.Settlement{Verb: queue.VerbCrash}, err: queue.JobError{Kind: "trap", Message: "unreachable", Retryable: true}},
		"unavailable": {out: handlers.Outcome{Kind: handlers.OutcomeUnavailable, Error: errX, Duration: time.Second}, want: queue.Settlement{Verb: queue.VerbDefer, Delay: 500 * time.Millisecond}},
		"nonsense":    {out: handlers.Outcome{Kind: "exploded"}, want: queue.Settlement{Verb: queue.VerbCrash}, err: queue.JobError{Kind: "crash", Message: `the runtime ended with the unknown outcome "exploded"`, Retryable: true}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a := attempt(t)
			if c.cause != nil {
				a.Cancel(c.cause)
			}
			got := a.translate(c.out)
			if got.Verb != c.want.Verb || string(got.Result) != string(c.want.Result) || got.Delay != c.want.Delay || got.Duration != c.want.Duration || got.Handler != ranOnWasm {
				t.Errorf("got %+v, want %+v", got, c.want)
			}
			switch {
			case (got.Error == nil) != (c.err == queue.JobError{}):
				t.Errorf("error %+v, want %+v", got.Error, c.err)
			case got.Error != nil && *got.Error != c.err:
				t.Errorf("error %+v, want %+v", *got.Error, c.err)
			}
			got.Ref = a.Ref()
			if err := got.Validate(queue.DefaultLimits()); err != nil {
				t.Errorf("a store would refuse it: %v", err)
			}
		})
	}
}

func TestRetryDelayLaysTheJobsBackoffOverTheHosts(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		b    queue.Backoff
		want time.Duration // before attempt 3
	}{
		{queue.Backoff{}, 4 * time.Second},
		{queue.Backoff{Base: 10 * time.Second}, 20 * time.Second},
		{queue.Backoff{Max: 3 * time.Second}, 3 * time.Second},
		{queue.Backoff{Jitter: queue.JitterNone}, 4 * time.Second},
	} {
		a := attempt(t)
		a.job.Backoff = c.b
		if got := a.retryDelay(-1); got != c.want {
			t.Errorf("%+v: %s, want %s", c.b, got, c.want)
		}
		a.r.o.Random = func() float64 { return 0.5 }
		want := c.want / 2
		if c.b.Jitter == queue.JitterNone {
			want = c.want
		}
		if got := a.retryDelay(-1); got != want {
			t.Errorf("%+v, random 0.5: %s, want %s", c.b, got, want)
		}
	}
}

func TestEffectiveLimits(t *testing.T) {
	t.Parallel()
	defaults := handlers.Limits{MemoryBytes: 1, ResultBytes: 2, LogBytes: 3, CheckpointBytes: 4, Timeout: 5}
	for _, c := range []struct {
		version handlers.Limits
		job     time.Duration
		want    handlers.Limits
	}{
		{handlers.Limits{}, 0, defaults},
		{handlers.Limits{}, 50, handlers.Limits{MemoryBytes: 1, ResultBytes: 2, LogBytes: 3, CheckpointBytes: 4, Timeout: 50}},
		{handlers.Limits{MemoryBytes: 10, ResultBytes: 20, LogBytes: 30, CheckpointBytes: 40, Timeout: 60}, 0, handlers.Limits{MemoryBytes: 10, ResultBytes: 20, LogBytes: 30, CheckpointBytes: 40, Timeout: 60}},
		{handlers.Limits{Timeout: 60}, 50, handlers.Limits{MemoryBytes: 1, ResultBytes: 2, LogBytes: 3, CheckpointBytes: 4, Timeout: 50}},
	} {
		if got := effectiveLimits(c.version, defaults, c.job); got != c.want {
			t.Errorf("%+v over defaults, job %d: %+v, want %+v", c.version, c.job, got, c.want)
		}
	}
}

func TestAlone(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		job  queue.Job
		want bool
	}{
		{queue.Job{Attempt: 1}, false},
		{queue.Job{Attempt: 1, Crashes: 1}, true},
		{queue.Job{Attempt: 2, LastError: &queue.JobError{Kind: "killed"}}, true},
		{queue.Job{Attempt: 2, LastError: &queue.JobError{Kind: "deadline"}}, false},
		{queue.Job{Attempt: 2, LastError: &queue.JobError{Kind: "trap"}}, false},
		{queue.Job{Run: 2, Attempt: 1, LastError: &queue.JobError{Kind: "killed"}}, false}, // of the run before
	} {
		if got := alone(&c.job); got != c.want {
			t.Errorf("%+v: %t, want %t", c.job, got, c.want)
		}
	}
}

func TestTheHistoryRemembersHowLongAHandlerIsMissing(t *testing.T) {
	t.Parallel()
	at := func(s int) time.Time { return time.Unix(int64(s), 0) }
	missing := func(run, s int) queue.Attempt {
		return queue.Attempt{Run: run, Outcome: queue.AttemptDeferred, StartedAt: at(s)}
	}
	for name, c := range map[string]struct {
		history []queue.Attempt
		waited  time.Duration
		starts  int
	}{
		"new":               {nil, 0, 0},
		"since 10":          {[]queue.Attempt{missing(2, 10), missing(2, 40)}, 90 * time.Second, 0},
		"ran in between":    {[]queue.Attempt{missing(2, 10), {Run: 2, Outcome: queue.AttemptFailed, Handler: ranOnWasm, StartedAt: at(20)}, missing(2, 60)}, 40 * time.Second, 0},
		"asked for a delay": {[]queue.Attempt{missing(2, 10), {Run: 2, Outcome: queue.AttemptDeferred, Handler: ranOnWasm, StartedAt: at(20), DurationMS: 5}}, 0, 0},
		"the run before":    {[]queue.Attempt{missing(1, 10), missing(2, 70)}, 30 * time.Second, 0},
		"failed starts":     {[]queue.Attempt{missing(2, 10), {Run: 2, Outcome: queue.AttemptDeferred, Handler: ranOnWasm}, {Run: 2, Outcome: queue.AttemptDeferred, Handler: ranOnWasm}}, 0, 2},
	} {
		j := &queue.Job{Run: 2, StartedAt: at(100), Attempts: c.history}
		if got := waitedForHandler(j); got != c.waited {
			t.Errorf("%s: waited %s, want %s", name, got, c.waited)
		}
		if got := failedStarts(j); got != c.starts {
			t.Errorf("%s: %d failed starts, want %d", name, got, c.starts)
		}
	}
}

// The first record of the row is what the waiting is counted from: it must not be dropped from the history.
func TestWaitingForAHandlerFitsIntoTheHistory(t *testing.T) {
	t.Parallel()
	for _, wait := range []time.Duration{time.Millisecond, time.Second, time.Minute, 5 * time.Minute, time.Hour, 24 * time.Hour, 7 * 24 * time.Hour} {
		waited, n := time.Duration(0), 0
		for ; waited < wait; n++ {
			pause := handlerPause(waited, wait)
			if pause <= 0 || pause > max(6*time.Second, wait/50) {
				t.Fatalf("wait %s: pause %s after %s", wait, pause, waited)
			}
			waited += pause
		}
		if n >= queue.AttemptsKept || waited > wait+time.Millisecond {
			t.Errorf("wait %s: %d looks until %s", wait, n, waited)
		}
	}
}

func TestLongMessagesAreCutAtACharacter(t *testing.T) {
	t.Parallel()
	short := strings.Repeat("x", MessageMax)
	if got := clip(short); got != short {
		t.Error("a message that fits was cut")
	}
	for shift := range 4 {
		got := clip(strings.Repeat("x", shift) + strings.Repeat("🙂", MessageMax))
		if !utf8.ValidString(got) || len(got) > MessageMax+40 || !strings.HasSuffix(got, fmt.Sprintf("(%d bytes in all)", shift+4*MessageMax)) {
			t.Errorf("shift %d: %d bytes, valid %t, ends %q", shift, len(got), utf8.ValidString(got), got[len(got)-30:])
		}
	}
}

func TestARefusedSettlementNamesItsReason(t *testing.T) {
	t.Parallel()
	got := refusedError(&queue.LimitError{Field: "result", Limit: "result", Max: 1, Got: 2, Unit: "bytes"})
	if got.Kind != "result_too_large" || !strings.Contains(got.Message, "2 bytes") || got.Retryable {
		t.Errorf("%+v", got)
	}
	if got := refusedError(errors.New("odd")); got.Kind != "permanent" || !strings.Contains(got.Message, "odd") {
		t.Errorf("%+v", got)
	}
}

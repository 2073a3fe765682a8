package host_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/taskhost/taskhost/handlers"
	"github.com/taskhost/taskhost/handlers/handlertest"
	"github.com/taskhost/taskhost/host"
	"github.com/taskhost/taskhost/host/hosttest"
	"github.com/taskhost/taskhost/queue"
)

func TestAJobGetsItsWholeInvocation(t *testing.T) {
	got := make(chan handlers.Invocation, 1)
	fn := func(_ context.Context, inv *handlers.Invocation) handlers.Outcome {
		got <- *inv
		return handlertest.Succeed([]byte("done"))
	}
	inRig(t, fn, nil, func(r *rig) {
		id := r.enqueue(1, func(s *queue.JobSpec) {
			s.Headers, s.Timeout, s.Payload = map[string]string{"a": "b"}, 7*time.Second, []byte{0xff, 0xfe, 0}
		})[0]
		j := r.awaitEnd(id)
		inv := <-got
		if string(j.Result) != "done" || j.Handler != (queue.Handler{Runtime: "func", Version: 3}) {
			t.Errorf("result %q by %+v", j.Result, j.Handler)
		}
		if inv.JobID != id || inv.Tenant != "acme" || inv.Queue != "default" || inv.Type != "work" || inv.Run != 1 || inv.Attempt != 1 || inv.MaxAttempts != 3 {
			t.Errorf("names and numbers: %+v", inv)
		}
		if !bytes.Equal(inv.Payload, []byte{0xff, 0xfe, 0}) || inv.Headers["a"] != "b" || inv.Alone || inv.Version.Number != 3 {
			t.Errorf("payload, headers, alone, version: %+v", inv)
		}
		if want := j.StartedAt.Add(7 * time.Second); inv.Deadline.Sub(want).Abs() > time.Second || inv.Limits.Timeout != 7*time.Second {
			t.Errorf("deadline %s, timeout %s", inv.Deadline, inv.Limits.Timeout)
		}
		if l := inv.Limits; l.MemoryBytes != 128<<20 || l.ResultBytes != 1<<20 || l.LogBytes != 256<<10 || l.CheckpointBytes != 1<<20 {
			t.Errorf("limits %+v", l)
		}
	})
}

func TestCase066SpentAttemptsEndInTheDeadLetterQueueWithEveryAttempt(t *testing.T) {
	fn := func(_ context.Context, inv *handlers.Invocation) handlers.Outcome {
		return handlertest.Retry(fmt.Sprintf("failure %d", inv.Attempt))
	}
	inRig(t, fn, nil, func(r *rig) {
		id := r.enqueue(1, func(s *queue.JobSpec) { s.MaxAttempts = 4 })[0]
		j := r.awaitEnd(id)
		if j.State != queue.StateDead || j.Attempt != 4 || len(j.Attempts) != 4 {
			t.Fatalf("%s, attempt %d, %d records; want dead, 4, 4", j.State, j.Attempt, len(j.Attempts))
		}
		for i, a := range j.Attempts {
			if a.Attempt != i+1 || a.Outcome != queue.AttemptFailed || a.Error.Message != fmt.Sprintf("failure %d", i+1) || a.Worker != r.host.Worker() || a.Handler.Version != 3 {
				t.Errorf("attempt %d: %+v", i+1, a)
			}
			// Random is 0 in the rig: the whole of the backoff, 1 s, 2 s, 4 s.
			if i > 0 {
				if gap, want := a.StartedAt.Sub(j.Attempts[i-1].StartedAt), time.Second<<(i-1); gap < want || gap > want+10*time.Millisecond {
					t.Errorf("attempt %d came %s after the one before, want %s", i+1, gap, want)
				}
			}
		}
		if j.LastError.Message != "failure 4" || !j.LastError.Retryable {
			t.Errorf("last error %+v", j.LastError)
		}
	})
}

func TestAHandlersOwnDelayIsHonoured(t *testing.T) {
	for _, c := range []struct {
		kind    handlers.OutcomeKind
		after   time.Duration
		attempt int // of the second run
	}{
		{handlers.OutcomeRetry, 42 * time.Second, 2},
		{handlers.OutcomeRetry, 0, 2},
		{handlers.OutcomeDefer, 42 * time.Second, 1},
		{handlers.OutcomeDefer, 0, 1},
	} {
		t.Run(fmt.Sprintf("%s after %s", c.kind, c.after), func(t *testing.T) {
			var starts []time.Time
			var attempts []int
			fn := func(_ context.Context, inv *handlers.Invocation) handlers.Outcome {
				starts, attempts = append(starts, time.Now()), append(attempts, inv.Attempt)
				if len(starts) == 1 {
					return handlers.Outcome{Kind: c.kind, RetryAfter: c.after, Error: &handlers.Error{Kind: "retryable", Message: "later"}}
				}
				return handlertest.Succeed(nil)
			}
			inRig(t, fn, nil, func(r *rig) {
				r.awaitEnd(r.enqueue(1, nil)[0])
				if gap := starts[1].Sub(starts[0]); gap < c.after || gap > c.after+10*time.Millisecond {
					t.Errorf("ran again after %s, want %s", gap, c.after)
				}
				if attempts[1] != c.attempt {
					t.Errorf("second run is attempt %d, want %d", attempts[1], c.attempt)
				}
			})
		})
	}
}

func TestAPermanentFailureIsNotRetried(t *testing.T) {
	inRig(t, func(context.Context, *handlers.Invocation) handlers.Outcome { return handlertest.Fail("bad width 0") }, nil, func(r *rig) {
		j := r.awaitEnd(r.enqueue(1, nil)[0])
		if j.State != queue.StateDead || len(j.Attempts) != 1 || j.LastError.Message != "bad width 0" || j.LastError.Retryable {
			t.Errorf("%s after %d attempts: %+v", j.State, len(j.Attempts), j.LastError)
		}
	})
}

func TestCase019AnOversizedResultFailsForGoodWithBothSizes(t *testing.T) {
	inRig(t, func(context.Context, *handlers.Invocation) handlers.Outcome {
		return handlertest.Succeed(make([]byte, 5<<20))
	}, nil, func(r *rig) {
		j := r.awaitEnd(r.enqueue(1, nil)[0])
		if j.State != queue.StateDead || len(j.Attempts) != 1 || j.LastError.Kind != "result_too_large" {
			t.Fatalf("%s after %d attempts: %+v", j.State, len(j.Attempts), j.LastError)
		}
		for _, size := range []string{"5242880 bytes", "1048576 bytes"} {
			if !strings.Contains(j.LastError.Message, size) {
				t.Errorf("%q does not say %q", j.LastError.Message, size)
			}
		}
	})
}

// The host allows more than the store: the store refuses the ack, and the job must not run in a circle.
func TestCase019ASettlementTheStoreRefusesFailsTheJobForGood(t *testing.T) {
	var runs atomic.Int64
	fn := func(context.Context, *handlers.Invocation) handlers.Outcome {
		runs.Add(1)
		return handlertest.Succeed(make([]byte, 5<<20))
	}
	inRig(t, fn, func(o *host.Options) { o.Defaults.ResultBytes = 8 << 20 }, func(r *rig) {
		j := r.awaitEnd(r.enqueue(1, nil)[0])
		if j.State != queue.StateDead || runs.Load() != 1 || j.LastError.Kind != "result_too_large" || !strings.Contains(j.LastError.Message, "5242880") {
			t.Errorf("%s after %d runs: %+v", j.State, runs.Load(), j.LastError)
		}
	})
}

func TestCase067AJobWithoutHandlerWaitsUncountedThenIsDead(t *testing.T) {
	inRig(t, sleeping(0), nil, func(r *rig) {
		begin := time.Now()
		id := r.enqueue(1, func(s *queue.JobSpec) { s.Type, s.MaxAttempts = "unheard.of", 2 })[0]
		j := r.await(id, func(j *queue.Job) bool { return j.State == queue.StateScheduled })
		if j.Reason != queue.ReasonDefer || j.Attempt != 0 {
			t.Errorf("waits as %s with attempt %d, want defer with 0", j.Reason, j.Attempt)
		}
		j = r.awaitEnd(id)
		if j.State != queue.StateDead || j.LastError.Kind != "no_handler" || j.LastError.Message != "no handler for type unheard.of" {
			t.Errorf("%s: %+v", j.State, j.LastError)
		}
		if took := time.Since(begin); took < 5*time.Minute || took > 5*time.Minute+10*time.Second {
			t.Errorf("dead after %s, want 5m", took)
		}
		if n := len(j.Attempts); n >= queue.AttemptsKept {
			t.Errorf("%d records: the first one may have been dropped", n)
		}
	})
}

func TestCase067AHandlerThatComesLateRunsTheFirstAttempt(t *testing.T) {
	inRig(t, sleeping(0), nil, func(r *rig) {
		id := r.enqueue(1, func(s *queue.JobSpec) { s.Type, s.MaxAttempts = "late", 1 })[0]
		time.Sleep(2 * time.Minute)
		r.host.Registry().SetLive(&handlers.Version{Type: "late", Number: 1, Runtime: "func"})
		begin := time.Now()
		j := r.awaitEnd(id)
		if j.State != queue.StateSucceeded || j.Attempt != 1 {
			t.Errorf("%s, attempt %d; want succeeded, 1", j.State, j.Attempt)
		}
		if took := time.Since(begin); took > 7*time.Second {
			t.Errorf("picked up %s after the handler came", took)
		}
	})
}

func TestAnUnavailableHandlerIsWaitedForWithoutSpinning(t *testing.T) {
	var starts atomic.Int64
	fn := func(context.Context, *handlers.Invocation) handlers.Outcome {
		if starts.Add(1) <= 6 {
			return handlers.Outcome{Kind: handlers.OutcomeUnavailable, Error: &handlers.Error{Kind: "unavailable", Message: "starting"}}
		}
		return handlertest.Succeed(nil)
	}
	inRig(t, fn, nil, func(r *rig) {
		begin := time.Now()
		j := r.awaitEnd(r.enqueue(1, func(s *queue.JobSpec) { s.MaxAttempts = 1 })[0])
		if j.State != queue.StateSucceeded || j.Attempt != 1 {
			t.Errorf("%s, attempt %d", j.State, j.Attempt)
		}
		if took, want := time.Since(begin), 31500*time.Millisecond; took < want || took > want+time.Second { // 0.5+1+2+4+8+16 s
			t.Errorf("took %s, want the growing pauses of %s", took, want)
		}
	})
}

func TestCase034AJobThatCrashesItsRuntimeIsDeadAfterItsBudget(t *testing.T) {
	var alone []bool
	var good atomic.Int64
	fn := func(context.Context, *handlers.Invocation) handlers.Outcome {
		good.Add(1)
		return handlertest.Succeed(nil)
	}
	inRig(t, fn, func(o *host.Options) {
		o.Runtimes = append(o.Runtimes, &hosttest.Runtime{RuntimeName: "bomb", Fn: func(_ context.Context, inv *handlers.Invocation) handlers.Outcome {
			alone = append(alone, inv.Alone)
			panic("boom")
		}})
	}, func(r *rig) {
		r.host.Registry().SetLive(&handlers.Version{Type: "poison", Number: 1, Runtime: "bomb"})
		id := r.enqueue(1, func(s *queue.JobSpec) { s.Type, s.MaxAttempts = "poison", 1 })[0]
		others := r.enqueue(20, nil)
		j := r.awaitEnd(id)
		if j.State != queue.StateDead || j.Crashes != 3 || !strings.Contains(j.LastError.Message, "crashed worker 3 times") {
			t.Errorf("%s, crashes %d: %+v", j.State, j.Crashes, j.LastError)
		}
		if !slices.Equal(alone, []bool{false, true, true}) {
			t.Errorf("alone: %v, want false for the first run only", alone)
		}
		for _, other := range others {
			r.awaitEnd(other)
		}
		if n := r.host.Stats().Run.Panics; n != 3 || good.Load() != 20 {
			t.Errorf("panics %d, others %d; want 3, 20", n, good.Load())
		}
	})
}

func TestAJobThatIsInterruptedAgainAndAgainDoesNotSpin(t *testing.T) {
	var runs atomic.Int64
	fn := func(context.Context, *handlers.Invocation) handlers.Outcome {
		runs.Add(1)
		return handlers.Outcome{Kind: handlers.OutcomeInterrupted}
	}
	inRig(t, fn, nil, func(r *rig) {
		id := r.enqueue(1, nil)[0]
		time.Sleep(time.Minute)
		if n := runs.Load(); n < 50 || n > 70 {
			t.Errorf("ran %d times in a minute, want about once a second", n)
		}
		if j := r.job(id); j.Attempt > 1 || j.Crashes != 0 {
			t.Errorf("counted: %+v", j)
		}
	})
}

func TestNotesOfAHandlerAreStored(t *testing.T) {
	fn := func(ctx context.Context, inv *handlers.Invocation) handlers.Outcome {
		if inv.Attempt == 1 {
			for i := range 50 {
				inv.Events.Log(time.Now(), "info", fmt.Sprintf("line %d", i))
				inv.Events.Progress(int64(i), 50, "going")
			}
			if err := inv.Events.Checkpoint(ctx, []byte("half way")); err != nil {
				return handlertest.Fail(err.Error())
			}
			if err := inv.Events.Checkpoint(ctx, make([]byte, 2<<20)); !errors.Is(err, queue.ErrInvalid) {
				return handlertest.Fail(fmt.Sprintf("oversized checkpoint: %v", err))
			}
			return handlertest.Retry("again")
		}
		inv.Events.Log(time.Now(), "loud", "last words")
		return handlertest.Succeed(inv.Checkpoint)
	}
	inRig(t, fn, nil, func(r *rig) {
		id := r.enqueue(1, nil)[0]
		j := r.awaitEnd(id)
		if string(j.Result) != "half way" {
			t.Errorf("%s, result %q, %+v", j.State, j.Result, j.LastError)
		}
		if j.Progress == nil || j.Progress.Done != 49 || j.Progress.Total != 50 {
			t.Errorf("progress %+v", j.Progress)
		}
		page, err := r.store.JobLogs(context.Background(), "acme", id, 0, 100)
		if err != nil || len(page.Lines) != 51 {
			t.Fatalf("%d lines (%v), want 51", len(page.Lines), err)
		}
		for i, l := range page.Lines[:50] {
			if l.Message != fmt.Sprintf("line %d", i) || l.Attempt != 1 {
				t.Errorf("line %d: %+v", i, l)
			}
		}
		if l := page.Lines[50]; l.Message != "last words" || l.Attempt != 2 || l.Level != "info" {
			t.Errorf("last line %+v", l)
		}
	})
}

func TestAnIdleHostMakesNoCalls(t *testing.T) {
	inRig(t, sleeping(0), nil, func(r *rig) {
		time.Sleep(time.Second)
		reserves, waits := r.store.Reserves.Load(), r.store.Waits.Load()
		time.Sleep(time.Hour)
		if n := r.store.Reserves.Load() - reserves; n > 2 {
			t.Errorf("%d reserves in an idle hour", n)
		}
		if n := r.store.Waits.Load() - waits; n > 2 {
			t.Errorf("%d waits in an idle hour", n)
		}
		if n := r.store.Extends.Load() + r.store.Settles.Load(); n != 0 {
			t.Errorf("%d extends and settles without a job", n)
		}
		// And it still wakes at once.
		begin := time.Now()
		r.awaitEnd(r.enqueue(1, nil)[0])
		if took := time.Since(begin); took > 10*time.Millisecond {
			t.Errorf("took %s to wake up", took)
		}
	})
}

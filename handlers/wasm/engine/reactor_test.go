package engine

import (
	"testing"
	"time"

	"github.com/taskhost/taskhost/abi"
	"github.com/taskhost/taskhost/handlers"
	"github.com/taskhost/taskhost/handlers/wasm/engine/attempt"
)

func TestGoReactorHostCalls(t *testing.T) {
	t.Parallel()
	m := goReactor(t)
	r := &reports{}
	out := m.Run(t.Context(), attempt.New(input("all"), r))
	if out.Kind != handlers.OutcomeSucceeded || string(out.Result) != "job-1 2 t-1 error north" {
		t.Fatalf("%s %q %v", out.Kind, out.Result, out.Error)
	}
	if len(r.lines) != 1 || r.lines[0] != "warn half way" || len(r.progress) != 2 || r.progress[0] != 1 || string(r.checkpoint) != "half way" {
		t.Errorf("reports %+v", r)
	}
	out = m.Run(t.Context(), attempt.New(input("defer"), r))
	if out.Kind != handlers.OutcomeDefer || out.RetryAfter != 1500*time.Millisecond || out.Error.Message != "not yet" {
		t.Errorf("%+v %v", out, out.Error)
	}
	out = m.Run(t.Context(), attempt.New(input("fail no route"), r))
	if out.Kind != handlers.OutcomeRetry || out.RetryAfter != 250*time.Millisecond || out.Error.Kind != abi.KindRetryable || out.Error.Message != "no route" {
		t.Errorf("%+v %v", out, out.Error)
	}
}

// Every job sees what initialisation left and nothing of other jobs.
func TestCase098InitialisedOncePerInstance(t *testing.T) {
	t.Parallel()
	m := goReactor(t)
	for range 2 {
		if out := m.Run(t.Context(), attempt.New(input("count"), &reports{})); string(out.Result) != "xx" {
			t.Errorf("%s %q %v", out.Kind, out.Result, out.Error)
		}
	}
}

// An attempt is over when its export returns; goroutines left behind do not run on.
func TestCase100LeftoversDoNotRun(t *testing.T) {
	t.Parallel()
	m := goReactor(t)
	r := &reports{}
	start := time.Now()
	out := m.Run(t.Context(), attempt.New(input("leave"), r))
	n := len(r.lines)
	if out.Kind != handlers.OutcomeSucceeded || time.Since(start) > 5*time.Second {
		t.Errorf("%s %v after %s", out.Kind, out.Error, time.Since(start))
	}
	m.Run(t.Context(), attempt.New(input("count"), &reports{}))
	if len(r.lines) != n {
		t.Errorf("the job before logged during the next one: %q", r.lines[n:])
	}
}

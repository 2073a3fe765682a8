package wasm

import (
	"context"
	"os"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/taskhost/taskhost/abi"
	"github.com/taskhost/taskhost/handlers/handlertest"
	w "github.com/taskhost/taskhost/handlers/wasm/wasmtest"
)

// Whatever does not end ends in time and in its own way, and its runner lives on. The pool would kill the runner, but late here, so that
// it shows that it need not.
func TestCase086EndsInTimeEverywhere(t *testing.T) { t.Parallel(); endInTime(t, 86) }

func TestCase087EndsInTimeWithoutLoops(t *testing.T) { t.Parallel(); endInTime(t, 87) }

func TestCase088SleepsEndInTime(t *testing.T) { t.Parallel(); endInTime(t, 88) }

func TestCase090FloodsEndInTime(t *testing.T) { t.Parallel(); endInTime(t, 90) }

func TestCase092RecursionIsAnErrorOfTheJob(t *testing.T) { t.Parallel(); endInTime(t, 92) }

func endInTime(t *testing.T, id int) {
	r := newRuntime(t, func(o *Options) { o.Runners, o.grace = 1, 20*time.Second })
	next := handlertest.Harness{Runtime: r, Version: upload(t, r, "next", w.EchoReactor())}
	succeeds := func(after string) {
		if out := r.Invoke(t.Context(), next.Invocation([]byte("x"), time.Minute)); string(out.Result) != "x" {
			t.Errorf("the job after %s: %s %v", after, out.Kind, out.Error)
		}
	}
	succeeds("nothing")
	pid := r.Stats().Runners[0].PID
	for _, s := range shapes() {
		if s.id != id {
			continue
		}
		h := handlertest.Harness{Runtime: r, Version: upload(t, r, "shape", s.module())}
		inv := h.Invocation(nil, time.Second)
		out := r.Invoke(t.Context(), inv)
		late := time.Since(inv.Deadline)
		if out.Error == nil || out.Error.Kind != s.want || late > 500*time.Millisecond {
			t.Errorf("%s: %s %v, %s after the deadline", s.name, out.Kind, out.Error, late)
		}
		if s.want != abi.KindResultSize && s.id != 88 && out.Fuel < 1000 {
			t.Errorf("%s: %d units of fuel", s.name, out.Fuel)
		}
		succeeds(s.name)
	}
	if s := r.Stats(); s.Killed+s.Crashed+s.Violations > 0 || len(s.Runners) != 1 || s.Runners[0].PID != pid {
		t.Errorf("the runner was %d: %+v", pid, s)
	}
}

// Quiet jobs go on being quick beside each shape, in the same runner. TASKHOST_TEST_LONG takes 1,000 samples beside each and compares
// their 99th percentile with that of the runner alone.
func TestNeighboursGoOn(t *testing.T) {
	long := os.Getenv("TASKHOST_TEST_LONG") != ""
	samples, deadline := 20, 100*time.Millisecond
	if long {
		samples, deadline = 1000, time.Second
	}
	r := newRuntime(t, func(o *Options) { o.Runners, o.grace = 1, 20*time.Second })
	quiet := handlertest.Harness{Runtime: r, Version: upload(t, r, "quiet", w.EchoReactor())}
	measure := func() []time.Duration {
		took := make([]time.Duration, samples)
		pace := time.NewTicker(2 * time.Millisecond)
		defer pace.Stop()
		for i := range took {
			began := time.Now()
			if out := r.Invoke(t.Context(), quiet.Invocation([]byte("x"), time.Minute)); string(out.Result) != "x" {
				t.Errorf("a quiet job: %s %v", out.Kind, out.Error)
			}
			took[i] = time.Since(began)
			<-pace.C
		}
		slices.Sort(took)
		return took
	}
	measure() // what is slow once
	for _, s := range shapes() {
		h := handlertest.Harness{Runtime: r, Version: upload(t, r, "shape", s.module())}
		alone := measure()
		ctx, stop := context.WithCancel(t.Context())
		var hang sync.WaitGroup
		hang.Go(func() { // one attempt after the other
			for ctx.Err() == nil {
				if out := r.Invoke(ctx, h.Invocation(nil, deadline)); out.Error == nil || out.Error.Kind != s.want && out.Error.Kind != abi.KindInterrupted {
					t.Errorf("%s: %s %v", s.name, out.Kind, out.Error)
				}
			}
		})
		beside := measure()
		stop()
		hang.Wait()
		ratio := float64(p99(beside)) / float64(p99(alone))
		t.Logf("%-50s p50 %v, beside %v; p99 %v, beside %v, ratio %.2f; max %v, beside %v", s.name, round(alone[samples/2]), round(beside[samples/2]),
			round(p99(alone)), round(p99(beside)), ratio, round(alone[samples-1]), round(beside[samples-1]))
		if long && ratio > 2 && p99(beside) > 25*time.Millisecond {
			t.Errorf("%s: the 99th percentile of its neighbours is %v, %.1f times as much as alone", s.name, p99(beside), ratio)
		}
	}
	if s := r.Stats(); s.Killed+s.Crashed+s.Violations > 0 {
		t.Errorf("%+v", s)
	}
}

func p99(sorted []time.Duration) time.Duration { return sorted[len(sorted)*99/100] }

func round(d time.Duration) time.Duration { return d.Round(10 * time.Microsecond) }

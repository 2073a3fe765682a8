package wasm

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/taskhost/taskhost/abi"
	"github.com/taskhost/taskhost/handlers"
	"github.com/taskhost/taskhost/handlers/handlertest"
	w "github.com/taskhost/taskhost/handlers/wasm/wasmtest"
)

// Whatever does not end ends in time and in its own way, and its runner lives on. The pool would kill the runner, but late here, so that
// it shows that it need not.
func TestCase086EndsInTimeEverywhere(t *testing.T) { t.Parallel(); endInTime(t, 86) }

func TestCase087EndsInTimeWithoutLoops(t *testing.T) { t.Parallel(); endInTime(t, 87) }

func TestCase088SleepsEndInTime(t *testing.T) { t.Parallel(); endInTime(t, 88) }

// Jobs that sleep past their deadline leave no thread behind. TASKHOST_TEST_LONG makes it 1,000 of them.
func TestCase088SleepsLeaveNothing(t *testing.T) {
	t.Parallel()
	jobs := 40
	if os.Getenv("TASKHOST_TEST_LONG") != "" {
		jobs = 1000
	}
	r := newRuntime(t, func(o *Options) { o.Runners, o.Slots, o.grace = 1, 16, 20*time.Second })
	h := handlertest.Harness{Runtime: r, Version: upload(t, r, "sleep", sleep(3_600_000_000_000))}
	batch := func(n int) {
		var wg sync.WaitGroup
		for range 16 {
			wg.Go(func() {
				for range n / 16 {
					if out := r.Invoke(t.Context(), h.Invocation(nil, 20*time.Millisecond)); out.Error == nil || out.Error.Kind != abi.KindDeadline && out.Error.Kind != abi.KindUnavailable {
						t.Errorf("%s %v", out.Kind, out.Error)
					}
				}
			})
		}
		wg.Wait()
	}
	batch(16)
	pid := r.Stats().Runners[0].PID
	before := statusOf(t, pid, "Threads:")
	batch(jobs)
	if after := statusOf(t, pid, "Threads:"); after > before+24 { // those of 16 slots and of the Go runtime
		t.Errorf("the runner has %d threads after %d sleeps, %d before", after, jobs, before)
	}
}

func TestCase090FloodsEndInTime(t *testing.T) { t.Parallel(); endInTime(t, 90) }

func TestCase092RecursionIsAnErrorOfTheJob(t *testing.T) {
	t.Parallel()
	r := endInTime(t, 92)
	// The stacks that overflowed are given back, soon.
	pid := r.Stats().Runners[0].PID
	look, limit := time.NewTicker(20*time.Millisecond), time.After(20*time.Second)
	defer look.Stop()
	for residentMiB(t, pid) > 100 {
		select {
		case <-look.C:
		case <-limit:
			t.Fatalf("the runner has %d MiB of memory after recursions without end", residentMiB(t, pid))
		}
	}
}

// residentMiB is how much memory of a process is in use.
func residentMiB(tb testing.TB, pid int) int {
	tb.Helper()
	return statusOf(tb, pid, "VmRSS:") >> 10
}

// statusOf is a number that the kernel tells about a process.
func statusOf(tb testing.TB, pid int, name string) int {
	tb.Helper()
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		tb.Fatal(err)
	}
	_, after, _ := strings.Cut(string(status), name)
	n, err := strconv.Atoi(strings.Fields(after)[0])
	if err != nil {
		tb.Fatal(err)
	}
	return n
}

func endInTime(t *testing.T, id int) *Runtime {
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
		inv := h.Invocation(nil, s.timeout(time.Second))
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
	return r
}

// A limit of fuel ends a job for good, wherever the slices fall, and fuel is the same from run to run.
func TestFuel(t *testing.T) {
	t.Parallel()
	r := newRuntime(t, nil)
	const rounds = 1_000_000
	var b w.Builder
	counts := upload(t, r, "count", b.Reactor([]w.Local{{Count: 1, Type: w.I32}}, w.Ops(w.OpLoop, w.BlockEmpty),
		w.LocalGet(0), w.I32Const(1), w.Ops(w.OpI32Add), w.LocalTee(0), w.I32Const(rounds), w.Ops(w.OpI32LtU), w.BrIf(0), w.Ops(w.OpEnd), w.I32Const(0)))
	run := func(limit int64) handlers.Outcome {
		inv := handlertest.Harness{Runtime: r, Version: counts}.Invocation(nil, time.Minute)
		inv.Limits.Fuel = limit
		return r.Invoke(t.Context(), inv)
	}
	fuel := run(0).Fuel
	if fuel < 2*rounds || fuel > 20*rounds {
		t.Fatalf("%d rounds take %d units of fuel", rounds, fuel)
	}
	for _, limit := range []int64{0, fuel, fuel + 1, fuel + 1_000_000} {
		if out := run(limit); out.Kind != handlers.OutcomeSucceeded || out.Fuel != fuel {
			t.Errorf("limit %d: %s %v with %d units, %d before", limit, out.Kind, out.Error, out.Fuel, fuel)
		}
	}
	for _, limit := range []int64{1, 49_999, 50_000, 50_001, fuel / 2, fuel - 100} {
		first, second := run(limit), run(limit)
		if first.Kind != handlers.OutcomePermanent || first.Error.Kind != abi.KindOutOfFuel || !strings.Contains(first.Error.Message, fmt.Sprintf("the limit is %d units", limit)) {
			t.Errorf("limit %d: %s %v", limit, first.Kind, first.Error)
		}
		if first.Fuel <= limit || first.Fuel > limit+100 || second.Fuel != first.Fuel {
			t.Errorf("limit %d: ended after %d and %d units", limit, first.Fuel, second.Fuel)
		}
	}
	// What is refused costs fuel: one operation over many slices.
	fill := upload(t, r, "fill", bulk(11))
	inv := handlertest.Harness{Runtime: r, Version: fill}.Invocation(nil, time.Minute)
	inv.Limits.Fuel = 3 << 20
	if out := r.Invoke(t.Context(), inv); out.Error == nil || out.Error.Kind != abi.KindOutOfFuel || out.Fuel < 3<<20 || out.Fuel > 4<<20+100 {
		t.Errorf("filling: %s %v with %d units", out.Kind, out.Error, out.Fuel)
	}
}

// Quiet jobs go on being quick beside each shape, in the same runner. TASKHOST_TEST_LONG takes 1,000 samples beside each and compares
// their 99th percentile with that of the runner alone.
func TestNeighboursGoOn(t *testing.T) {
	long := os.Getenv("TASKHOST_TEST_LONG") != ""
	samples, rounds, deadline := 20, 1, 100*time.Millisecond
	if long {
		samples, rounds, deadline = 100, 10, time.Second
	}
	r := newRuntime(t, func(o *Options) { o.Runners, o.grace = 1, 20*time.Second })
	quiet := handlertest.Harness{Runtime: r, Version: upload(t, r, "quiet", w.EchoReactor())}
	measure := func() []time.Duration { return latencies(t, quiet, samples) }
	measure() // what is slow once
	for _, s := range shapes() {
		h := handlertest.Harness{Runtime: r, Version: upload(t, r, "shape", s.module())}
		var alone, beside []time.Duration
		for range rounds { // in turns, as the rest of the machine is never the same for long
			alone = append(alone, measure()...)
			ctx, stop := context.WithCancel(t.Context())
			var hang sync.WaitGroup
			hang.Go(func() { // one attempt after the other
				for ctx.Err() == nil {
					if out := r.Invoke(ctx, h.Invocation(nil, s.timeout(deadline))); out.Error == nil || out.Error.Kind != s.want && out.Error.Kind != abi.KindInterrupted {
						t.Errorf("%s: %s %v", s.name, out.Kind, out.Error)
					}
				}
			})
			beside = append(beside, measure()...)
			stop()
			hang.Wait()
		}
		slices.Sort(alone)
		slices.Sort(beside)
		ratio := float64(p99(beside)) / float64(p99(alone))
		t.Logf("%-50s p50 %v, beside %v; p99 %v, beside %v, ratio %.2f; max %v, beside %v", s.name, round(alone[len(alone)/2]), round(beside[len(beside)/2]),
			round(p99(alone)), round(p99(beside)), ratio, round(alone[len(alone)-1]), round(beside[len(beside)-1]))
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

package wasm

import (
	"errors"
	"os"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/taskhost/taskhost/handlers"
	"github.com/taskhost/taskhost/handlers/handlertest"
	"github.com/taskhost/taskhost/handlers/wasm/compile"
	w "github.com/taskhost/taskhost/handlers/wasm/wasmtest"
)

// Uploads made to harm end in a refusal: the scan's, or that of a compile child that was ended at its limit. The host keeps its process
// and its memory. TASKHOST_TEST_LONG asks for refusals within 2 s, and compares the 99th percentile of 1,000 jobs of another
// tenant beside a stream of such uploads, eight at once, with that of as many jobs before and after it.
func TestCase078BombsHarmNobody(t *testing.T) {
	long := os.Getenv("TASKHOST_TEST_LONG") != ""
	samples, budget := 50, time.Second
	if long {
		samples, budget = 1000, 5*time.Second
	}
	r := newRuntime(t, func(o *Options) { o.CompileLimits = compile.Limits{CPU: budget} })
	quiet := handlertest.Harness{Runtime: r, Version: upload(t, r, "quiet", w.EchoReactor())}
	measure := func(samples int) []time.Duration { return latencies(t, quiet, samples) }
	measure(samples) // what is slow once
	bombs := w.Bombs()
	refused := func(b w.Bomb, module []byte) time.Duration {
		began := time.Now()
		_, err := r.Admit(t.Context(), handlers.AdmitRequest{Tenant: "hostile", Type: "bomb", Module: module})
		took := time.Since(began)
		var refusal *handlers.Refusal
		if !errors.As(err, &refusal) {
			t.Errorf("%s: %v", b.Name, err)
			return took
		}
		for _, want := range b.Want {
			if !strings.Contains(refusal.Reason, want) {
				t.Errorf("%s: the reason is %q; it should say %q", b.Name, refusal.Reason, want)
			}
		}
		return took
	}
	pid := os.Getpid()
	debug.FreeOSMemory()
	before := residentMiB(t, pid)
	for i, b := range bombs {
		if b.Costly && !long && i < len(bombs)-1 { // one will do
			continue
		}
		took := refused(b, b.Module)
		if long && !b.Costly && took > 2*time.Second {
			t.Errorf("%s: refused after %v", b.Name, took)
		}
		t.Logf("%-55s %8d bytes, refused after %v", b.Name, len(b.Module), took.Round(time.Millisecond))
	}
	alone := measure(samples / 2)
	stop := make(chan struct{})
	var hostile sync.WaitGroup
	var uploads atomic.Uint64
	for range 8 { // at once
		hostile.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				n := uploads.Add(1)
				if b := bombs[n%uint64(len(bombs))]; long || !b.Costly {
					refused(b, b.Again(n))
				}
			}
		})
	}
	beside := measure(samples)
	close(stop)
	hostile.Wait()
	alone = append(alone, measure(samples/2)...)
	slices.Sort(alone)
	grown := residentMiB(t, pid) - before
	if grown >= 64 {
		t.Errorf("the host grew by %d MiB", grown)
	}
	ratio := float64(p99(beside)) / float64(p99(alone))
	t.Logf("process %d grew by %d MiB; beside %d uploads: p50 %v, alone %v; p99 %v, alone %v, ratio %.2f", pid, grown, uploads.Load(),
		round(beside[samples/2]), round(alone[samples/2]), round(p99(beside)), round(p99(alone)), ratio)
	if long && ratio > 2 && p99(beside) > 25*time.Millisecond {
		t.Errorf("the 99th percentile of other jobs is %v, %.1f times as much as alone", p99(beside), ratio)
	}
	if s := r.Stats(); s.Killed+s.Crashed+s.Violations > 0 {
		t.Errorf("%+v", s)
	}
}

// latencies are how long jobs take that come one after the other, at most one every 2 ms; sorted.
func latencies(t *testing.T, quiet handlertest.Harness, samples int) []time.Duration {
	took := make([]time.Duration, samples)
	pace := time.NewTicker(2 * time.Millisecond)
	defer pace.Stop()
	for i := range took {
		began := time.Now()
		if out := quiet.Runtime.Invoke(t.Context(), quiet.Invocation([]byte("x"), time.Minute)); string(out.Result) != "x" {
			t.Errorf("a quiet job: %s %v", out.Kind, out.Error)
		}
		took[i] = time.Since(began)
		<-pace.C
	}
	slices.Sort(took)
	return took
}

package host_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/taskhost/taskhost/handlers"
	"github.com/taskhost/taskhost/handlers/handlertest"
	"github.com/taskhost/taskhost/host"
	"github.com/taskhost/taskhost/host/hosttest"
	"github.com/taskhost/taskhost/queue"
	"github.com/taskhost/taskhost/queue/memq"
)

// fleet runs n hosts on one engine, each through a store of its own that can be cut off.
func fleet(t *testing.T, n int, fn func(i int) handler, test func(hosts []*rig)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		engine := memq.New(memq.Options{})
		var hosts []*rig
		for i := range n {
			r := newRig(t, hosttest.Wrap(engine), handlertest.NewFunc("func", 4, fn(i)), func(o *host.Options) { o.Shared = true })
			r.host.Registry().SetLive(&handlers.Version{Type: "work", Number: 1, Runtime: "func"})
			if err := r.host.Start(t.Context()); err != nil {
				t.Fatal(err)
			}
			time.Sleep(time.Second) // the first one maintains
			hosts = append(hosts, r)
		}
		test(hosts)
		for _, r := range hosts {
			r.store.Fail(nil)
			if err := r.host.Stop(context.Background()); err != nil {
				t.Error(err)
			}
		}
		if err := engine.Close(); err != nil {
			t.Error(err)
		}
	})
}

// A host that is cut off for good stands in for a killed one: the jobs it held, and the maintenance it did, go to the other.
func TestJobsOfADeadHostRunElsewhereAlsoWhenItMaintained(t *testing.T) {
	const lease = host.LeaseDefault
	var mu sync.Mutex
	began := map[string][]time.Time{}
	fn := func(i int) handler {
		return func(ctx context.Context, inv *handlers.Invocation) handlers.Outcome {
			mu.Lock()
			began[inv.JobID] = append(began[inv.JobID], time.Now())
			mu.Unlock()
			if i == 0 {
				return sleeping(time.Hour)(ctx, inv)
			}
			return handlertest.Succeed(nil)
		}
	}
	fleet(t, 2, fn, func(hosts []*rig) {
		first, second := hosts[0], hosts[1]
		if !first.host.Stats().Maintain.Leading || second.host.Stats().Maintain.Leading {
			first.t.Fatal("want the first host to maintain")
		}
		// Both hosts wait; the jobs go to whichever comes first, so keep giving until the first holds some.
		var ids []string
		for first.host.Stats().Dispatch.Busy == 0 {
			ids = append(ids, first.enqueue(8, func(s *queue.JobSpec) { s.Timeout = 2 * time.Hour })...)
			synctest.Wait()
		}
		held := int64(first.host.Stats().Dispatch.Busy)
		died := time.Now()
		first.store.Fail(queue.ErrUnavailable)
		for _, id := range ids {
			j := second.awaitEnd(id)
			if j.State != queue.StateSucceeded {
				first.t.Errorf("%s is %s", id, j.State)
			}
		}
		var again int64
		mu.Lock()
		for _, times := range began {
			if len(times) > 1 {
				again++
				if late := times[1].Sub(died); late > lease+2*time.Second {
					first.t.Errorf("run again %s after the death, want at most %s", late, lease+2*time.Second)
				}
			}
		}
		mu.Unlock()
		if again != held {
			first.t.Errorf("%d jobs ran again, the dead host held %d", again, held)
		}
	})
}

func TestCase067ATypeKnownToOneOfThreeHostsIsRunThere(t *testing.T) {
	var runs atomic.Int64
	fn := func(int) handler {
		return func(context.Context, *handlers.Invocation) handlers.Outcome {
			runs.Add(1)
			return handlertest.Succeed(nil)
		}
	}
	fleet(t, 3, fn, func(hosts []*rig) {
		hosts[2].host.Registry().SetLive(&handlers.Version{Type: "new", Number: 1, Runtime: "func"})
		ids := hosts[0].enqueue(30, func(s *queue.JobSpec) { s.Type, s.MaxAttempts = "new", 1 })
		for _, id := range ids {
			if j := hosts[0].awaitEnd(id); j.State != queue.StateSucceeded || j.Attempt != 1 || j.Worker != "" {
				hosts[0].t.Errorf("%s: %s, attempt %d", id, j.State, j.Attempt)
			}
		}
		if runs.Load() != 30 {
			hosts[0].t.Errorf("%d runs, want 30", runs.Load())
		}
	})
}

func TestFromUploadToResult(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		engine := memq.New(memq.Options{})
		rt := &hosttest.Runtime{Fn: func(_ context.Context, inv *handlers.Invocation) handlers.Outcome {
			return handlertest.Succeed(fmt.Appendf(nil, "v%d", inv.Version.Number))
		}}
		r := newRig(t, hosttest.Wrap(engine), rt, nil)
		if err := r.host.Start(t.Context()); err != nil {
			t.Fatal(err)
		}
		c := r.host.Catalog()
		for n, want := range []string{"v1", "v2"} {
			info, _, err := c.Upload(t.Context(), "acme", "work", fmt.Appendf(nil, "module %d", n))
			if err != nil {
				t.Fatal(err)
			}
			if _, err := c.SetLive(t.Context(), "acme", "work", info.Version); err != nil {
				t.Fatal(err)
			}
			if j := r.awaitEnd(r.enqueue(1, nil)[0]); string(j.Result) != want || j.Handler.Version != n+1 {
				t.Errorf("result %q by version %d, want %s", j.Result, j.Handler.Version, want)
			}
		}
		if err := r.host.Ready(); err != nil {
			t.Error(err)
		}
		if err := r.host.Stop(t.Context()); err != nil {
			t.Fatal(err)
		}
		// The next host knows what was live.
		r = newRig(t, hosttest.Wrap(engine), rt, nil)
		if err := r.host.Start(t.Context()); err != nil {
			t.Fatal(err)
		}
		if j := r.awaitEnd(r.enqueue(1, nil)[0]); string(j.Result) != "v2" || j.Attempt != 1 || len(j.Attempts) != 1 {
			t.Errorf("after a restart: %q, %+v", j.Result, j.Attempts)
		}
		if err := r.host.Stop(t.Context()); err != nil {
			t.Fatal(err)
		}
	})
}

// Jobs wait for a handler that is still being prepared at the start, and are not deferred.
func TestDispatchWaitsForTheHandlersToBePrepared(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		engine := memq.New(memq.Options{})
		slow := &hosttest.Runtime{}
		first := newRig(t, hosttest.Wrap(engine), slow, func(o *host.Options) { o.NoWorker = true })
		if err := first.host.Start(t.Context()); err != nil {
			t.Fatal(err)
		}
		if _, _, err := first.host.Catalog().Upload(t.Context(), "acme", "work", []byte("m")); err != nil {
			t.Fatal(err)
		}
		if _, err := first.host.Catalog().SetLive(t.Context(), "acme", "work", 1); err != nil {
			t.Fatal(err)
		}
		id := first.enqueue(1, nil)[0]
		if err := first.host.Stop(t.Context()); err != nil {
			t.Fatal(err)
		}
		slow.PrepareFn = func(context.Context, *handlers.Version, func(context.Context) ([]byte, error)) error {
			time.Sleep(3 * time.Second)
			return nil
		}
		r := newRig(t, hosttest.Wrap(engine), slow, nil)
		begin := time.Now()
		if err := r.host.Start(t.Context()); err != nil {
			t.Fatal(err)
		}
		if err := r.host.Ready(); err == nil {
			t.Error("ready before its handlers are prepared")
		}
		if j := r.awaitEnd(id); j.State != queue.StateSucceeded || len(j.Attempts) != 1 || time.Since(begin) != 3*time.Second {
			t.Errorf("%s after %s: %+v", j.State, time.Since(begin), j.Attempts)
		}
		if err := r.host.Stop(t.Context()); err != nil {
			t.Fatal(err)
		}
	})
}

func TestNewRefusesWhatCannotWork(t *testing.T) {
	engine := memq.New(memq.Options{})
	rt := &hosttest.Runtime{}
	log := slog.New(slog.DiscardHandler)
	for want, o := range map[string]host.Options{
		"a store is required":         {Log: log, Runtimes: []handlers.Runtime{rt}},
		"a log is required":           {Store: engine, Runtimes: []handlers.Runtime{rt}},
		"at least one runtime":        {Store: engine, Log: log},
		"two runtimes have the name":  {Store: engine, Log: log, Runtimes: []handlers.Runtime{rt, rt}},
		"concurrency must be":         {Store: engine, Log: log, Runtimes: []handlers.Runtime{rt}, Concurrency: -1},
		"lease: must be between 10ms": {Store: engine, Log: log, Runtimes: []handlers.Runtime{rt}, Lease: time.Millisecond},
		"view:":                       {Store: engine, Log: log, Runtimes: []handlers.Runtime{rt}, View: queue.View{Queues: []string{"a/b"}}},
	} {
		if _, err := host.New(o); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
	}
	h, err := host.New(host.Options{Store: engine, Log: log, Runtimes: []handlers.Runtime{rt}})
	if err != nil {
		t.Fatal(err)
	}
	if len(h.Worker()) != 8 || !strings.HasPrefix(h.Worker(), "w-") || h.Concurrency() != 4 || h.Defaults() != host.StandardDefaults() {
		t.Errorf("worker %q, concurrency %d, defaults %+v", h.Worker(), h.Concurrency(), h.Defaults())
	}
}

func TestAFailedStartLeavesNothingRunning(t *testing.T) {
	engine := memq.New(memq.Options{})
	if err := engine.Close(); err != nil {
		t.Fatal(err)
	}
	r := newRig(t, hosttest.Wrap(engine), &hosttest.Runtime{}, nil)
	if err := r.host.Start(t.Context()); !errors.Is(err, queue.ErrClosed) {
		t.Fatalf("got %v, want ErrClosed", err)
	}
}

func TestAClosedStoreMakesAHostUnready(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		engine := memq.New(memq.Options{})
		r := newRig(t, hosttest.Wrap(engine), &hosttest.Runtime{}, nil)
		if err := r.host.Start(t.Context()); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if err := r.host.Ready(); err != nil {
			t.Fatal(err)
		}
		if err := engine.Close(); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Second)
		if err := r.host.Ready(); err == nil {
			t.Error("ready without a store")
		}
		if err := r.host.Stop(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

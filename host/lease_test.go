package host_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/taskhost/taskhost/handlers"
	"github.com/taskhost/taskhost/handlers/handlertest"
	"github.com/taskhost/taskhost/host"
	"github.com/taskhost/taskhost/host/hosttest"
	"github.com/taskhost/taskhost/queue"
)

// Stands in for a host that was suspended for longer than a lease: it extends nothing, another host reaps and reserves.
func TestCase036ALostLeaseStopsTheHandlerAndSettlesNothing(t *testing.T) {
	var cause atomic.Value
	fn := func(ctx context.Context, _ *handlers.Invocation) handlers.Outcome {
		<-ctx.Done()
		cause.Store(context.Cause(ctx))
		return handlertest.Succeed([]byte("of the loser"))
	}
	inRig(t, fn, func(o *host.Options) { o.NoMaintenance = true }, func(r *rig) {
		ctx := context.Background()
		id := r.enqueue(1, func(s *queue.JobSpec) { s.Timeout = 10 * time.Minute })[0]
		r.awaitState(id, queue.StateRunning)
		r.store.Fail(queue.ErrUnavailable)
		time.Sleep(20 * time.Second)
		if !r.host.Stats().Lease.Unsure {
			t.Error("leases are not reported as unsure after 20 s without the store")
		}
		if _, err := r.store.Engine.Maintain(ctx); err != nil {
			t.Fatal(err)
		}
		taken, err := r.store.Engine.Reserve(ctx, queue.ReserveParams{Worker: "w-other", Max: 1, Lease: time.Hour})
		if err != nil || len(taken) != 1 {
			t.Fatalf("the other host got %d jobs (%v)", len(taken), err)
		}
		r.store.Fail(nil)
		if err := r.host.Stop(ctx); err != nil {
			t.Fatal(err)
		}
		if c, _ := cause.Load().(error); !errors.Is(c, handlers.ErrLeaseLost) {
			t.Errorf("cause %v, want ErrLeaseLost", c)
		}
		s := r.host.Stats()
		if s.Lease.Lost != 1 || s.Run.Lost != 1 || s.Settle.Calls != 0 {
			t.Errorf("lost %d, unsettled %d, settle calls %d; want 1, 1, 0", s.Lease.Lost, s.Run.Lost, s.Settle.Calls)
		}
		if j := r.job(id); j.State != queue.StateRunning || j.Worker != "w-other" {
			t.Errorf("job is %s with %q, want running with w-other", j.State, j.Worker)
		}
	})
}

func TestAStoreOutageDoesNotStopHandlers(t *testing.T) {
	inRig(t, sleeping(2*time.Minute), func(o *host.Options) { o.Defaults.Timeout = time.Hour }, func(r *rig) {
		id := r.enqueue(1, nil)[0]
		r.awaitState(id, queue.StateRunning)
		time.Sleep(time.Second)
		r.store.Fail(queue.ErrUnavailable)
		time.Sleep(12 * time.Second) // less than a lease
		r.store.Fail(nil)
		j := r.awaitEnd(id)
		if j.State != queue.StateSucceeded || len(j.Attempts) != 1 {
			t.Errorf("%s after %d attempts, want succeeded after 1", j.State, len(j.Attempts))
		}
	})
}

func TestCase037ALeaseIsExtendedAllAlongTheJob(t *testing.T) {
	var runs atomic.Int64
	fn := func(ctx context.Context, inv *handlers.Invocation) handlers.Outcome {
		runs.Add(1)
		return sleeping(150*time.Second)(ctx, inv)
	}
	inRig(t, fn, func(o *host.Options) { o.Defaults.Timeout = time.Hour }, func(r *rig) {
		ids := r.enqueue(20, nil)
		begin := time.Now()
		for _, id := range ids {
			if j := r.awaitEnd(id); j.State != queue.StateSucceeded || j.Crashes != 0 {
				t.Errorf("%s: %s, crashes %d", id, j.State, j.Crashes)
			}
		}
		if took := time.Since(begin); took > 151*time.Second {
			t.Errorf("took %s", took)
		}
		if n := runs.Load(); n != 20 {
			t.Errorf("the handlers ran %d times, want 20", n)
		}
		// 150 s are 30 thirds of a lease: one call each, for all jobs together.
		if n := r.store.Extends.Load(); n < 28 || n > 32 {
			t.Errorf("%d extend calls, want about 30", n)
		}
	})
}

func TestCancelStopsARunningJob(t *testing.T) {
	var cause atomic.Value
	fn := func(ctx context.Context, _ *handlers.Invocation) handlers.Outcome {
		<-ctx.Done()
		cause.Store(context.Cause(ctx))
		return handlers.Outcome{Kind: handlers.OutcomeInterrupted}
	}
	for _, c := range []struct {
		name   string
		check  bool
		within time.Duration
	}{
		{"within a third of a lease", false, 5 * time.Second},
		{"at once when asked to check", true, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			inRig(t, fn, nil, func(r *rig) {
				id := r.enqueue(1, nil)[0]
				r.awaitState(id, queue.StateRunning)
				time.Sleep(time.Second)
				begin := time.Now()
				if _, err := r.store.CancelJob(context.Background(), "acme", id); err != nil {
					t.Fatal(err)
				}
				if c.check {
					r.host.CheckLeases()
				}
				j := r.awaitEnd(id)
				if j.State != queue.StateCancelled || j.Attempts[0].Outcome != queue.AttemptCancelled {
					t.Errorf("%s, attempt %s; want cancelled", j.State, j.Attempts[0].Outcome)
				}
				if took := time.Since(begin); took > c.within {
					t.Errorf("took %s, want at most %s", took, c.within)
				}
				if c, _ := cause.Load().(error); !errors.Is(c, handlers.ErrCancelled) {
					t.Errorf("cause %v, want ErrCancelled", c)
				}
			})
		})
	}
}

func TestSettlementsOutliveAStoreOutage(t *testing.T) {
	var runs atomic.Int64
	fn := func(ctx context.Context, inv *handlers.Invocation) handlers.Outcome {
		runs.Add(1)
		return sleeping(2*time.Second)(ctx, inv)
	}
	inRig(t, fn, nil, func(r *rig) {
		ids := r.enqueue(10, nil)
		time.Sleep(time.Second)
		r.store.Fail(queue.ErrUnavailable)
		time.Sleep(10 * time.Second)
		r.store.Fail(nil)
		for _, id := range ids {
			if j := r.awaitEnd(id); j.State != queue.StateSucceeded || len(j.Attempts) != 1 {
				t.Errorf("%s: %s with %d attempts, want succeeded with 1", id, j.State, len(j.Attempts))
			}
		}
		s := r.host.Stats()
		if runs.Load() != 10 || s.Settle.OK != 10 || s.Settle.Retried == 0 {
			t.Errorf("runs %d, settled %d, retried %d; want 10, 10, some", runs.Load(), s.Settle.OK, s.Settle.Retried)
		}
	})
}

func TestCase045ALostSettleReplyDoublesNothing(t *testing.T) {
	var runs atomic.Int64
	fn := func(context.Context, *handlers.Invocation) handlers.Outcome {
		runs.Add(1)
		return handlertest.Succeed(nil)
	}
	inRig(t, fn, nil, func(r *rig) {
		r.store.DropSettleReplies(1)
		ids := r.enqueue(10, nil)
		for _, id := range ids {
			if j := r.awaitEnd(id); j.State != queue.StateSucceeded || len(j.Attempts) != 1 {
				t.Errorf("%s: %s with %d attempts, want succeeded with 1", id, j.State, len(j.Attempts))
			}
		}
		if err := r.host.Stop(context.Background()); err != nil {
			t.Fatal(err)
		}
		s := r.host.Stats()
		if runs.Load() != 10 || s.Settle.Resent == 0 || s.Settle.LeaseLost != 0 || s.Lease.Held != 0 {
			t.Errorf("runs %d, resent %d, lost %d, held %d; want 10, some, 0, 0", runs.Load(), s.Settle.Resent, s.Settle.LeaseLost, s.Lease.Held)
		}
	})
}

func TestAHandlerPastItsDeadlineIsEndedByTheHost(t *testing.T) {
	inRig(t, sleeping(0), func(o *host.Options) {
		// A runtime without deadlines of its own.
		o.Runtimes = append(o.Runtimes, &hosttest.Runtime{RuntimeName: "lax", Fn: sleeping(time.Hour)})
	}, func(r *rig) {
		r.host.Registry().SetLive(&handlers.Version{Type: "work", Number: 1, Runtime: "lax"})
		id := r.enqueue(1, func(s *queue.JobSpec) { s.Timeout, s.MaxAttempts = 5*time.Second, 1 })[0]
		j := r.awaitEnd(id)
		if j.State != queue.StateDead || j.LastError.Kind != "deadline" {
			t.Errorf("%s with %+v, want dead by its deadline", j.State, j.LastError)
		}
		if n := r.host.Stats().Lease.Overdue; n != 1 {
			t.Errorf("overdue %d, want 1", n)
		}
	})
}

package maintain

import (
	"context"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/taskhost/taskhost/host/hosttest"
	"github.com/taskhost/taskhost/host/lifecycle"
	"github.com/taskhost/taskhost/host/lifecycle/lifecycletest"
	"github.com/taskhost/taskhost/queue"
	"github.com/taskhost/taskhost/queue/memq"
)

const jobLease = 15 * time.Second

func fresh(t *testing.T, q *hosttest.Queue, holder string) *Service {
	return New(Options{Queue: q, Leaser: q, Holder: holder, TTL: jobLease * 2 / 3, Log: slog.New(slog.NewTextHandler(t.Output(), nil)), Random: func() float64 { return 0 }})
}

func started(t *testing.T, q *hosttest.Queue, holder string) *Service {
	t.Helper()
	s := fresh(t, q, holder)
	if err := s.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	return s
}

func TestWhatIsDueIsDoneWhenItIsDue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := hosttest.Wrap(memq.New(memq.Options{}))
		s := started(t, q, "w-1")
		specs := make([]queue.JobSpec, 50)
		for i := range specs {
			specs[i] = queue.JobSpec{Tenant: "acme", Queue: "default", Type: "work", Delay: time.Duration(i+1) * time.Minute}
		}
		if _, err := q.Enqueue(t.Context(), specs); err != nil {
			t.Fatal(err)
		}
		for i := range specs {
			time.Sleep(time.Minute)
			synctest.Wait()
			if n := s.Stats().Promoted; n != int64(i+1) {
				t.Fatalf("%d jobs promoted after %d minutes", n, i+1)
			}
		}
		s.Stop()
	})
}

func TestOneHostMaintainsAndAnotherTakesOver(t *testing.T) {
	for _, c := range []struct {
		name   string
		end    func(q *hosttest.Queue, first *Service)
		within time.Duration
	}{
		// The holder dies: the next one leads no later than a lease of a job after.
		{"after a death", func(_ *hosttest.Queue, first *Service) { first.loop.Interrupt() }, jobLease},
		{"after a stop", func(_ *hosttest.Queue, first *Service) { first.Stop() }, jobLease / 3},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				q := hosttest.Wrap(memq.New(memq.Options{}))
				dying := &deaf{Queue: q}
				first := New(Options{Queue: dying, Leaser: dying, Holder: "w-1", TTL: jobLease * 2 / 3, Log: slog.New(slog.DiscardHandler), Random: func() float64 { return 0 }})
				if err := first.Start(t.Context()); err != nil {
					t.Fatal(err)
				}
				time.Sleep(time.Second)
				second := started(t, q, "w-2")
				time.Sleep(time.Hour)
				if !first.Stats().Leading || second.Stats().Leading {
					t.Fatal("want the first host leading, and only that")
				}
				dying.dead = c.name == "after a death"
				c.end(q, first)
				time.Sleep(c.within)
				synctest.Wait()
				if !second.Stats().Leading {
					t.Errorf("the second host does not lead %s later", c.within)
				}
				second.Stop()
				first.Stop()
				// Handed back: another holder gets it at once.
				if ok, err := q.AcquireLease(t.Context(), LeaseName, "w-3", time.Second); err != nil || !ok {
					t.Errorf("the lease was not handed back (%v)", err)
				}
			})
		})
	}
}

// deaf stands in for a killed process: it hands nothing back.
type deaf struct {
	*hosttest.Queue
	dead bool
}

func (d *deaf) ReleaseLease(ctx context.Context, name, holder string) error {
	if d.dead {
		return nil
	}
	return d.Queue.ReleaseLease(ctx, name, holder)
}

func TestAnOutageIsWaitedOut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := hosttest.Wrap(memq.New(memq.Options{}))
		s := started(t, q, "w-1")
		q.Fail(queue.ErrUnavailable)
		time.Sleep(10 * time.Minute)
		if !s.Stats().StoreDown {
			t.Error("the outage is not reported")
		}
		if n := q.Maintains.Load(); n > 200 {
			t.Errorf("%d calls in ten minutes without the store", n)
		}
		q.Fail(nil)
		if _, err := q.Enqueue(t.Context(), []queue.JobSpec{{Tenant: "acme", Queue: "default", Type: "work", Delay: time.Minute}}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute + 5*time.Second)
		if st := s.Stats(); st.StoreDown || st.Promoted != 1 {
			t.Errorf("%+v, want one promoted", st)
		}
		s.Stop()
	})
}

func TestLifecycle(t *testing.T) {
	q := hosttest.Wrap(memq.New(memq.Options{}))
	lifecycletest.Stress(t, func(t *testing.T) lifecycle.Service { return fresh(t, q, "w-1") })
}

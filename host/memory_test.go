package host_test

import (
	"context"
	"strings"
	"sync"
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

// budgeted is a runtime whose jobs take 10 s and share a budget; it measures what is in flight.
type budgeted struct {
	*handlers.MemoryBudget
	*hosttest.Runtime

	mu             sync.Mutex
	jobs, mostJobs int
	used, most     int64
}

func newBudgeted(bytes int64) *budgeted {
	b := &budgeted{MemoryBudget: handlers.NewMemoryBudget(bytes)}
	b.Runtime = &hosttest.Runtime{RuntimeName: "func", Fn: func(_ context.Context, inv *handlers.Invocation) handlers.Outcome {
		b.add(1, inv.Limits.MemoryBytes)
		time.Sleep(10 * time.Second) // virtual
		b.add(-1, -inv.Limits.MemoryBytes)
		if time.Now().After(inv.Deadline) {
			return handlertest.Fail("its time was used up by waiting")
		}
		return handlertest.Succeed(nil)
	}}
	return b
}

func (b *budgeted) add(jobs int, bytes int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.jobs, b.used = b.jobs+jobs, b.used+bytes
	b.mostJobs, b.most = max(b.mostJobs, b.jobs), max(b.most, b.used)
}

func inBudget(t *testing.T, bytes int64, test func(r *rig, b *budgeted)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		b := newBudgeted(bytes)
		r := newRig(t, hosttest.Wrap(memq.New(memq.Options{})), b, func(o *host.Options) { o.Concurrency = 6 })
		r.host.Registry().SetLive(&handlers.Version{Type: "work", Number: 1, Runtime: "func", Limits: handlers.Limits{MemoryBytes: 64 << 20}})
		r.host.Registry().SetLive(&handlers.Version{Type: "small", Number: 1, Runtime: "func", Limits: handlers.Limits{MemoryBytes: 1 << 20}})
		if err := r.host.Start(t.Context()); err != nil {
			t.Fatal(err)
		}
		test(r, b)
		if err := r.host.Stop(context.Background()); err != nil {
			t.Errorf("stop: %v", err)
		}
		if err := r.store.Close(); err != nil {
			t.Error(err)
		}
	})
}

// A budget for two jobs and six slots: never more than two run at once, all end, and waiting takes nothing of their time.
func TestTheMemoryBudgetHolds(t *testing.T) {
	inBudget(t, 128<<20, func(r *rig, b *budgeted) {
		for _, id := range r.enqueue(20, func(s *queue.JobSpec) { s.Timeout = 11 * time.Second }) {
			if j := r.awaitEnd(id); j.State != queue.StateSucceeded || j.Attempt != 1 {
				t.Errorf("%s in attempt %d: %+v", j.State, j.Attempt, j.LastError)
			}
		}
		if b.mostJobs != 2 || b.most != 128<<20 {
			t.Errorf("%d jobs with %d bytes ran at once; want 2 with the whole budget", b.mostJobs, b.most)
		}
	})
}

// Jobs that fit are not blocked by those that do not.
func TestSmallJobsPassWhatDoesNotFit(t *testing.T) {
	inBudget(t, 66<<20, func(r *rig, b *budgeted) {
		large := r.enqueue(12, nil)
		small := r.enqueue(2, func(s *queue.JobSpec) { s.Type = "small" })
		var last time.Time
		for _, id := range small {
			if j := r.awaitEnd(id); j.State != queue.StateSucceeded {
				t.Errorf("%s: %+v", j.State, j.LastError)
			}
			last = time.Now()
		}
		for _, id := range large {
			if j := r.awaitEnd(id); j.State != queue.StateSucceeded {
				t.Errorf("%s: %+v", j.State, j.LastError)
			}
		}
		if took := time.Since(last); took < time.Minute {
			t.Errorf("the small jobs ended only %s before the 12 large ones, which take two minutes", took)
		}
		if b.most > 66<<20 {
			t.Errorf("%d bytes at once", b.most)
		}
	})
}

// What is more than the whole budget is refused at once, with both sizes.
func TestMoreThanTheWholeBudgetIsRefused(t *testing.T) {
	_, err := handlers.NewMemoryBudget(100).ReserveMemory(t.Context(), 101)
	if err == nil || !strings.Contains(err.Error(), "101 bytes") || !strings.Contains(err.Error(), "100 bytes") {
		t.Errorf("got %v, want both sizes", err)
	}
}

// After so many have passed a job that does not fit, memory is kept for it.
func TestALargeReservationIsNotPassedForEver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := handlers.NewMemoryBudget(100)
		release, err := b.ReserveMemory(t.Context(), 50)
		if err != nil {
			t.Fatal(err)
		}
		got := make(chan error)
		go func() {
			r, err := b.ReserveMemory(t.Context(), 100)
			if err == nil {
				defer r()
			}
			got <- err
		}()
		synctest.Wait()
		passed := 0
		for ; passed < 1000; passed++ {
			ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
			r, err := b.ReserveMemory(ctx, 50)
			cancel()
			if err != nil {
				break
			}
			r()
		}
		if passed == 0 || passed > 100 {
			t.Errorf("%d reservations passed it", passed)
		}
		release()
		if err := <-got; err != nil {
			t.Error(err)
		}
	})
}

package host_test

import (
	"context"
	"fmt"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/taskhost/taskhost/handlers"
	"github.com/taskhost/taskhost/handlers/handlertest"
	"github.com/taskhost/taskhost/host"
	"github.com/taskhost/taskhost/host/hosttest"
	"github.com/taskhost/taskhost/queue"
	"github.com/taskhost/taskhost/queue/memq"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// rig is a host over the in-memory engine, with one handler type "work" that runs a Go function. It lives in a synctest
// bubble, so its time is virtual.
type rig struct {
	t     *testing.T
	store *hosttest.Queue
	host  *host.Host
}

type handler = func(ctx context.Context, inv *handlers.Invocation) handlers.Outcome

// inRig runs test with a started host. The host is stopped at the end if the test did not do so.
func inRig(t *testing.T, fn handler, change func(*host.Options), test func(r *rig)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, hosttest.Wrap(memq.New(memq.Options{})), handlertest.NewFunc("func", 64, fn), change)
		r.host.Registry().SetLive(&handlers.Version{Type: "work", Number: 3, Runtime: "func"})
		if err := r.host.Start(t.Context()); err != nil {
			t.Fatal(err)
		}
		test(r)
		r.store.Fail(nil)
		if err := r.host.Stop(context.Background()); err != nil {
			t.Errorf("stop: %v", err)
		}
		if err := r.store.Close(); err != nil {
			t.Error(err)
		}
	})
}

func newRig(t *testing.T, store *hosttest.Queue, rt handlers.Runtime, change func(*host.Options)) *rig {
	t.Helper()
	o := host.Options{Store: store, Runtimes: []handlers.Runtime{rt}, Log: slog.New(slog.NewTextHandler(t.Output(), nil)), Random: func() float64 { return 0 }}
	if change != nil {
		change(&o)
	}
	h, err := host.New(o)
	if err != nil {
		t.Fatal(err)
	}
	return &rig{t: t, store: store, host: h}
}

// enqueue adds n jobs of type work and returns their ids in order.
func (r *rig) enqueue(n int, change func(*queue.JobSpec)) []string {
	r.t.Helper()
	specs := make([]queue.JobSpec, n)
	for i := range specs {
		specs[i] = queue.JobSpec{Tenant: "acme", Queue: "default", Type: "work", Payload: fmt.Appendf(nil, "%d", i), MaxAttempts: 3}
		if change != nil {
			change(&specs[i])
		}
	}
	outcomes, err := r.store.Enqueue(context.Background(), specs)
	if err != nil {
		r.t.Fatal(err)
	}
	ids := make([]string, n)
	for i, o := range outcomes {
		if o.Status != queue.EnqueueCreated {
			r.t.Fatalf("job %d: %s (%v)", i, o.Status, o.Err)
		}
		ids[i] = o.ID
	}
	return ids
}

func (r *rig) job(id string) *queue.Job {
	r.t.Helper()
	j, err := r.store.GetJob(context.Background(), "acme", id)
	if err != nil {
		r.t.Fatal(err)
	}
	return j
}

// await blocks until the job satisfies ok.
func (r *rig) await(id string, ok func(*queue.Job) bool) *queue.Job {
	r.t.Helper()
	w, err := r.store.WatchJob(context.Background(), "acme", id)
	if err != nil {
		r.t.Fatal(err)
	}
	defer w.Stop()
	limit := time.NewTimer(24 * time.Hour) // virtual
	defer limit.Stop()
	for {
		if j := r.job(id); ok(j) {
			return j
		}
		select {
		case <-w.C:
		case <-limit.C:
			r.t.Fatalf("job never got there: %+v", r.job(id))
		}
	}
}

func (r *rig) awaitEnd(id string) *queue.Job {
	r.t.Helper()
	return r.await(id, func(j *queue.Job) bool { return j.State.Terminal() })
}

func (r *rig) awaitState(id string, s queue.State) *queue.Job {
	r.t.Helper()
	return r.await(id, func(j *queue.Job) bool { return j.State == s })
}

// sleeping is a handler that takes d, and stops when it is told to.
func sleeping(d time.Duration) handler {
	return func(ctx context.Context, _ *handlers.Invocation) handlers.Outcome {
		select {
		case <-time.After(d):
			return handlertest.Succeed([]byte("ok"))
		case <-ctx.Done():
			return handlers.Outcome{Kind: handlers.OutcomeInterrupted}
		}
	}
}

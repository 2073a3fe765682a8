package host_test

import (
	"context"
	"errors"
	"slices"
	"strconv"
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

func TestCase116JobsFinishWithinTheDrain(t *testing.T) {
	inRig(t, sleeping(3*time.Second), func(o *host.Options) { o.Drain = 10 * time.Second }, func(r *rig) {
		ids := r.enqueue(20, nil)
		time.Sleep(time.Second)
		begin := time.Now()
		if err := r.host.Stop(r.t.Context()); err != nil {
			t.Fatal(err)
		}
		if took := time.Since(begin); took > 3*time.Second {
			t.Errorf("drain took %s, the jobs had 2 s left", took)
		}
		for _, id := range ids {
			if j := r.job(id); j.State != queue.StateSucceeded || len(j.Attempts) != 1 || j.Attempt != 1 {
				t.Errorf("%s: %s after %d attempts, want succeeded after 1", id, j.State, len(j.Attempts))
			}
		}
	})
}

func TestCase116LongJobsGoBackToTheFrontInOrder(t *testing.T) {
	// They stop one after the other and in another order than they were reserved in, as real ones do.
	fn := func(ctx context.Context, inv *handlers.Invocation) handlers.Outcome {
		out := sleeping(time.Minute)(ctx, inv)
		n, err := strconv.Atoi(string(inv.Payload))
		if err != nil {
			return handlertest.Fail(err.Error())
		}
		time.Sleep(time.Duration(n*7%20) * 20 * time.Millisecond)
		return out
	}
	inRig(t, fn, func(o *host.Options) { o.Drain, o.Concurrency = 5*time.Second, 20 }, func(r *rig) {
		ids := r.enqueue(30, nil) // ten of them stay queued
		time.Sleep(time.Second)
		begin := time.Now()
		if err := r.host.Stop(r.t.Context()); err != nil {
			t.Fatal(err)
		}
		if took := time.Since(begin); took > 6*time.Second {
			t.Errorf("stop took %s, want at most the drain of 5s and a second", took)
		}
		for _, id := range ids[:20] {
			j := r.job(id)
			if j.State != queue.StateReady || j.Attempt != 0 || j.Crashes != 0 || j.Interruptions != 1 {
				t.Errorf("%s: %s, attempt %d, crashes %d, interruptions %d; want ready, 0, 0, 1", id, j.State, j.Attempt, j.Crashes, j.Interruptions)
			}
		}
		jobs, err := r.store.Reserve(r.t.Context(), queue.ReserveParams{Worker: "w-next", Max: 30, Lease: time.Minute})
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, j := range jobs {
			got = append(got, j.ID)
		}
		if !slices.Equal(got, ids) {
			t.Errorf("order after the release:\n got %v\nwant %v", got, ids)
		}
	})
}

func TestSecondSignalCutsTheDrainShort(t *testing.T) {
	inRig(t, sleeping(time.Hour), func(o *host.Options) { o.Drain = 2 * time.Hour }, func(r *rig) {
		ids := r.enqueue(3, nil)
		time.Sleep(time.Second)
		stopped := make(chan time.Time)
		go func() {
			if err := r.host.Stop(context.Background()); err != nil {
				t.Error(err)
			}
			stopped <- time.Now()
		}()
		time.Sleep(10 * time.Second)
		second := time.Now()
		r.host.Kill()
		if took := (<-stopped).Sub(second); took > time.Second {
			t.Errorf("stop returned %s after the second signal", took)
		}
		for _, id := range ids {
			if j := r.job(id); j.State != queue.StateReady {
				t.Errorf("%s is %s, want ready", id, j.State)
			}
		}
	})
}

func TestKillEndsAStopWhileTheStoreIsAway(t *testing.T) {
	inRig(t, sleeping(time.Second), nil, func(r *rig) {
		r.enqueue(3, nil)
		time.Sleep(500 * time.Millisecond)
		r.store.Fail(queue.ErrUnavailable)
		stopped := make(chan time.Time)
		go func() {
			_ = r.host.Stop(context.Background())
			stopped <- time.Now()
		}()
		time.Sleep(3 * time.Second)
		second := time.Now()
		r.host.Kill()
		if took := (<-stopped).Sub(second); took > 2*time.Second {
			t.Errorf("stop returned %s after the second signal", took)
		}
		if n := r.host.Stats().Settle.GivenUp; n != 3 {
			t.Errorf("%d settlements given up, want 3", n)
		}
	})
}

func TestStopNamesJobsThatDoNotStop(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begun, release := make(chan struct{}), make(chan struct{})
		store := hosttest.Wrap(memq.New(memq.Options{}))
		deaf := handlertest.NewFunc("func", 4, func(context.Context, *handlers.Invocation) handlers.Outcome {
			close(begun)
			<-release
			return handlertest.Succeed(nil)
		})
		r := newRig(t, store, deaf, func(o *host.Options) { o.Drain = -1 })
		r.host.Registry().SetLive(&handlers.Version{Type: "work", Number: 1, Runtime: "func"})
		if err := r.host.Start(r.t.Context()); err != nil {
			t.Fatal(err)
		}
		ids := r.enqueue(1, nil)
		<-begun
		err := r.host.Stop(r.t.Context())
		stuck, ok := errors.AsType[*host.StuckError](err)
		if !ok || stuck.Busy != 1 || !slices.Equal(stuck.Jobs, ids) {
			t.Errorf("stop: got %v, want a StuckError naming %v", err, ids)
		}
		close(release)
		synctest.Wait()
		_ = store.Close()
	})
}

func TestStopBeforeStartAndTwice(t *testing.T) {
	r := newRig(t, hosttest.Wrap(memq.New(memq.Options{})), handlertest.NewFunc("func", 1, sleeping(0)), nil)
	for range 2 {
		if err := r.host.Stop(r.t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if err := r.host.Start(r.t.Context()); err == nil {
		t.Fatal("a stopped host was started")
	}
}

func TestReserveUnderWayAtStopIsGivenBack(t *testing.T) {
	inRig(t, sleeping(time.Hour), func(o *host.Options) { o.Drain = -1 }, func(r *rig) {
		// The reply of the Reserve arrives after Stop began.
		r.store.DelayReserve(3 * time.Second)
		ids := r.enqueue(2, nil)
		time.Sleep(time.Second)
		if err := r.host.Stop(r.t.Context()); err != nil {
			t.Fatal(err)
		}
		r.store.DelayReserve(0)
		for _, id := range ids {
			if j := r.job(id); j.State != queue.StateReady || j.Crashes != 0 {
				t.Errorf("%s is %s with %d crashes, want ready and 0", id, j.State, j.Crashes)
			}
		}
		if s := r.host.Stats().Run; s.Interrupted != 2 {
			t.Errorf("%d given back, want 2", s.Interrupted)
		}
	})
}

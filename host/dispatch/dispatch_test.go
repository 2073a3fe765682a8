package dispatch

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/taskhost/taskhost/host/lifecycle"
	"github.com/taskhost/taskhost/host/lifecycle/lifecycletest"
	"github.com/taskhost/taskhost/queue"
)

// line is a queue of n jobs.
type line struct {
	mu     sync.Mutex
	jobs   int
	err    error
	hint   chan struct{}
	latent time.Duration // of Reserve
	vain   bool          // Wait returns at once
}

func (l *line) Reserve(_ context.Context, p queue.ReserveParams) ([]*queue.Job, error) {
	time.Sleep(l.latent)
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.err != nil {
		return nil, l.err
	}
	n := min(p.Max, l.jobs)
	l.jobs -= n
	jobs := make([]*queue.Job, n)
	for i := range jobs {
		jobs[i] = &queue.Job{}
	}
	return jobs, nil
}

func (l *line) Wait(ctx context.Context, _ queue.View) error {
	if l.vain {
		return nil
	}
	select {
	case <-l.hint:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func (l *line) set(jobs int, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.jobs, l.err = jobs, err
}

// sleepers are attempts that take a time.
type sleepers struct {
	take     time.Duration
	running  atomic.Int64
	most     atomic.Int64
	done     atomic.Int64
	released atomic.Int64
}

type sleeper struct{ s *sleepers }

func (a sleeper) Run() {
	n := a.s.running.Add(1)
	for m := a.s.most.Load(); n > m && !a.s.most.CompareAndSwap(m, n); m = a.s.most.Load() {
	}
	time.Sleep(a.s.take)
	a.s.running.Add(-1)
	a.s.done.Add(1)
}

func (s *sleepers) Take(jobs []*queue.Job, _ time.Time) []Attempt {
	out := make([]Attempt, len(jobs))
	for i := range out {
		out[i] = sleeper{s}
	}
	return out
}

func (s *sleepers) Release(a []Attempt) { s.released.Add(int64(len(a))) }

func fresh(t *testing.T, l *line, s *sleepers, slots int) *Dispatcher {
	l.hint = make(chan struct{}, 1)
	return New(Options{Queue: l, Runner: s, Worker: "w", Slots: slots, Lease: time.Second,
		Log: slog.New(slog.NewTextHandler(t.Output(), nil)), Random: func() float64 { return 0 }})
}

func TestNeverMoreThanTheSlotsAndAllOfThem(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, s := &line{jobs: 1000}, &sleepers{take: time.Second}
		d := fresh(t, l, s, 10)
		begin := time.Now()
		if err := d.Start(t.Context()); err != nil {
			t.Fatal(err)
		}
		for s.done.Load() < 1000 {
			time.Sleep(100 * time.Millisecond)
		}
		if took := time.Since(begin); took > 101*time.Second {
			t.Errorf("1000 jobs of 1 s in 10 slots took %s: slots stood idle", took)
		}
		d.Stop()
		if m := s.most.Load(); m != 10 {
			t.Errorf("at most %d at once, want 10", m)
		}
		// Slots that become free together are filled together.
		if n := d.Stats().Reserves; n > 300 {
			t.Errorf("%d reserves for 100 rounds of 10 jobs", n)
		}
	})
}

func TestSlotsFreedDuringAReserveAreGathered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, s := &line{jobs: 10000, latent: 10 * time.Millisecond}, &sleepers{take: time.Millisecond}
		d := fresh(t, l, s, 20)
		if err := d.Start(t.Context()); err != nil {
			t.Fatal(err)
		}
		for s.done.Load() < 10000 {
			time.Sleep(10 * time.Millisecond)
		}
		d.Stop()
		if n := d.Stats().Reserves; n > 10000/20+10 {
			t.Errorf("%d reserves for 10000 jobs in 20 slots, want about 500", n)
		}
	})
}

func TestAStoreErrorBacksOffAndRunningJobsGoOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, s := &line{jobs: 3}, &sleepers{take: time.Minute}
		d := fresh(t, l, s, 10)
		if err := d.Start(t.Context()); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Second)
		l.set(5, queue.ErrUnavailable)
		l.hint <- struct{}{}
		time.Sleep(59*time.Second + time.Millisecond)
		if n := s.done.Load(); n != 3 {
			t.Errorf("%d of the running jobs ended, want 3", n)
		}
		if n := d.Stats().Reserves; n > 30 {
			t.Errorf("%d reserves in a minute without the store", n)
		}
		if !d.Stats().StoreDown {
			t.Error("the outage is not reported")
		}
		l.set(5, nil)
		time.Sleep(5*time.Second + time.Millisecond) // the longest backoff
		if n := s.running.Load(); n != 5 {
			t.Errorf("%d jobs run after the store came back, want 5", n)
		}
		d.Stop()
	})
}

func TestWrongHintsDoNotSpin(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := &line{vain: true}
		d := fresh(t, l, &sleepers{}, 1)
		if err := d.Start(t.Context()); err != nil {
			t.Fatal(err)
		}
		time.Sleep(10 * time.Second)
		d.Stop()
		if n := d.Stats().Reserves; n > 600 {
			t.Errorf("%d reserves in 10 s of wrong hints, want about 500", n)
		}
	})
}

func TestNothingRunsAfterStopReserving(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, s := &line{jobs: 4, latent: time.Second}, &sleepers{}
		d := fresh(t, l, s, 4)
		if err := d.Start(t.Context()); err != nil {
			t.Fatal(err)
		}
		time.Sleep(500 * time.Millisecond)
		d.StopReserving()
		if got := fmt.Sprint(s.released.Load(), s.done.Load(), s.running.Load()); got != "4 0 0" {
			t.Errorf("released, done, running: %s; want 4 0 0", got)
		}
		if err := d.WaitIdle(t.Context()); err != nil {
			t.Error(err)
		}
		d.Stop()
	})
}

func TestLifecycle(t *testing.T) {
	lifecycletest.Stress(t, func(t *testing.T) lifecycle.Service { return fresh(t, &line{jobs: 3}, &sleepers{}, 2) })
}

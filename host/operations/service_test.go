package operations

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/taskhost/taskhost/host/lifecycle"
	"github.com/taskhost/taskhost/host/lifecycle/lifecycletest"
	"github.com/taskhost/taskhost/queue"
	"github.com/taskhost/taskhost/queue/memq"
)

// slowDead is the store's dead letters with a hook before and after each chunk.
type slowDead struct {
	*memq.Store
	before func(n int) error
	after  func(n int) error
	chunks atomic.Int64
}

func (d *slowDead) ReplayDead(ctx context.Context, f queue.DeadFilter, to string, limit int) (queue.DeadChunk, error) {
	n := int(d.chunks.Add(1))
	if d.before != nil {
		if err := d.before(n); err != nil {
			return queue.DeadChunk{}, err
		}
	}
	c, err := d.Store.ReplayDead(ctx, f, to, limit)
	if d.after != nil && err == nil {
		if err := d.after(n); err != nil {
			return queue.DeadChunk{}, err
		}
	}
	return c, err
}

func fresh(t *testing.T, d *slowDead, change func(*Options)) *Service {
	t.Helper()
	o := Options{Dead: d, Jobs: d.Store, Bulk: d.Store, Records: d.Store, Holder: "w-1", Now: d.Now, Log: slog.New(slog.NewTextHandler(t.Output(), nil)),
		Random: func() float64 { return 0 }, Entropy: rand.Reader, Chunk: 10}
	if change != nil {
		change(&o)
	}
	return New(o)
}

func started(t *testing.T, d *slowDead, change func(*Options)) *Service {
	t.Helper()
	s := fresh(t, d, change)
	if err := s.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	return s
}

// kill makes n jobs and lets them die.
func kill(t *testing.T, store *memq.Store, n int, tenant, typ string) {
	t.Helper()
	specs := make([]queue.JobSpec, n)
	for i := range specs {
		specs[i] = queue.JobSpec{Tenant: tenant, Queue: "default", Type: typ}
	}
	if _, err := store.Enqueue(t.Context(), specs); err != nil {
		t.Fatal(err)
	}
	jobs, err := store.Reserve(t.Context(), queue.ReserveParams{Worker: "w", View: queue.View{Queues: []string{"default"}}, Max: n, Lease: time.Minute})
	if err != nil || len(jobs) != n {
		t.Fatalf("reserved %d of %d (%v)", len(jobs), n, err)
	}
	var settlements []queue.Settlement
	for _, j := range jobs {
		settlements = append(settlements, queue.Settlement{Ref: queue.Ref{ID: j.ID, Token: j.Token}, Verb: queue.VerbDead, Error: &queue.JobError{Kind: "permanent", Message: "no"}})
	}
	if _, err := store.Settle(t.Context(), settlements); err != nil {
		t.Fatal(err)
	}
}

func dead(t *testing.T, store *memq.Store, tenant string) int {
	t.Helper()
	n, err := store.CountDead(t.Context(), queue.DeadFilter{Tenant: tenant})
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func get(t *testing.T, s *Service, id string) Operation {
	t.Helper()
	op, err := s.Get(t.Context(), "acme", id)
	if err != nil {
		t.Fatal(err)
	}
	return op
}

func TestReplayAndPurgeInChunks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &slowDead{Store: memq.New(memq.Options{})}
		kill(t, d.Store, 35, "acme", "a")
		kill(t, d.Store, 5, "acme", "b")
		kill(t, d.Store, 5, "other", "a")
		s := started(t, d, nil)
		defer s.Stop()
		count := 35
		op, err := s.Create(t.Context(), "acme", ActionReplay, queue.DeadFilter{Tenant: "other", Type: "a"}, "low", &count, false)
		if err != nil || op.State != StateRunning || op.Matched != 35 || !strings.HasPrefix(op.ID, "op_") {
			t.Fatalf("%+v, %v", op, err)
		}
		synctest.Wait()
		if op = get(t, s, op.ID); op.State != StateSucceeded || op.Done != 35 || op.Skipped != 0 || op.FinishedAt == nil {
			t.Errorf("%+v", op)
		}
		if n := d.chunks.Load(); n != 4 {
			t.Errorf("%d chunks, want 4", n)
		}
		low, err := d.GetQueue(t.Context(), "acme", "low")
		if err != nil || low.Ready != 35 || dead(t, d.Store, "acme") != 5 || dead(t, d.Store, "other") != 5 {
			t.Errorf("low has %d ready (%v), dead: %d and %d; want 35, 5 and 5", low.Ready, err, dead(t, d.Store, "acme"), dead(t, d.Store, "other"))
		}
		purge, err := s.Create(t.Context(), "acme", ActionPurge, queue.DeadFilter{}, "", nil, false)
		if err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if op := get(t, s, purge.ID); op.Done != 5 || dead(t, d.Store, "acme") != 0 || dead(t, d.Store, "other") != 5 {
			t.Errorf("%+v", op)
		}
		ops, err := s.List(t.Context(), "acme")
		if err != nil || len(ops) != 2 || ops[0].ID != purge.ID {
			t.Errorf("%+v, %v", ops, err)
		}
		if _, err := s.Get(t.Context(), "other", purge.ID); !errors.Is(err, queue.ErrNotFound) {
			t.Errorf("another tenant's: %v, want ErrNotFound", err)
		}
		if _, err := s.Cancel(t.Context(), "acme", purge.ID); !errors.Is(err, queue.ErrConflict) {
			t.Errorf("cancel of a finished one: %v, want ErrConflict", err)
		}
	})
}

func TestTheCountIsCheckedAndADryRunDoesNothing(t *testing.T) {
	d := &slowDead{Store: memq.New(memq.Options{})}
	kill(t, d.Store, 3, "acme", "a")
	s := started(t, d, nil)
	defer s.Stop()
	four := 4
	_, err := s.Create(t.Context(), "acme", ActionPurge, queue.DeadFilter{}, "", &four, false)
	if e, ok := errors.AsType[*CountChangedError](err); !ok || e.Matched != 3 || e.Expected != 4 || !errors.Is(err, queue.ErrConflict) {
		t.Errorf("got %v", err)
	}
	op, err := s.Create(t.Context(), "acme", ActionPurge, queue.DeadFilter{}, "", nil, true)
	if err != nil || op.Matched != 3 || op.ID != "" || !op.DryRun || op.Filter.DeadBefore.IsZero() {
		t.Errorf("%+v, %v", op, err)
	}
	if ops, err := s.List(t.Context(), "acme"); err != nil || len(ops) != 0 || dead(t, d.Store, "acme") != 3 {
		t.Errorf("%d operations (%v), %d dead; want 0, 3", len(ops), err, dead(t, d.Store, "acme"))
	}
	for _, bad := range []struct {
		tenant string
		action Action
		to     string
	}{{"", ActionPurge, ""}, {"acme", "erase", ""}, {"acme", ActionPurge, "low"}, {"acme", ActionReplay, "no/such"}} {
		if _, err := s.Create(t.Context(), bad.tenant, bad.action, queue.DeadFilter{}, bad.to, nil, false); !errors.Is(err, queue.ErrInvalid) {
			t.Errorf("%+v: %v, want ErrInvalid", bad, err)
		}
	}
}

func TestJobsThatDieLaterAreNotSweptIn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &slowDead{Store: memq.New(memq.Options{})}
		kill(t, d.Store, 15, "acme", "a")
		d.before = func(n int) error {
			if n == 2 {
				time.Sleep(time.Second)
				kill(t, d.Store, 7, "acme", "a")
			}
			return nil
		}
		s := started(t, d, nil)
		defer s.Stop()
		// The replayed jobs go elsewhere, so those that die meanwhile are new ones, ahead of where the operation is.
		op, err := s.Create(t.Context(), "acme", ActionReplay, queue.DeadFilter{}, "low", nil, false)
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute)
		if op = get(t, s, op.ID); op.State != StateSucceeded || op.Done != 15 || dead(t, d.Store, "acme") != 7 {
			t.Errorf("%+v, %d dead; want 15 done and 7 dead", op, dead(t, d.Store, "acme"))
		}
	})
}

func TestAnOperationIsResumedAfterItsHostDied(t *testing.T) {
	for _, lost := range []bool{false, true} {
		t.Run(fmt.Sprintf("progress lost=%t", lost), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				d := &slowDead{Store: memq.New(memq.Options{})}
				kill(t, d.Store, 45, "acme", "a")
				first := started(t, d, nil)
				stop := func(n int) error {
					if n == 3 {
						first.cancel(errors.New("killed"))
						return queue.ErrUnavailable
					}
					return nil
				}
				if lost { // the chunk took effect, its progress was not stored
					d.after = stop
				} else {
					d.before = stop
				}
				op, err := first.Create(t.Context(), "acme", ActionReplay, queue.DeadFilter{}, "", nil, false)
				if err != nil {
					t.Fatal(err)
				}
				synctest.Wait()
				first.Stop()
				if op = get(t, first, op.ID); op.State != StateRunning || op.Done != 20 {
					t.Fatalf("after the death: %+v, want running with 20 done", op)
				}
				d.before, d.after = nil, nil
				second := started(t, d, nil)
				defer second.Stop()
				synctest.Wait()
				if op = get(t, second, op.ID); op.State != StateSucceeded || op.Done != 45 || dead(t, d.Store, "acme") != 0 {
					t.Errorf("%+v, %d dead", op, dead(t, d.Store, "acme"))
				}
			})
		})
	}
}

func TestCancelKeepsWhatWasDone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &slowDead{Store: memq.New(memq.Options{})}
		kill(t, d.Store, 95, "acme", "a")
		d.before = func(int) error { time.Sleep(time.Second); return nil }
		s := started(t, d, nil)
		defer s.Stop()
		op, err := s.Create(t.Context(), "acme", ActionReplay, queue.DeadFilter{}, "", nil, false)
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(3500 * time.Millisecond)
		for range 2 {
			if got, err := s.Cancel(t.Context(), "acme", op.ID); err != nil || got.State != StateCancelled {
				t.Fatalf("%+v, %v", got, err)
			}
		}
		time.Sleep(time.Minute)
		if op = get(t, s, op.ID); op.State != StateCancelled || op.Done != 40 || dead(t, d.Store, "acme") != 55 {
			t.Errorf("%+v, %d dead; want the chunk under way booked: 40 done, 55 dead", op, dead(t, d.Store, "acme"))
		}
	})
}

func TestAnOutageIsWaitedOutAndARefusalFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &slowDead{Store: memq.New(memq.Options{})}
		kill(t, d.Store, 25, "acme", "a")
		d.before = func(n int) error {
			if n == 2 || n == 3 {
				return queue.ErrUnavailable
			}
			return nil
		}
		s := started(t, d, nil)
		defer s.Stop()
		op, err := s.Create(t.Context(), "acme", ActionReplay, queue.DeadFilter{}, "", nil, false)
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute)
		if op = get(t, s, op.ID); op.State != StateSucceeded || op.Done != 25 {
			t.Errorf("%+v", op)
		}
		kill(t, d.Store, 5, "acme", "a")
		d.before = func(int) error { return &queue.InvalidError{Field: "to_queue", Reason: "is full"} }
		op, err = s.Create(t.Context(), "acme", ActionReplay, queue.DeadFilter{}, "", nil, false)
		if err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if op = get(t, s, op.ID); op.State != StateFailed || op.Failed != 5 || op.Error != "to_queue: is full" {
			t.Errorf("%+v", op)
		}
	})
}

func TestOnlyOneHostWorksOnAnOperation(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &slowDead{Store: memq.New(memq.Options{})}
		kill(t, d.Store, 95, "acme", "a")
		var at, most atomic.Int64
		d.before = func(int) error {
			if n := at.Add(1); n > most.Load() {
				most.Store(n)
			}
			time.Sleep(10 * time.Second)
			at.Add(-1)
			return nil
		}
		host := func(name string) *Service {
			return started(t, d, func(o *Options) { o.Leaser, o.Holder = d.Store, name })
		}
		a := host("w-a")
		op, err := a.Create(t.Context(), "acme", ActionReplay, queue.DeadFilter{}, "", nil, false)
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Second)
		b := host("w-b")
		time.Sleep(5 * time.Minute)
		if op = get(t, b, op.ID); op.State != StateSucceeded || op.Done != 95 || most.Load() != 1 {
			t.Errorf("%+v, %d hosts at once", op, most.Load())
		}
		a.Stop()
		b.Stop()
	})
}

func TestOperationIsTheJSONOfTheAPI(t *testing.T) {
	b, err := json.Marshal(Operation{ID: "op_1", Action: ActionReplay, State: StateRunning, Matched: 412, Done: 120, Skipped: 1})
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{`"id":"op_1"`, `"action":"replay"`, `"state":"running"`, `"matched":412`, `"done":120`, `"skipped":1`, `"failed":0`} {
		if !slices.Contains(strings.Split(strings.Trim(string(b), "{}"), ","), want) {
			t.Errorf("%s lacks %s", b, want)
		}
	}
}

func TestLifecycle(t *testing.T) {
	lifecycletest.Stress(t, func(t *testing.T) lifecycle.Service { return fresh(t, &slowDead{Store: memq.New(memq.Options{})}, nil) })
}

func TestADamagedRecordDoesNotKeepTheOthersFromBeingResumed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &slowDead{Store: memq.New(memq.Options{})}
		kill(t, d.Store, 5, "acme", "a")
		first := fresh(t, d, nil) // never started: what it creates is left for the next one
		op, err := first.Create(t.Context(), "acme", ActionReplay, queue.DeadFilter{}, "", nil, false)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := d.PutRecord(t.Context(), kind, key("acme", "op_0"), []byte("{"), queue.AnyRevision); err != nil {
			t.Fatal(err)
		}
		s := started(t, d, nil)
		defer s.Stop()
		synctest.Wait()
		if op = get(t, s, op.ID); op.State != StateSucceeded || op.Done != 5 {
			t.Errorf("%+v", op)
		}
	})
}

// bulkFunc is called around each ChangeJobs.
type bulkFunc func(next func() ([]queue.ChangeOutcome, error)) ([]queue.ChangeOutcome, error)

type hookedBulk struct {
	queue.Bulk
	hook bulkFunc
}

func (f bulkFunc) of(b queue.Bulk) queue.Bulk { return hookedBulk{b, f} }

func (h hookedBulk) ChangeJobs(ctx context.Context, tenant string, c queue.Change, ids []string) ([]queue.ChangeOutcome, error) {
	return h.hook(func() ([]queue.ChangeOutcome, error) { return h.Bulk.ChangeJobs(ctx, tenant, c, ids) })
}

package operations

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/taskhost/taskhost/queue"
	"github.com/taskhost/taskhost/queue/memq"
)

func enqueue(t *testing.T, store *memq.Store, n int, s queue.JobSpec) []string {
	t.Helper()
	specs := make([]queue.JobSpec, n)
	for i := range specs {
		s.Payload = fmt.Append(nil, i)
		specs[i] = s
	}
	out, err := store.Enqueue(t.Context(), specs)
	if err != nil {
		t.Fatal(err)
	}
	ids := make([]string, n)
	for i, o := range out {
		ids[i] = o.ID
	}
	return ids
}

func countState(t *testing.T, store *memq.Store, f queue.JobFilter) int {
	t.Helper()
	f.Tenant, f.Limit = "acme", 500
	page, err := store.ListJobs(t.Context(), f)
	if err != nil || page.Next != "" {
		t.Fatal(page.Next, err)
	}
	return len(page.Jobs)
}

func create(t *testing.T, s *Service, req JobsRequest) Operation {
	t.Helper()
	op, err := s.CreateJobs(t.Context(), "acme", req)
	if err != nil {
		t.Fatal(err)
	}
	return op
}

// Everything that is not finished is cancelled, whatever its state and though jobs start meanwhile; jobs of others, and those that came later, are not.
func TestCancelByFilter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &slowDead{Store: memq.New(memq.Options{})}
		enqueue(t, d.Store, 35, queue.JobSpec{Tenant: "acme", Queue: "q", Type: "a"})
		enqueue(t, d.Store, 5, queue.JobSpec{Tenant: "acme", Queue: "q", Type: "a", Delay: time.Hour})
		enqueue(t, d.Store, 4, queue.JobSpec{Tenant: "acme", Queue: "q", Type: "b"})
		enqueue(t, d.Store, 3, queue.JobSpec{Tenant: "other", Queue: "q", Type: "a"})
		if jobs, err := d.Reserve(t.Context(), queue.ReserveParams{Worker: "w", View: queue.View{Queues: []string{"q"}}, Max: 4, Lease: time.Minute}); err != nil || len(jobs) != 4 {
			t.Fatal(len(jobs), err)
		}
		s := started(t, d, nil)
		defer s.Stop()
		dry := create(t, s, JobsRequest{Action: ActionCancel, Filter: JobsFilter{Type: "a"}, DryRun: true})
		op := create(t, s, JobsRequest{Action: ActionCancel, Filter: JobsFilter{Type: "a"}})
		synctest.Wait()
		late := enqueue(t, d.Store, 1, queue.JobSpec{Tenant: "acme", Queue: "q", Type: "a"})
		op = get(t, s, op.ID)
		if op.State != StateSucceeded || op.Done != op.Matched || op.Skipped != 0 || op.Matched != dry.Matched || dry.ID != "" {
			t.Errorf("%+v after a dry run of %+v", op, dry)
		}
		if n := countState(t, d.Store, queue.JobFilter{Type: "a", States: []queue.State{queue.StateReady, queue.StateScheduled}}); n != 1 {
			t.Errorf("%d jobs wait, want the one that came later, %s", n, late[0])
		}
		if n := countState(t, d.Store, queue.JobFilter{Type: "b", States: []queue.State{queue.StateReady, queue.StateRunning}}); n != 4 {
			t.Errorf("%d of 4 jobs of another type are left", n)
		}
	})
}

func TestRetryEraseAndPurgeByFilter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &slowDead{Store: memq.New(memq.Options{})}
		kill(t, d.Store, 25, "acme", "a")
		kill(t, d.Store, 2, "other", "a")
		retried := enqueue(t, d.Store, 12, queue.JobSpec{Tenant: "acme", Queue: "r", Type: "a", MaxAttempts: 5})
		jobs, err := d.Reserve(t.Context(), queue.ReserveParams{Worker: "w", View: queue.View{Queues: []string{"r"}}, Max: 12, Lease: time.Minute})
		if err != nil {
			t.Fatal(err)
		}
		var list []queue.Settlement
		for _, j := range jobs {
			list = append(list, queue.Settlement{Ref: queue.Ref{ID: j.ID, Token: j.Token}, Verb: queue.VerbNack, Delay: time.Hour, Error: &queue.JobError{Kind: "k", Message: "m"}})
		}
		if _, err := d.Settle(t.Context(), list); err != nil {
			t.Fatal(err)
		}
		enqueue(t, d.Store, 3, queue.JobSpec{Tenant: "acme", Queue: "r", Type: "a", Delay: time.Hour})
		s := started(t, d, nil)
		defer s.Stop()
		over := func(op Operation, done int) {
			t.Helper()
			synctest.Wait()
			if op = get(t, s, op.ID); op.State != StateSucceeded || op.Done != done || op.Matched != done || op.Skipped != 0 {
				t.Errorf("%+v, want %d done", op, done)
			}
		}
		over(create(t, s, JobsRequest{Action: ActionRetry}), 12)
		if n := countState(t, d.Store, queue.JobFilter{Queue: "r", States: []queue.State{queue.StateReady}}); n != len(retried) {
			t.Errorf("%d of %d retried jobs are ready", n, len(retried))
		}
		over(create(t, s, JobsRequest{Action: ActionErase, Filter: JobsFilter{States: []queue.State{queue.StateDead}}}), 25)
		over(create(t, s, JobsRequest{Action: ActionErase}), 0) // no second time
		if op := create(t, s, JobsRequest{Action: ActionReplay, Filter: JobsFilter{Type: "a"}}); op.Matched != 25 {
			t.Errorf("%+v", op)
		}
		synctest.Wait()
		if n := dead(t, d.Store, "acme"); n != 25 {
			t.Errorf("%d erased jobs are dead, want all 25: none can run", n)
		}
		// Without states, a purge means dead jobs; with them, any that do not run.
		over(create(t, s, JobsRequest{Action: ActionPurge}), 25)
		over(create(t, s, JobsRequest{Action: ActionPurge, Filter: JobsFilter{States: []queue.State{queue.StateReady, queue.StateScheduled}}}), 15)
		if n, other := countState(t, d.Store, queue.JobFilter{}), dead(t, d.Store, "other"); n != 0 || other != 2 {
			t.Errorf("%d jobs are left and %d of another tenant, want 0 and 2", n, other)
		}
	})
}

func TestNamedJobs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &slowDead{Store: memq.New(memq.Options{})}
		ids := enqueue(t, d.Store, 25, queue.JobSpec{Tenant: "acme", Queue: "q", Type: "a"})
		other := enqueue(t, d.Store, 1, queue.JobSpec{Tenant: "other", Queue: "q", Type: "a"})
		named := slices.Concat(ids[3:], other, ids[20:], []string{"job_01kb0000000000000000000000"})
		s := started(t, d, nil)
		defer s.Stop()
		op := create(t, s, JobsRequest{Action: ActionCancel, Filter: JobsFilter{IDs: named}})
		synctest.Wait()
		if op = get(t, s, op.ID); op.Matched != 22 || op.Done != 22 || op.State != StateSucceeded {
			t.Errorf("%+v, want 22 done", op)
		}
		if n := countState(t, d.Store, queue.JobFilter{States: []queue.State{queue.StateReady}}); n != 3 {
			t.Errorf("%d jobs are left, want 3", n)
		}
	})
}

// An operation goes on on another host where the first one left it.
func TestJobsOperationIsResumed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &slowDead{Store: memq.New(memq.Options{})}
		enqueue(t, d.Store, 35, queue.JobSpec{Tenant: "acme", Queue: "q", Type: "a"})
		var first *Service
		var once sync.Once
		first = started(t, d, func(o *Options) {
			o.Bulk = bulkFunc(func(next func() ([]queue.ChangeOutcome, error)) ([]queue.ChangeOutcome, error) {
				out, err := next()
				once.Do(func() { go first.Stop() })
				<-first.ctx.Done()
				return out, err
			}).of(d.Store)
		})
		op := create(t, first, JobsRequest{Action: ActionCancel})
		synctest.Wait()
		if now := get(t, first, op.ID); now.State != StateRunning {
			t.Fatalf("%+v, want it stopped in the middle", now)
		}
		second := started(t, d, nil)
		defer second.Stop()
		synctest.Wait()
		if op = get(t, second, op.ID); op.State != StateSucceeded {
			t.Errorf("%+v", op)
		}
		if n := countState(t, d.Store, queue.JobFilter{States: []queue.State{queue.StateCancelled}}); n != 35 {
			t.Errorf("%d of 35 jobs are cancelled", n)
		}
	})
}

func TestBadJobsRequests(t *testing.T) {
	s := started(t, &slowDead{Store: memq.New(memq.Options{})}, nil)
	defer s.Stop()
	one := 1
	for what, req := range map[string]JobsRequest{
		"no action":     {},
		"a bad action":  {Action: "explode"},
		"a misfit":      {Action: ActionCancel, Filter: JobsFilter{States: []queue.State{queue.StateDead}}},
		"a bad state":   {Action: ActionPurge, Filter: JobsFilter{States: []queue.State{"lost"}}},
		"a stray queue": {Action: ActionCancel, ToQueue: "low"},
	} {
		if _, err := s.CreateJobs(t.Context(), "acme", req); !errors.Is(err, queue.ErrInvalid) {
			t.Errorf("%s: %v, want ErrInvalid", what, err)
		}
	}
	if _, err := s.CreateJobs(t.Context(), "acme", JobsRequest{Action: ActionCancel, ExpectedCount: &one}); !errors.Is(err, queue.ErrConflict) {
		t.Errorf("a wrong count: %v", err)
	}
}

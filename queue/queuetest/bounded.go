package queuetest

import (
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/taskhost/taskhost/queue"
)

// BoundedLists checks the lists of a store whose pages look at few jobs: whatever the filter, the cursors lead through all that match, each
// once. sorted says that the store lists ready jobs by creation whatever their number.
func BoundedLists(t *testing.T, q queue.Queue, sorted bool) {
	t.Helper()
	jobs := q.(queue.Jobs)
	ctx := t.Context()
	made := map[string]queue.JobSpec{}
	put := func(s queue.JobSpec) {
		t.Helper()
		s.Payload, s.MaxAttempts = []byte("x"), 1
		out, err := q.Enqueue(ctx, []queue.JobSpec{s})
		if err != nil || out[0].Status != queue.EnqueueCreated {
			t.Fatalf("Enqueue: %+v, %v", out, err)
		}
		made[out[0].ID] = s
	}
	const each = 40
	for i := range 3 * each {
		s := queue.JobSpec{Tenant: "acme", Queue: fmt.Sprint("q", i%3), Type: fmt.Sprint("t", i%4), Priority: new(int)}
		*s.Priority = i % 2
		switch i % 8 {
		case 5:
			s.Delay = time.Hour
		case 7:
			s.Tenant = "other"
		}
		put(s)
		if i != each {
			continue
		}
		for _, verb := range []queue.Verb{queue.VerbAck, queue.VerbDead} {
			taken, err := q.Reserve(ctx, queue.ReserveParams{Worker: "w", Max: 10, Lease: time.Minute})
			if err != nil || len(taken) != 10 {
				t.Fatalf("Reserve: %d jobs, %v", len(taken), err)
			}
			var list []queue.Settlement
			for _, j := range taken {
				list = append(list, queue.Settlement{Ref: ref(j), Verb: verb, Error: &queue.JobError{Kind: "permanent", Message: "boom"}})
			}
			if _, err := q.Settle(ctx, list); err != nil {
				t.Fatalf("Settle: %v", err)
			}
		}
	}
	if taken, err := q.Reserve(ctx, queue.ReserveParams{Worker: "w", Max: 5, Lease: time.Minute}); err != nil || len(taken) != 5 {
		t.Fatalf("Reserve: %d jobs, %v", len(taken), err)
	}
	filters := map[string]queue.JobFilter{
		"all":       {},
		"a queue":   {Queue: "q1"},
		"a type":    {Type: "t2"},
		"ready":     {States: []queue.State{queue.StateReady}},
		"running":   {States: []queue.State{queue.StateRunning}},
		"scheduled": {States: []queue.State{queue.StateScheduled}},
		"dead":      {States: []queue.State{queue.StateDead}},
		"ended":     {States: []queue.State{queue.StateDead, queue.StateSucceeded}, Type: "t1"},
		"none":      {Type: "nothing"},
	}
	var all []*queue.Job
	for _, id := range slices.Sorted(maps.Keys(made)) {
		j, err := jobs.GetJob(ctx, made[id].Tenant, id)
		if err != nil {
			t.Fatalf("GetJob: %v", err)
		}
		all = append(all, j)
	}
	for what, f := range filters {
		for _, up := range []bool{false, true} {
			for _, limit := range []int{1, 3, 500} {
				f.Tenant, f.OldestFirst, f.Limit = "acme", up, limit
				var want []string
				for _, j := range all {
					if f.Matches(j) {
						want = append(want, j.ID)
					}
				}
				got, pages, err := ListAll(ctx, jobs, f)
				if err != nil {
					t.Fatalf("%s: %v", what, err)
				}
				if sorted && !up {
					slices.Reverse(got)
				}
				if !sorted {
					slices.Sort(got)
				}
				if !slices.Equal(got, want) {
					t.Errorf("%s, oldest first %t, limit %d: %d jobs in %d pages, want %d:\n%v\n%v", what, up, limit, len(got), pages, len(want), got, want)
				}
				if what == "none" && pages < 2 {
					t.Errorf("a list without a match took one page: the bound is not in force")
				}
			}
		}
	}
}

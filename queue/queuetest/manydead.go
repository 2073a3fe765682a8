package queuetest

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/taskhost/taskhost/queue"
)

// FillDead makes n dead jobs of the tenant acme in ten queues: one in ten of type rare, the others of type work; one in a thousand
// failed with "disk full", the others with "boom"; each has a label shard of 0 to 9.
func FillDead(tb testing.TB, q queue.Queue, n int) {
	tb.Helper()
	ctx := tb.Context()
	const batch = 500
	for at := 0; at < n; at += batch {
		specs := make([]queue.JobSpec, min(batch, n-at))
		for i := range specs {
			k := at + i
			specs[i] = queue.JobSpec{Tenant: "acme", Queue: fmt.Sprint("q", k%10), Type: "work", Payload: fmt.Appendf(nil, `{"n":%d,"pad":"%060d"}`, k, k),
				MaxAttempts: 1, Labels: map[string]string{"shard": fmt.Sprint(k / 10 % 10)}}
			if k%10 == 3 {
				specs[i].Type = "rare"
			}
		}
		out, err := q.Enqueue(ctx, specs)
		if err != nil {
			tb.Fatalf("Enqueue: %v", err)
		}
		order := map[string]int{}
		for i, o := range out {
			if o.Status != queue.EnqueueCreated {
				tb.Fatalf("Enqueue: %+v", o)
			}
			order[o.ID] = at + i
		}
		for left := len(specs); left > 0; {
			jobs, err := q.Reserve(ctx, queue.ReserveParams{Worker: "w", Max: left, Lease: time.Minute})
			if err != nil || len(jobs) == 0 {
				tb.Fatalf("Reserve: %d jobs, %v", len(jobs), err)
			}
			left -= len(jobs)
			list := make([]queue.Settlement, len(jobs))
			for i, j := range jobs {
				list[i] = queue.Settlement{Ref: ref(j), Verb: queue.VerbDead, Error: &queue.JobError{Kind: "permanent", Message: "boom"}}
				if order[j.ID]%1000 == 7 {
					list[i].Error.Message = "disk full"
				}
			}
			done, err := q.Settle(ctx, list)
			if err != nil || slices.ContainsFunc(done, func(o queue.SettleOutcome) bool { return o.State != queue.StateDead }) {
				tb.Fatalf("Settle: %+v, %v", done, err)
			}
		}
	}
}

// DeadPages reads pages of what FillDead made, checks what is in them and logs how long each took.
func DeadPages(t *testing.T, jobs queue.Jobs, n int) {
	t.Helper()
	dead := queue.JobFilter{Tenant: "acme", States: []queue.State{queue.StateDead}}
	read := func(what string, f queue.JobFilter) queue.JobPage {
		t.Helper()
		start := time.Now()
		page, err := jobs.ListJobs(t.Context(), f)
		if err != nil {
			t.Fatalf("%s: %v", what, err)
		}
		t.Logf("%d dead jobs: %s in %s (%d jobs)", n, what, time.Since(start).Round(100*time.Microsecond), len(page.Jobs))
		for _, j := range page.Jobs {
			if !f.Matches(j) {
				t.Errorf("%s: %s does not match", what, j.ID)
			}
		}
		return page
	}
	full := func(what string, p queue.JobPage) {
		t.Helper()
		if len(p.Jobs) != queue.ListLimitDefault || p.Next == "" {
			t.Errorf("%s: %d jobs and next %q, want a full page and more", what, len(p.Jobs), p.Next)
		}
	}
	first := read("first page", dead)
	full("first page", first)
	up := dead
	up.OldestFirst = true
	oldest := read("last page, from behind", up)
	full("last page, from behind", oldest)
	deep := dead
	deep.Cursor = oldest.Jobs[len(oldest.Jobs)-1].ID
	if last := read("last page, by its cursor", deep); len(last.Jobs) != queue.ListLimitDefault-1 || last.Next != "" {
		t.Errorf("last page: %d jobs and next %q, want the 49 oldest and no more", len(last.Jobs), last.Next)
	}
	filtered := func(what string, change func(*queue.JobFilter)) queue.JobPage {
		t.Helper()
		f := dead
		change(&f)
		return read(what, f)
	}
	// A page may be short, or empty, and still name a next one: it ends when it has looked long enough.
	atLeast := func(want int, what string, change func(*queue.JobFilter)) {
		t.Helper()
		found, cursor := 0, ""
		for pages := 1; found < want; pages++ {
			p := filtered(fmt.Sprintf("page %d of %s", pages, what), func(f *queue.JobFilter) { change(f); f.Cursor = cursor })
			if found, cursor = found+len(p.Jobs), p.Next; cursor == "" {
				break
			}
		}
		if found < want || cursor == "" {
			t.Errorf("%s: %d jobs and next %q, want at least %d and more", what, found, cursor, want)
		}
	}
	atLeast(queue.ListLimitDefault, "a type", func(f *queue.JobFilter) { f.Type = "rare" })
	atLeast(queue.ListLimitDefault, "a queue", func(f *queue.JobFilter) { f.Queue = "q4" })
	atLeast(queue.ListLimitDefault, "a label", func(f *queue.JobFilter) { f.Labels = map[string]string{"shard": "7"} })
	atLeast(1, "a rare error", func(f *queue.JobFilter) { f.Query = "disk" })
	if p := filtered("page that none matches", func(f *queue.JobFilter) { f.Query = "nothing has this" }); len(p.Jobs) != 0 || p.Next == "" && n > 20_000 {
		t.Errorf("%d jobs of an error that none had, next %q", len(p.Jobs), p.Next)
	}
	mid := oldest.Jobs[25].CreatedAt
	if p := filtered("page before a time", func(f *queue.JobFilter) { f.Before = mid.Add(time.Millisecond) }); len(p.Jobs) == 0 {
		t.Errorf("no job before %s", mid)
	}
}

// ListAll follows the cursors of a list to its end and returns the ids, and how many pages that took.
func ListAll(ctx context.Context, jobs queue.Jobs, f queue.JobFilter) (ids []string, pages int, err error) {
	for {
		page, err := jobs.ListJobs(ctx, f)
		if err != nil {
			return ids, pages, err
		}
		pages++
		for _, j := range page.Jobs {
			ids = append(ids, j.ID)
		}
		if f.Cursor = page.Next; f.Cursor == "" {
			return ids, pages, nil
		}
	}
}

package queuetest

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/taskhost/taskhost/queue"
)

func jobsCases() []testCase {
	return []testCase{
		{name: "list newest first in pages", run: jobsPages},
		{name: "list by filter", run: jobsFilter},
		{name: "list carries no bodies", run: jobsPreview},
		{name: "case 125: another tenant's job does not exist", run: jobsTenant},
		{name: "delete", run: jobsDelete},
		{name: "watch", run: jobsWatch},
		{name: "bad filters are refused", run: jobsBadFilter},
	}
}

func (f *fixture) list(flt queue.JobFilter) queue.JobPage {
	f.Helper()
	if flt.Tenant == "" {
		flt.Tenant = "acme"
	}
	page, err := f.jobs.ListJobs(f.ctx, flt)
	if err != nil {
		f.Fatalf("ListJobs(%+v): %v", flt, err)
	}
	return page
}

func jobsPages(f *fixture) {
	var ids []string
	for i := range 7 {
		ids = append(ids, f.put("q", fmt.Sprint(i)))
		if i == 3 {
			f.Advance(time.Second)
		}
	}
	f.ack(f.take(2)...) // finished, running and waiting ones are one list
	f.take(1)
	var got []string
	cursor := ""
	for pages := 1; ; pages++ {
		page := f.list(queue.JobFilter{Limit: 3, Cursor: cursor})
		for _, j := range page.Jobs {
			got = append(got, j.ID)
		}
		if page.Next == "" {
			if pages != 3 {
				f.Errorf("7 jobs took %d pages of 3", pages)
			}
			break
		}
		cursor = page.Next
		if pages == 1 {
			f.put("q", "new") // a newer job does not disturb the pages behind
		}
	}
	for i, j := 0, len(ids)-1; i < j; i, j = i+1, j-1 {
		ids[i], ids[j] = ids[j], ids[i]
	}
	if strings.Join(got, " ") != strings.Join(ids, " ") {
		f.Errorf("listed\n%v, want newest first\n%v", got, ids)
	}
	if page := f.list(queue.JobFilter{Limit: 8}); len(page.Jobs) != 8 || page.Next != "" {
		f.Errorf("a page that holds all has %d jobs and next %q", len(page.Jobs), page.Next)
	}
}

func jobsFilter(f *fixture) {
	labelled := func(kv ...string) edit {
		return func(s *queue.JobSpec) {
			s.Labels = map[string]string{}
			for i := 0; i < len(kv); i += 2 {
				s.Labels[kv[i]] = kv[i+1]
			}
		}
	}
	a := f.put("q1", "a", labelled("k", "v", "x", "1"))
	f.Advance(time.Minute)
	b := f.put("q2", "b", labelled("k", "v"))
	c := f.put("q2", "c", labelled("k", "w"), func(s *queue.JobSpec) { s.Type = "mail" }, delay(time.Hour))
	f.put("q1", "foreign", tenant("other"), labelled("k", "v"))
	s := settlement(f.takeFrom(queue.View{Queues: []string{"q2"}}, 1)[0], queue.VerbDead)
	s.Error = failure("no such file: 100%_a'b\\")
	f.settle(s, queue.StateDead)
	cases := []struct {
		filter queue.JobFilter
		want   []string
	}{
		{queue.JobFilter{}, []string{c, b, a}},
		{queue.JobFilter{Queue: "q2"}, []string{c, b}},
		{queue.JobFilter{Type: "mail"}, []string{c}},
		{queue.JobFilter{States: []queue.State{queue.StateDead}}, []string{b}},
		{queue.JobFilter{States: []queue.State{queue.StateReady, queue.StateScheduled}}, []string{c, a}},
		{queue.JobFilter{States: []queue.State{queue.StateSucceeded}}, nil},
		{queue.JobFilter{Labels: map[string]string{"k": "v"}}, []string{b, a}},
		{queue.JobFilter{Labels: map[string]string{"k": "v", "x": "1"}}, []string{a}},
		{queue.JobFilter{Labels: map[string]string{"missing": ""}}, nil},
		{queue.JobFilter{Query: "such file"}, []string{b}},
		{queue.JobFilter{Query: "100%_a'b\\"}, []string{b}},
		{queue.JobFilter{Query: "1%a"}, nil}, // a substring, not a pattern
		{queue.JobFilter{Query: c[6:]}, []string{c}},
		{queue.JobFilter{Since: f.get(b).CreatedAt}, []string{c, b}},
		{queue.JobFilter{Since: f.get(c).CreatedAt.Add(time.Hour)}, nil},
		{queue.JobFilter{Before: f.get(b).CreatedAt}, []string{a}},
		{queue.JobFilter{Since: f.get(a).CreatedAt, Before: f.get(b).CreatedAt.Add(time.Millisecond)}, []string{c, b, a}},
		{queue.JobFilter{Since: f.get(a).CreatedAt.Add(1), Before: f.get(b).CreatedAt.Add(1)}, []string{c, b}}, // times between milliseconds
		{queue.JobFilter{Since: f.get(a).CreatedAt, Before: f.get(a).CreatedAt}, nil},
		{queue.JobFilter{FinishedSince: f.get(b).FinishedAt}, []string{b}},
		{queue.JobFilter{FinishedSince: f.get(b).FinishedAt.Add(1)}, nil},
		{queue.JobFilter{FinishedBefore: f.get(b).FinishedAt.Add(1)}, []string{b}}, // not those that are not finished
		{queue.JobFilter{FinishedBefore: f.get(b).FinishedAt}, nil},
		{queue.JobFilter{ErrorFingerprint: queue.ErrorFingerprint(f.get(b).LastError)}, []string{b}},
		{queue.JobFilter{ErrorFingerprint: "0000"}, nil},
		{queue.JobFilter{Queue: "q2", Labels: map[string]string{"k": "w"}, Cursor: c}, nil},
		{queue.JobFilter{Tenant: "nobody"}, nil},
	}
	for _, tc := range cases {
		var got []string
		for _, j := range f.list(tc.filter).Jobs {
			got = append(got, j.ID)
		}
		if strings.Join(got, " ") != strings.Join(tc.want, " ") {
			f.Errorf("ListJobs(%+v) = %v, want %v", tc.filter, got, tc.want)
		}
		if tc.filter.Cursor != "" {
			continue
		}
		up := tc.filter
		up.OldestFirst, up.Limit = true, 1
		got = got[:0]
		for {
			page := f.list(up)
			for _, j := range page.Jobs {
				got = append(got, j.ID)
			}
			if up.Cursor = page.Next; up.Cursor == "" {
				break
			}
		}
		slices.Reverse(got)
		if strings.Join(got, " ") != strings.Join(tc.want, " ") {
			f.Errorf("the oldest first, one by one, backwards: ListJobs(%+v) = %v, want %v", up, got, tc.want)
		}
	}
}

func jobsPreview(f *fixture) {
	f.put("q", "body")
	f.ack(f.takeOne())
	f.put("q", "waiting")
	for _, j := range f.list(queue.JobFilter{}).Jobs {
		if j.Payload != nil || j.Result != nil || j.Attempts != nil || j.Checkpoint != nil || j.Token != "" {
			f.Errorf("a listed job carries %+v", j)
		}
		if j.PayloadBytes == 0 || j.Queue != "q" || j.CreatedAt.IsZero() {
			f.Errorf("a listed job lacks its fields: %+v", j)
		}
	}
}

func jobsTenant(f *fixture) {
	id := f.put("q", "a")
	unknown := "job_01kb0000000000000000000000"
	for _, c := range []struct{ tenant, id string }{{"other", id}, {"", id}, {"acme", unknown}, {"acme", "nonsense"}, {"acme", ""}} {
		_, get := f.jobs.GetJob(f.ctx, c.tenant, c.id)
		_, cancel := f.jobs.CancelJob(f.ctx, c.tenant, c.id)
		_, watch := f.jobs.WatchJob(f.ctx, c.tenant, c.id)
		_, logs := f.notes.JobLogs(f.ctx, c.tenant, c.id, 0, 0)
		for what, err := range map[string]error{"GetJob": get, "CancelJob": cancel, "WatchJob": watch, "JobLogs": logs,
			"DeleteJob": f.jobs.DeleteJob(f.ctx, c.tenant, c.id)} {
			if !errors.Is(err, queue.ErrNotFound) || err.Error() != queue.ErrNotFound.Error() {
				f.Errorf("%s(%q, %q) = %v, want plain ErrNotFound", what, c.tenant, c.id, err)
			}
		}
	}
	f.wantState(id, queue.StateReady)
}

func jobsDelete(f *fixture) {
	waiting, scheduled := f.put("q", "waiting"), f.put("q", "scheduled", delay(time.Minute))
	for _, id := range []string{waiting, scheduled} {
		if err := f.jobs.DeleteJob(f.ctx, "acme", id); err != nil {
			f.Fatalf("DeleteJob: %v", err)
		}
		f.wantGone(id)
	}
	id := f.put("q", "running")
	j := f.takeOne()
	var state *queue.StateError
	if err := f.jobs.DeleteJob(f.ctx, "acme", id); !errors.As(err, &state) || !errors.Is(err, queue.ErrConflict) ||
		state.State != queue.StateRunning || state.Op != "delete" || state.JobID != id {
		f.Errorf("DeleteJob of a running job = %v, want a StateError", err)
	}
	if err := f.notes.AppendLogs(f.ctx, ref(j), []queue.LogLine{{Message: "line"}}); err != nil {
		f.Fatalf("AppendLogs: %v", err)
	}
	f.settle(settlement(j, queue.VerbDead), queue.StateDead)
	if err := f.jobs.DeleteJob(f.ctx, "acme", id); err != nil {
		f.Fatalf("DeleteJob of a dead job: %v", err)
	}
	f.wantGone(id)
	f.pass(time.Hour)
	f.wantOrder("")
	if r := f.books(); r.Removed != 3 || r.Enqueued != 3 {
		f.Errorf("audit = %+v, want 3 removed of 3", r)
	}
}

func jobsWatch(f *fixture) {
	id := f.put("q", "a")
	w, err := f.jobs.WatchJob(f.ctx, "acme", id)
	if err != nil {
		f.Fatalf("WatchJob: %v", err)
	}
	defer w.Stop()
	signalled := func(what string) {
		f.Helper()
		select {
		case _, open := <-w.C:
			if !open {
				f.Fatalf("the watch closed at %s", what)
			}
		case <-time.After(patience):
			f.Fatalf("no signal after %s", what)
		}
	}
	signalled("the start")
	j := f.takeOne()
	signalled("reserve")
	if err := f.notes.SetProgress(f.ctx, ref(j), queue.Progress{Done: 1}); err != nil {
		f.Fatalf("SetProgress: %v", err)
	}
	signalled("progress")
	if err := f.notes.AppendLogs(f.ctx, ref(j), []queue.LogLine{{Message: "line"}}); err != nil {
		f.Fatalf("AppendLogs: %v", err)
	}
	signalled("a log line")
	f.ack(j)
	signalled("settle")

	stopped, err := f.jobs.WatchJob(f.ctx, "acme", id)
	if err != nil {
		f.Fatalf("WatchJob: %v", err)
	}
	stopped.Stop()
	stopped.Stop()
	if err := f.jobs.DeleteJob(f.ctx, "acme", id); err != nil {
		f.Fatalf("DeleteJob: %v", err)
	}
	deadline := time.After(patience)
	for {
		select {
		case _, open := <-w.C:
			if !open {
				return
			}
		case <-deadline:
			f.Fatalf("the watch is still open after the job was deleted")
		}
	}
}

func jobsBadFilter(f *fixture) {
	for what, flt := range map[string]queue.JobFilter{
		"no tenant":          {},
		"limit 501":          {Tenant: "acme", Limit: queue.ListLimitMax + 1},
		"limit -1":           {Tenant: "acme", Limit: -1},
		"a bad state":        {Tenant: "acme", States: []queue.State{"lost"}},
		"a long cursor":      {Tenant: "acme", Cursor: strings.Repeat("x", queue.CursorMax+1)},
		"nonsense as cursor": {Tenant: "acme", Cursor: "zzz"},
	} {
		_, err := f.jobs.ListJobs(f.ctx, flt)
		f.wantInvalid("ListJobs with "+what, err)
	}
}

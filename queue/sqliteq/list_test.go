package sqliteq_test

import (
	"os"
	"testing"
	"time"

	"github.com/taskhost/taskhost/queue"
	"github.com/taskhost/taskhost/queue/queuetest"
	"github.com/taskhost/taskhost/queue/sqliteq"
)

func TestBoundedLists(t *testing.T) {
	t.Parallel()
	s := open(t, sqliteq.Options{})
	s.SetListWork(35)
	queuetest.BoundedLists(t, s, true)
}

// A page that finds nothing ends when its time is over, and the next goes on behind it: together they find what there is.
func TestListsEndInTime(t *testing.T) {
	t.Parallel()
	s := open(t, sqliteq.Options{})
	const dead = 1000
	queuetest.FillDead(t, s, dead)
	looks, now := 0, time.Now()
	s.SetListNow(func() time.Time { // a machine on which looking at a job takes a second
		looks++
		now = now.Add(time.Second)
		return now
	})
	for what, f := range map[string]queue.JobFilter{
		"an error": {Query: "disk full"}, "a type": {Type: "rare"}, "a label": {Labels: map[string]string{"shard": "7"}}, "a queue": {Queue: "q4"},
	} {
		f.Tenant, f.States = "acme", []queue.State{queue.StateDead}
		ids, pages, err := queuetest.ListAll(t.Context(), s, f)
		want := dead / 10
		if f.Query != "" {
			want = dead / 1000
		}
		if err != nil || len(ids) != want {
			t.Errorf("%s: %d jobs, %v; want %d", what, len(ids), err, want)
		}
		if least := max(want/queue.ListLimitDefault, 2); pages <= least && f.Queue == "" { // of a queue, a page looks at 500 rows at least
			t.Errorf("%s: %d pages of %d jobs although each look took longer than a page may", what, pages, dead)
		}
	}
	all := queue.JobFilter{Tenant: "acme", States: []queue.State{queue.StateDead}}
	looks = 0
	if page, err := s.ListJobs(t.Context(), all); err != nil || len(page.Jobs) != queue.ListLimitDefault || looks != 1 {
		t.Errorf("without a filter: %d jobs, %v, %d looks at the clock; want a full page and one look", len(page.Jobs), err, looks)
	}
}

// Pages of a long dead-letter queue; a million jobs with TASKHOST_TEST_LONG.
func TestManyDead(t *testing.T) {
	n := 20_000
	if os.Getenv("TASKHOST_TEST_LONG") != "" {
		n = 1_000_000
	}
	s := open(t, sqliteq.Options{})
	queuetest.FillDead(t, s, n)
	queuetest.DeadPages(t, s, n)
}

package redisq_test

import (
	"os"
	"testing"

	"github.com/taskhost/taskhost/queue"
	"github.com/taskhost/taskhost/queue/queuetest"
	"github.com/taskhost/taskhost/queue/redisq"
)

func TestBoundedLists(t *testing.T) {
	t.Parallel()
	t.Run("few ready jobs", func(t *testing.T) {
		t.Parallel()
		s := open(t, redisq.Options{})
		s.SetListBounds(4, 1000)
		queuetest.BoundedLists(t, s, true)
	})
	t.Run("many ready jobs", func(t *testing.T) {
		t.Parallel()
		s := open(t, redisq.Options{})
		s.SetListBounds(4, 10)
		queuetest.BoundedLists(t, s, false)
	})
}

func TestBadCursors(t *testing.T) {
	t.Parallel()
	s := open(t, redisq.Options{})
	for _, c := range []string{"ready:", "ready:x:q:0:1", "ready:01kb6x3v9s:q:+0000:-1", "ready:01kb6x3v9s:q:+0000:x"} {
		if _, err := s.ListJobs(t.Context(), queue.JobFilter{Tenant: "acme", Cursor: c}); err == nil {
			t.Errorf("cursor %q was taken", c)
		}
	}
	// A place among ready jobs is none in a list of dead ones.
	f := queue.JobFilter{Tenant: "acme", Cursor: "ready:01kb6x3v9s:q:+0000:1", States: []queue.State{queue.StateDead}}
	if _, err := s.ListJobs(t.Context(), f); err == nil {
		t.Error("the cursor of another list was taken")
	}
}

// Pages of a long dead-letter queue; a million jobs with TASKHOST_TEST_LONG.
func TestManyDead(t *testing.T) {
	n := 20_000
	if os.Getenv("TASKHOST_TEST_LONG") != "" {
		n = 1_000_000
	}
	s := open(t, redisq.Options{URL: own(t).URL("x:")})
	queuetest.FillDead(t, s, n)
	queuetest.DeadPages(t, s, n)
}

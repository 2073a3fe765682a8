package redisq_test

import (
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

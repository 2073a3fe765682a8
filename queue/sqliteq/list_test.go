package sqliteq_test

import (
	"os"
	"testing"

	"github.com/taskhost/taskhost/queue/queuetest"
	"github.com/taskhost/taskhost/queue/sqliteq"
)

func TestBoundedLists(t *testing.T) {
	t.Parallel()
	s := open(t, sqliteq.Options{})
	s.SetListWork(35)
	queuetest.BoundedLists(t, s, true)
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

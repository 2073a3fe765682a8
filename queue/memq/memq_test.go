package memq_test

import (
	"testing"

	"go.uber.org/goleak"

	"github.com/taskhost/taskhost/queue"
	"github.com/taskhost/taskhost/queue/memq"
	"github.com/taskhost/taskhost/queue/queuetest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestContract(t *testing.T) {
	t.Parallel()
	queuetest.Exercise(t, func(*testing.T) queuetest.Backend {
		clock := queuetest.NewFakeClock()
		return queuetest.Backend{Queue: memq.New(memq.Options{Clock: clock}), Advance: clock.Advance}
	})
}

// The model against itself: its answers depend on the history alone, and the histories meet what they must.
func TestHistories(t *testing.T) {
	t.Parallel()
	queuetest.Histories(t, func(_ *testing.T, clock queue.Clock, limits queue.Limits) queue.Queue {
		return memq.New(memq.Options{Clock: clock, Limits: limits})
	})
}

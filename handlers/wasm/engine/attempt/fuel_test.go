package attempt

import (
	"testing"
	"time"
)

// A guest yields often, but not so often that it gets less of the processor than those it yields to.
func TestUntilNextYield(t *testing.T) {
	t.Parallel()
	for others, want := range map[time.Duration]time.Duration{
		0: yieldEvery, time.Microsecond: yieldEvery, 100 * time.Microsecond: yieldEvery, time.Millisecond: time.Millisecond, 3 * time.Millisecond: 3 * time.Millisecond,
		time.Second: yieldAtMost,
	} {
		if got := untilNextYield(others); got != want {
			t.Errorf("after %v of others: %v, want %v", others, got, want)
		}
	}
}

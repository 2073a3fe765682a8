package queue

import (
	"math"
	"testing"
	"time"
)

// Case 058: the backoff of any attempt is positive, under its cap, and does not fall.
func TestCase058Backoff(t *testing.T) {
	t.Parallel()
	for _, base := range []time.Duration{0, 1, time.Millisecond, 30 * time.Second, time.Hour, math.MaxInt64} {
		b := Backoff{Base: base, Max: time.Hour}
		last := time.Duration(0)
		for n := -1; n <= 1000; n++ {
			d := b.Ceiling(n)
			if d < time.Millisecond || d > time.Hour || d < last {
				t.Fatalf("base %s: ceiling of attempt %d = %s after %s", base, n, d, last)
			}
			last = d
			for _, random := range []float64{0, 0.5, math.Nextafter(1, 0)} {
				if got := b.Delay(n, random); got < time.Millisecond || got > d {
					t.Fatalf("base %s: delay of attempt %d at %v = %s, ceiling %s", base, n, random, got, d)
				}
			}
		}
		for _, n := range []int{math.MinInt, math.MaxInt32, math.MaxInt} {
			if d := b.Ceiling(n); d < time.Millisecond || d > time.Hour {
				t.Errorf("base %s: ceiling of attempt %d = %s", base, n, d)
			}
		}
	}
}

func TestBackoffDefaults(t *testing.T) {
	t.Parallel()
	b := Backoff{}
	for n, want := range map[int]time.Duration{1: time.Second, 2: 2 * time.Second, 5: 16 * time.Second, 12: 2048 * time.Second, 13: time.Hour} {
		if got := b.Ceiling(n); got != want {
			t.Errorf("ceiling of attempt %d = %s, want %s", n, got, want)
		}
	}
	if b.Delay(3, 0.5) != 2*time.Second || (Backoff{Jitter: JitterNone}).Delay(3, 0.5) != 4*time.Second {
		t.Error("full jitter draws from (0, ceiling], none waits the ceiling")
	}
}

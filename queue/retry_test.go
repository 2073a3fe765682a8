package queue

import (
	"fmt"
	"math"
	"testing"
	"time"
)

// Every backoff of case 058, for every attempt it names.
func TestCase058BackoffNeverEndsFallsOrExceedsItsCap(t *testing.T) {
	t.Parallel()
	attempts := make([]int, 0, 1010)
	attempts = append(attempts, math.MinInt, -1)
	for n := range 1001 {
		attempts = append(attempts, n)
	}
	attempts = append(attempts, math.MaxInt32, math.MaxInt32+1, math.MaxInt) // 2^31 among them
	for _, base := range []time.Duration{time.Nanosecond, time.Millisecond, 30 * time.Second, time.Hour, math.MaxInt64} {
		for _, limit := range []time.Duration{time.Millisecond, time.Hour, math.MaxInt64} {
			for _, jitter := range []Jitter{"", JitterFull, JitterNone} {
				b := Backoff{Base: base, Max: limit, Jitter: jitter}
				t.Run(fmt.Sprintf("base=%s/max=%s/jitter=%s", base, limit, jitter), func(t *testing.T) {
					t.Parallel()
					var last time.Duration
					for _, n := range attempts {
						ceiling := b.Ceiling(n)
						if ceiling < time.Millisecond || ceiling > limit || ceiling < last {
							t.Fatalf("attempt %d: ceiling %s after %s; want between 1ms and %s, never falling", n, ceiling, last, limit)
						}
						last = ceiling
						for _, random := range []float64{0, 0.5, 1 - 1.0/(1<<53)} {
							if d := b.Delay(n, random); d < time.Millisecond || d > ceiling || jitter == JitterNone && d != ceiling {
								t.Fatalf("attempt %d, random %v: delay %s, ceiling %s", n, random, d, ceiling)
							}
						}
					}
				})
			}
		}
	}
}

func TestBackoffDoubles(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		b    Backoff
		n    int
		want time.Duration
	}{
		{Backoff{}, 1, time.Second},
		{Backoff{}, 2, 2 * time.Second},
		{Backoff{}, 12, 2048 * time.Second},
		{Backoff{}, 13, time.Hour},
		{Backoff{Base: 3 * time.Second, Max: 10 * time.Second}, 1, 3 * time.Second},
		{Backoff{Base: 3 * time.Second, Max: 10 * time.Second}, 2, 6 * time.Second},
		{Backoff{Base: 3 * time.Second, Max: 10 * time.Second}, 3, 10 * time.Second},
		{Backoff{Base: time.Minute, Max: time.Second}, 1, time.Second},
		{Backoff{Base: -time.Second, Max: -1}, 1, time.Second},
		{Backoff{}, 0, time.Second},
	} {
		if got := c.b.Ceiling(c.n); got != c.want {
			t.Errorf("%+v, attempt %d: %s, want %s", c.b, c.n, got, c.want)
		}
	}
}

func TestFullJitterSpreadsOverTheWholeDelay(t *testing.T) {
	t.Parallel()
	b := Backoff{Base: 8 * time.Second}
	for random, want := range map[float64]time.Duration{0: 8 * time.Second, 0.25: 6 * time.Second, 0.5: 4 * time.Second, 0.875: time.Second} {
		if got := b.Delay(1, random); got != want {
			t.Errorf("random %v: %s, want %s", random, got, want)
		}
	}
}

func FuzzBackoff(f *testing.F) {
	f.Add(int64(time.Second), int64(time.Hour), 1, 0.5)
	f.Add(int64(-1), int64(0), math.MaxInt, 0.999999999)
	f.Add(int64(math.MaxInt64), int64(math.MaxInt64), 64, 0.0)
	f.Fuzz(func(t *testing.T, base, limit int64, n int, random float64) {
		if !(random >= 0 && random < 1) {
			t.Skip()
		}
		b := Backoff{Base: time.Duration(base), Max: time.Duration(limit)}
		ceiling, d := b.Ceiling(n), b.Delay(n, random)
		if ceiling < time.Millisecond || d < time.Millisecond || d > ceiling {
			t.Errorf("delay %s, ceiling %s", d, ceiling)
		}
		if limit > int64(time.Millisecond) && ceiling > time.Duration(limit) {
			t.Errorf("ceiling %s is over %s", ceiling, time.Duration(limit))
		}
	})
}

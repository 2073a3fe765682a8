package fair

import (
	"math/big"
	"math/rand/v2"
	"testing"
)

// exactBucket is the algorithm as its definition says it, in fractions.
type exactBucket struct{ full *big.Rat }

func (b exactBucket) from(r Rate) int64 {
	at := new(big.Rat).Sub(b.full, big.NewRat(r.Slack, 1))
	up := new(big.Int).Neg(at.Num())
	up.Div(up, at.Denom()) // Euclidean: down, of the negative
	return -up.Int64()
}

func (b exactBucket) take(r Rate, now int64) exactBucket {
	full := big.NewRat(now, 1)
	if b.full.Cmp(full) > 0 {
		full.Set(b.full)
	}
	return exactBucket{full.Add(full, big.NewRat(r.Per, r.Count))}
}

func compareBuckets(t *testing.T, r Rate, steps []uint16) {
	t.Helper()
	now := int64(1_700_000_000_000)
	var b Bucket
	exact := exactBucket{full: new(big.Rat)}
	taken := []int64{}
	for i, step := range steps {
		now += int64(step>>1) * (1 + r.Per/1000)
		if step&1 == 0 {
			now = max(now, b.From(r))
		}
		if b.From(r) != exact.from(r) && (exact.full.Sign() > 0 || b.From(r) > now) {
			t.Fatalf("step %d of %+v: from %d, exactly %d", i, r, b.From(r), exact.from(r))
		}
		if b.From(r) > now {
			if wait := b.From(r) - now; wait > (r.Per+r.Count-1)/r.Count {
				t.Fatalf("step %d of %+v: waits %d ms, longer than one interval", i, r, wait)
			}
			continue
		}
		b, exact = b.Take(r, now), exact.take(r, now)
		taken = append(taken, now)
		if b.n < 0 || b.n >= r.Count {
			t.Fatalf("step %d of %+v: n = %d", i, r, b.n)
		}
		// Between any two services lie at most one more than the rate gives for the time between them and the slack.
		for first := max(0, len(taken)-100); first < len(taken); first++ {
			n, d := int64(len(taken)-first), now-taken[first]
			if over := new(big.Rat).Sub(big.NewRat(n-1, 1), big.NewRat((d+r.Slack)*r.Count, r.Per)); over.Sign() > 0 {
				t.Fatalf("step %d of %+v: %d services in %d ms", i, r, n, d)
			}
		}
	}
}

func TestBucketIsExact(t *testing.T) {
	t.Parallel()
	rng := rand.New(rand.NewPCG(5, 6))
	for _, r := range []Rate{{1, 1000, 0}, {3, 1000, 1}, {100, 1000, 100}, {7, 90_000, 100}, {999_983, 1000, 100}, {1_000_000, 86_400_000, 1}, {1, 86_400_000, 100}} {
		steps := make([]uint16, 3000)
		for i := range steps {
			steps[i] = uint16(rng.IntN(8))
		}
		compareBuckets(t, r, steps)
	}
}

func TestBucketGivesTheRate(t *testing.T) {
	t.Parallel()
	r := Rate{Count: 7, Per: 1000, Slack: 100}
	var b Bucket
	now := int64(1_700_000_000_000)
	start, late := now, int64(0)
	const n = 7 * 100_000
	for range n {
		now = max(now, b.From(r)) + late
		late = (late + 37) % 100 // always late, never by more than the slack
		b = b.Take(r, now)
	}
	if got, most := now-start, int64(n)*1000/7+100; got > most {
		t.Errorf("%d services took %d ms, want at most %d: being late costs some of the rate", n, got, most)
	}
}

func FuzzBucket(f *testing.F) {
	f.Add(int64(3), int64(1000), int64(1), []byte{0, 1, 2, 3, 9})
	f.Add(int64(1_000_000), int64(1000), int64(100_000), []byte{1, 1, 1})
	f.Fuzz(func(t *testing.T, count, per, slack int64, raw []byte) {
		within := func(n, limit int64) int64 { return 1 + (n%limit+limit)%limit }
		steps := make([]uint16, len(raw))
		for i, b := range raw {
			steps[i] = uint16(b)
		}
		compareBuckets(t, Rate{Count: within(count, 1_000_000), Per: within(per, 86_400_000), Slack: within(slack, 1000)}, steps)
	})
}

package fair_test

import (
	"math"
	"math/big"
	"testing"

	"pgregory.net/rapid"

	"github.com/taskhost/taskhost/queue/fair"
)

func TestCost(t *testing.T) {
	t.Parallel()
	for ms, want := range map[int64]int64{math.MinInt64: 1, -5: 1, 0: 1, 1: 1, 250: 250, fair.CostMost: fair.CostMost, math.MaxInt64: fair.CostMost} {
		if got := fair.Cost(ms); got != want {
			t.Errorf("Cost(%d) = %d, want %d", ms, got, want)
		}
	}
}

// The average does not depend on the order of a call's services, stays between what it was and what it learns, and reaches what it is
// told again and again exactly.
func TestAverage(t *testing.T) {
	t.Parallel()
	if got := (fair.Average{}).Estimate(100); got != 100 {
		t.Errorf("without any service the estimate is %d, want the first one", got)
	}
	rapid.Check(t, func(t *rapid.T) {
		var a fair.Average
		cost := rapid.Int64Range(1, fair.CostMost)
		for range rapid.IntRange(0, 20).Draw(t, "calls") {
			n := rapid.Int64Range(1, 1000).Draw(t, "services")
			mean := cost.Draw(t, "cost")
			before := a.Estimate(mean)
			a = a.Learn(n*mean, n)
			if got := a.Estimate(1); got < min(before, mean)-1 || got > max(before, mean) {
				t.Fatalf("from %d, %d services of %d each gave %d", before, n, mean, got)
			}
		}
		want, n := cost.Draw(t, "at last"), rapid.Int64Range(1, 12).Draw(t, "each time")
		for range 400 {
			a = a.Learn(n*want, n)
		}
		if got := a.Estimate(1); got != want {
			t.Fatalf("after 400 times %d services of %d each the estimate is %d", n, want, got)
		}
		if b := a.Learn(0, 0); b != a {
			t.Fatalf("no service changed the average")
		}
	})
}

// A correction of an estimate is as if the right cost had been charged, however many there are and in whatever order, except that the
// tag does not fall below the virtual time.
func TestCorrect(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		tag := fair.Tag{Base: rapid.Float64Range(0, 1e9).Draw(t, "base"), Weight: rapid.Float64Range(0.001, 1e7).Draw(t, "weight")}
		right := tag
		var corrections []int64
		for range rapid.IntRange(1, 50).Draw(t, "services") {
			estimate, cost := rapid.Int64Range(1, 1e6).Draw(t, "estimate"), rapid.Int64Range(1, 1e6).Draw(t, "cost")
			tag, right = tag.Charge(estimate), right.Charge(cost)
			corrections = append(corrections, cost-estimate)
		}
		for _, by := range rapid.Permutation(corrections).Draw(t, "order") {
			tag = tag.Correct(by, math.Inf(-1))
		}
		if tag != right {
			t.Fatalf("corrected to %+v, want %+v", tag, right)
		}
		v := rapid.Float64Range(0, 1e9).Draw(t, "virtual time")
		by := rapid.Int64Range(-1e9, 1e9).Draw(t, "by")
		got := tag.Correct(by, v).Value()
		exact := new(big.Rat).Add(rat(tag.Base), new(big.Rat).Quo(new(big.Rat).SetInt64(tag.N+by), rat(tag.Weight)))
		if want, _ := exact.Float64(); got < v || got > v && math.Abs(got-want) > fair.ErrorBound*(tag.Base+math.Abs(float64(tag.N+by))/tag.Weight)+math.Abs(want)*0x1p-53 {
			t.Fatalf("%+v corrected by %d at %v is %v, want %v but not below", tag, by, v, got, want)
		}
		parked := rapid.Float64Range(0, 1e9).Draw(t, "parked")
		at := fair.CorrectParked(parked, v, by, tag.Weight)
		if forgotten := fair.CorrectParked(math.Min(parked, v), v, by, tag.Weight); parked <= v && at != forgotten || at < v {
			t.Fatalf("parked %v corrected by %d at %v is %v; %v had it been forgotten", parked, by, v, at, forgotten)
		}
	})
}

// The bound of FAIRNESS.md, "Charging time": random costs, up to eight reservations of a queue in flight, settled in any order.
func TestChargedBound(t *testing.T) {
	t.Parallel()
	weights := []float64{0.5, 1, 3}
	names := []string{"a", "b", "c"}
	rapid.Check(t, func(t *rapid.T) {
		type flight struct{ estimate, cost int64 }
		var v float64
		members := map[string]*member{}
		for i, name := range names {
			members[name] = &member{competes: true, weight: weights[i]}
		}
		var average [3]fair.Average
		var flights [3][]flight
		var most, off [3]float64         // c and e
		times := [][3]float64{{0, 0, 0}} // T after each step
		cost := rapid.Int64Range(1, 300) // mostly of one length per queue, so that estimates mean something
		kind := rapid.IntRange(0, 3)
		for range 120 {
			now := times[len(times)-1]
			i := int(least(members)[0] - 'a')
			m := members[names[i]]
			if at := rapid.IntRange(0, 2).Draw(t, "who settles"); len(flights[at]) > 0 && (len(flights[i]) == 8 || kind.Draw(t, "settle") == 0) {
				var by, total int64
				for _, f := range flights[at] {
					by, total = by+f.cost-f.estimate, total+f.cost
				}
				average[at] = average[at].Learn(total, int64(len(flights[at])))
				flights[at] = nil
				m := members[names[at]]
				right := m.base + float64(m.n+by)/m.weight
				m.correct(by, v)
				now[at] += (m.tag() - right) * m.weight
			} else if len(flights[i]) < 8 {
				f := flight{average[i].Estimate(100), cost.Draw(t, "cost")}
				v = max(v, m.tag())
				m.n += f.estimate
				flights[i] = append(flights[i], f)
				now[i] += float64(f.cost)
				most[i] = max(most[i], float64(f.cost), float64(f.estimate))
				wrong := 0.0
				for _, f := range flights[i] {
					wrong += math.Abs(float64(f.cost - f.estimate))
				}
				off[i] = max(off[i], wrong)
			}
			times = append(times, now)
		}
		for to := range times {
			for from := 0; from < to; from += 5 {
				for i, wi := range weights {
					for j, wj := range weights[:i] {
						ti, tj := times[to][i]-times[from][i], times[to][j]-times[from][j]
						if d, most := math.Abs(ti/wi-tj/wj), (most[i]+2*off[i])/wi+(most[j]+2*off[j])/wj; d > most+1e-6 {
							t.Fatalf("steps %d–%d: |%v/%v − %v/%v| = %v, bound %v", from, to, ti, wi, tj, wj, d, most)
						}
					}
				}
			}
		}
	})
}

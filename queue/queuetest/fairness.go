package queuetest

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strings"

	"github.com/taskhost/taskhost/queue"
)

func fairnessCases() []testCase {
	return []testCase{
		{name: "weights 3 to 1 give exactly 30 to 10", run: fairnessThreeToOne},
		{name: "weights hold inside one batch", run: fairnessOneBatch},
		{name: "equal tags fall to the name", run: fairnessTies},
		{name: "priority beats weight", run: fairnessPriority, needs: queue.LimitationGlobalPriority},
		{name: "case 024: four weights share as they say", run: fairnessFourWeights},
		{name: "case 025: a burst of one tenant does not hold up another", run: fairnessBurst},
		{name: "case 009: extreme weights", run: fairnessExtreme},
		{name: "tenants by weight, whatever their queues", run: fairnessTenants},
		{name: "an urgent tenant gains nothing over others", run: fairnessUrgentTenant},
		{name: "no banked credit", run: fairnessNoBankedCredit},
		{name: "leaving sheds no debt", run: fairnessDebt},
		{name: "a weight change applies to the backlog", run: fairnessReweigh},
		{name: "a template change applies to the backlog", run: fairnessConfigure},
		{name: "a newcomer of a quiet band is not locked out", run: fairnessBands},
		{name: "the starvation guard serves every fourth", run: fairnessGuard, needs: queue.LimitationGlobalPriority},
		{name: "the guard counts only while a lower band waits", run: fairnessGuardAlone, needs: queue.LimitationGlobalPriority},
		{name: "the guard steps down one band", run: fairnessGuardBands, needs: queue.LimitationGlobalPriority},
		{name: "each view is served by its own books", run: fairnessViews},
		{name: "R1's naive loop pick for pick", run: fairnessNaive, needs: queue.LimitationGlobalPriority},
		{name: "shares stay within the bound", run: fairnessBound},
	}
}

// picks takes n jobs one by one and returns the queue of each.
func (f *fixture) picks(n int) []string {
	f.Helper()
	var got []string
	for range n {
		got = append(got, f.takeOne().Queue)
	}
	return got
}

func count(list []string, what string) int {
	n := 0
	for _, s := range list {
		if s == what {
			n++
		}
	}
	return n
}

func fairnessThreeToOne(f *fixture) {
	f.setQueue("acme", "a", weight(1))
	f.setQueue("acme", "b", weight(3))
	f.putN(100, "a")
	f.putN(100, "b")
	got := f.picks(40)
	if a, b := count(got, "a"), count(got, "b"); a != 10 || b != 30 {
		f.Fatalf("first 40 with weights 3:1 = %d:%d, want 30:10", b, a)
	}
	for i := 0; i < 40; i += 4 {
		if n := count(got[i:i+4], "b"); n != 3 {
			f.Fatalf("picks %d to %d = %v, want three of b: a share is not served in bursts", i, i+4, got[i:i+4])
		}
	}
	if info := f.info("b"); info.Served != 30 || info.Ready != 70 || info.Weight != 3 {
		f.Errorf("queue b = %+v, want served 30, ready 70, weight 3", info)
	}
}

func fairnessOneBatch(f *fixture) {
	f.setQueue("acme", "b", weight(3))
	f.putN(100, "a")
	f.putN(100, "b")
	var got []string
	for _, j := range f.take(40) {
		got = append(got, j.Queue)
	}
	if a, b := count(got, "a"), count(got, "b"); a != 10 || b != 30 {
		f.Fatalf("one batch of 40 with weights 3:1 = %d:%d, want 30:10", b, a)
	}
	if want := "a b b b a b b b"; strings.Join(got[:8], " ") != want {
		f.Fatalf("the batch begins %v, want %s", got[:8], want)
	}
}

func fairnessTies(f *fixture) {
	for _, q := range []string{"b", "C", "a", "a.b", "a-b"} {
		f.putN(2, q)
	}
	if got, want := strings.Join(f.picks(10), " "), "C a a-b a.b b C a a-b a.b b"; got != want {
		f.Fatalf("equal weights are served %q, want %q: ties by name, bytewise", got, want)
	}
}

func fairnessPriority(f *fixture) {
	f.setQueue("acme", "light", weight(0.001))
	f.setQueue("acme", "heavy", weight(1000))
	f.putN(20, "heavy")
	f.putN(5, "light", priority(1))
	if got := f.picks(6); count(got[:5], "light") != 5 || got[5] != "heavy" {
		f.Fatalf("picks = %v, want the five urgent jobs of light first", got)
	}
}

func fairnessFourWeights(f *fixture) {
	weights := map[string]float64{"a": 10, "b": 10, "c": 7, "d": 5}
	for q, w := range weights {
		f.setQueue("acme", q, weight(w))
		f.putN(200, q)
	}
	var got []string
	for range 4 { // 32 is the sum of the weights: two rounds a batch
		for _, j := range f.take(64) {
			got = append(got, j.Queue)
		}
	}
	longest, since := map[string]int{}, map[string]int{}
	for _, q := range got {
		for other := range weights {
			since[other]++
			longest[other] = max(longest[other], since[other])
		}
		since[q] = 0
	}
	for q, w := range weights {
		if n := float64(count(got, q)); n < w*8-1 || n > w*8+1 {
			f.Errorf("queue %s of weight %v got %v of 256, want %v (±1)", q, w, n, w*8)
		}
		if limit := int(32/w) + 4; longest[q] > limit {
			f.Errorf("the head of %s waited %d picks, want at most %d", q, longest[q], limit)
		}
	}
}

func fairnessBurst(f *fixture) {
	f.putN(1000, "q", tenant("burst"))
	for range 5 {
		f.takeOne()
	}
	f.put("q", "single", tenant("quiet"))
	if a, b := f.takeOne(), f.takeOne(); a.Tenant != "quiet" && b.Tenant != "quiet" {
		f.Fatalf("two tenants wait, and the one job of the second is not among the next two picks")
	}
}

func fairnessExtreme(f *fixture) {
	f.setQueue("acme", "heavy", weight(queue.WeightMax))
	f.setQueue("acme", "light", weight(queue.WeightMin))
	f.putN(300, "heavy")
	f.putN(3, "light")
	if got := f.picks(300); count(got, "light") != 1 {
		f.Fatalf("light got %d of 300 at ten million to one, want its first turn only", count(got, "light"))
	}
	if got := f.picks(3); count(got, "light") != 2 {
		f.Fatalf("light got %d of the last 3, want the 2 that are left", count(got, "light"))
	}
}

func fairnessTenants(f *fixture) {
	f.configure(queue.Scheduling{Tenants: map[string]queue.TenantSettings{"big": {Weight: ptr(2.0)}}})
	for i := range 10 { // opening queues buys nothing
		f.putN(30, fmt.Sprintf("q%d", i), tenant("small"))
	}
	f.putN(200, "q0", tenant("big"))
	n := map[string]int{}
	for range 60 {
		n[f.takeOne().Tenant]++
	}
	if n["big"] != 40 || n["small"] != 20 {
		f.Fatalf("first 60 with tenant weights 2:1 = %v, want 40 and 20", n)
	}
}

func fairnessUrgentTenant(f *fixture) {
	f.putN(50, "q", tenant("urgent"), priority(queue.PriorityMax))
	f.putN(50, "q", tenant("calm"))
	n := map[string]int{}
	for range 20 {
		n[f.takeOne().Tenant]++
	}
	if n["urgent"] != 10 || n["calm"] != 10 {
		f.Fatalf("first 20 = %v, want 10 each: priority counts inside a tenant", n)
	}
}

func fairnessNoBankedCredit(f *fixture) {
	f.putN(2, "idler")
	f.putN(200, "worker")
	f.picks(4) // the idler is served twice and leaves
	if got := f.picks(100); count(got, "worker") != 100 {
		f.Fatalf("the queue that is alone gets %d of 100", count(got, "worker"))
	}
	f.putN(50, "idler")
	got := f.picks(20)
	if n := count(got, "idler"); n < 10 || n > 11 {
		f.Fatalf("the queue that was idle gets %d of 20 after its return, want 10 (+1): %v", n, got)
	}
	// The same between tenants.
	f.putN(50, "q", tenant("late"))
	n := 0
	for range 20 {
		if f.takeOne().Tenant == "late" {
			n++
		}
	}
	if n < 10 || n > 11 {
		f.Fatalf("the tenant that joined late got %d of 20, want 10 (+1)", n)
	}
}

func fairnessDebt(f *fixture) {
	f.setQueue("acme", "light", weight(0.1)) // one pick costs ten
	f.putN(1, "light")
	f.putN(50, "peer")
	if got := f.picks(3); count(got, "light") != 1 {
		f.Fatalf("picks = %v, want light once", got)
	}
	f.putN(1, "light") // it left with tag 10 while V is about 2
	if got := f.picks(8); count(got, "light") != 0 {
		f.Fatalf("picks = %v: leaving and joining again shed the debt of light", got)
	}
	if got := f.picks(3); count(got, "light") != 1 {
		f.Fatalf("picks = %v, want light once when the peer has caught up", got)
	}
}

func fairnessReweigh(f *fixture) {
	f.putN(300, "a")
	f.putN(300, "b")
	if got := f.picks(40); count(got, "a") != 20 {
		f.Fatalf("equal weights gave %d of 40 to a, want 20", count(got, "a"))
	}
	f.setQueue("acme", "a", weight(4))
	if got := f.picks(50); count(got, "a") != 40 {
		f.Fatalf("after the change to 4:1 a got %d of 50, want 40: %v", count(got, "a"), got)
	}
	f.setQueue("acme", "a", queue.QueueChange{ClearWeight: true})
	if got := f.picks(40); count(got, "a") < 19 || count(got, "a") > 21 {
		f.Fatalf("after the change back a got %d of 40, want 20 (±1): nothing jumps", count(got, "a"))
	}
}

func fairnessConfigure(f *fixture) {
	f.putN(300, "a")
	f.putN(300, "b")
	f.putN(300, "b", tenant("other"))
	f.picks(20)
	f.configure(queue.Scheduling{
		Queues:  map[string]queue.QueueSettings{"a": {Weight: ptr(3.0)}},
		Tenants: map[string]queue.TenantSettings{"acme": {Weight: ptr(4.0)}},
	})
	n := map[string]int{}
	for range 100 {
		j := f.takeOne()
		n[j.Tenant+"/"+j.Queue]++
	}
	if n["other/b"] != 20 || n["acme/a"] != 60 || n["acme/b"] != 20 {
		f.Fatalf("100 picks after Configure = %v, want acme 80 of which a 60, other 20", n)
	}
	f.setQueue("acme", "a", weight(1)) // an override wins over the template
	n = map[string]int{}
	for range 50 {
		j := f.takeOne()
		n[j.Tenant+"/"+j.Queue]++
	}
	if n["acme/a"] < 19 || n["acme/a"] > 21 {
		f.Fatalf("50 picks after the override = %v, want about 20 of acme/a", n)
	}
}

func fairnessBands(f *fixture) {
	f.putN(20, "quiet")
	f.putN(100, "busy", priority(1))
	if got := f.picks(100); count(got, "busy") != 100 {
		f.Fatalf("the band above gets %d of 100", count(got, "busy"))
	}
	f.putN(20, "new")
	if got := f.picks(10); count(got, "new") != 5 {
		f.Fatalf("picks = %v, want 5 each: what was served in one band says nothing in another", got)
	}
}

func fairnessGuard(f *fixture) {
	f.configure(queue.Scheduling{MaxConsecutiveHigh: 3, Queues: map[string]queue.QueueSettings{"vip": {Priority: ptr(10)}}})
	f.putN(12, "vip")
	f.putN(4, "normal")
	var got strings.Builder
	for _, j := range f.take(7) { // job by job, also inside a batch
		got.WriteByte(j.Queue[0])
	}
	for range 9 {
		got.WriteByte(f.takeOne().Queue[0])
	}
	if want := "vvvnvvvnvvvnvvvn"; got.String() != want {
		f.Fatalf("served %s, want %s", got.String(), want)
	}
	f.putN(5, "vip")
	f.configure(queue.Scheduling{Queues: map[string]queue.QueueSettings{"vip": {Priority: ptr(10)}}})
	f.putN(5, "normal")
	if got := f.picks(6); count(got[:5], "vip") != 5 {
		f.Fatalf("picks without the guard = %v, want strict priority", got)
	}
}

func fairnessGuardAlone(f *fixture) {
	f.configure(queue.Scheduling{MaxConsecutiveHigh: 3})
	f.putN(20, "high", priority(1))
	f.picks(10) // nobody waits below: this is no favour
	f.putN(2, "low")
	if got := strings.Join(f.picks(4), " "); got != "high high high low" {
		f.Fatalf("picks = %s, want three of high first", got)
	}
}

func fairnessGuardBands(f *fixture) {
	f.configure(queue.Scheduling{MaxConsecutiveHigh: 2})
	f.putN(9, "h", priority(2))
	f.putN(6, "m", priority(1))
	f.putN(2, "l")
	var got strings.Builder
	for range 13 {
		got.WriteString(f.takeOne().Queue)
	}
	// Every third pick goes one band down; of those every third goes down once more.
	if want := "hhmhhmhhlhhmh"; got.String() != want {
		f.Fatalf("served %s, want %s", got.String(), want)
	}
}

func fairnessViews(f *fixture) {
	f.putN(40, "a")
	f.putN(40, "b")
	onlyA := queue.View{Queues: []string{"a"}}
	f.takeFrom(onlyA, 20)
	// What another view gave to a is not held against it here.
	if got := f.picks(20); count(got, "a") != 10 {
		f.Fatalf("picks of the view of all = %v, want 10 each", got)
	}
}

// naiveLoop is the rule of one tenant without idling, as plainly as it can be said: of the queues whose head has the
// highest priority, the one with the smallest served/weight, ties by name.
type naiveLoop struct {
	names   []string // sorted
	weights map[string]float64
	heads   map[string][]int // priorities of the jobs of a queue, highest first
	served  map[string]int
}

func (n *naiveLoop) pick() string {
	band, best := math.MinInt, ""
	for _, q := range n.names {
		if len(n.heads[q]) > 0 {
			band = max(band, n.heads[q][0])
		}
	}
	for _, q := range n.names {
		if len(n.heads[q]) == 0 || n.heads[q][0] != band {
			continue
		}
		if best == "" || float64(n.served[q])/n.weights[q] < float64(n.served[best])/n.weights[best] {
			best = q
		}
	}
	n.heads[best] = n.heads[best][1:]
	n.served[best]++
	return best
}

func fairnessNaive(f *fixture) {
	rng := rand.New(rand.NewPCG(1, 2))
	n := naiveLoop{weights: map[string]float64{}, heads: map[string][]int{}, served: map[string]int{}}
	weights := []float64{1, 2, 3, 0.5, 7, 0.1, 10000, 0.001}
	for i := range 8 {
		q := fmt.Sprintf("q%d", i)
		n.names = append(n.names, q)
		n.weights[q] = weights[rng.IntN(len(weights))]
		f.setQueue("acme", q, weight(n.weights[q]))
		n.heads[q] = make([]int, 100)
		f.putN(100, q)
	}
	for i := range 100 { // no queue can idle within its 100 jobs
		want := n.pick()
		if got := f.takeOne().Queue; got != want {
			f.Fatalf("pick %d is %s, the naive loop says %s (weights %v, served %v)", i, got, want, n.weights, n.served)
		}
	}
}

func fairnessBound(f *fixture) {
	rng := rand.New(rand.NewPCG(3, 4))
	const backlog, picks = 120, 120
	weights := map[string]float64{}
	for i := range 4 {
		for k := range 3 {
			t, q := fmt.Sprintf("t%d", i), fmt.Sprintf("q%d", k)
			weights[t+"/"+q] = float64(1+rng.IntN(40)) / 8
			f.setQueue(t, q, weight(weights[t+"/"+q]))
			f.putN(backlog, q, tenant(t)) // more than all picks: everybody competes throughout
		}
	}
	tenantWeights := map[string]float64{"t0": 0.3, "t1": 1, "t2": 2.5, "t3": 1}
	tenants := map[string]queue.TenantSettings{}
	for name, w := range tenantWeights {
		tenants[name] = queue.TenantSettings{Weight: &w}
	}
	f.configure(queue.Scheduling{Tenants: tenants})
	served := map[string]float64{}
	within := func(i, j string, wi, wj float64) {
		if d := math.Abs(served[i]/wi - served[j]/wj); d > 1/wi+1/wj+1e-9 {
			f.Fatalf("%s has %v (weight %v), %s has %v (weight %v): apart by %v, bound %v", i, served[i], wi, j, served[j], wj, d, 1/wi+1/wj)
		}
	}
	for range picks {
		j := f.takeOne()
		served[j.Tenant]++
		served[j.Tenant+"/"+j.Queue]++
		for a, wa := range tenantWeights {
			for b, wb := range tenantWeights {
				within(a, b, wa, wb)
			}
			for _, x := range []string{"/q0", "/q1", "/q2"} {
				for _, y := range []string{"/q0", "/q1", "/q2"} {
					within(a+x, a+y, weights[a+x], weights[a+y])
				}
			}
		}
	}
}

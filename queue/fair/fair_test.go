package fair_test

import (
	"fmt"
	"math"
	"math/big"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/taskhost/taskhost/queue/fair"
)

// naive is FAIRNESS.md stated again, with scans and no heaps.
type naive struct {
	guard   int
	v       float64
	tenants map[string]*naiveTenant
}

type naiveTenant struct {
	member
	bands map[int]*naiveBand
}

type naiveBand struct {
	v       float64
	counter int
	queues  map[string]*member
}

type member struct {
	competes             bool
	base, weight, parked float64
	n                    int64
}

func (m *member) tag() float64 { return m.base + float64(m.n)/m.weight }

func (m *member) join(v float64) {
	if !m.competes {
		m.competes, m.base, m.n = true, max(v, m.parked), 0
	}
}

func (m *member) leave() {
	if m.competes {
		m.parked, m.competes = m.tag(), false
	}
}

func (m *member) reweigh(w float64) {
	if m.weight != w {
		m.base, m.n, m.weight = m.tag(), 0, w
	}
}

// correct adds by to what was charged; the tag does not fall below v.
func (m *member) correct(by int64, v float64) {
	if m.competes {
		m.n += by
		if m.tag() < v {
			m.base, m.n = v, 0
		}
		return
	}
	m.parked = max(v, max(v, m.parked)+float64(by)/m.weight)
}

func least(members map[string]*member) string {
	best := ""
	for name, m := range members {
		if !m.competes {
			continue
		}
		if best == "" || m.tag() < members[best].tag() || m.tag() == members[best].tag() && name < best {
			best = name
		}
	}
	return best
}

func (s *naive) pick(cost int64) (tenant string, prio int, q string) {
	all := map[string]*member{}
	for name, t := range s.tenants {
		all[name] = &t.member
	}
	tenant = least(all)
	if tenant == "" {
		return "", 0, ""
	}
	t := s.tenants[tenant]
	var bands []int
	for p, b := range t.bands {
		if least(b.queues) != "" {
			bands = append(bands, p)
		}
	}
	slices.SortFunc(bands, func(a, b int) int { return b - a })
	for s.guard > 0 && len(bands) > 1 && t.bands[bands[0]].counter >= s.guard {
		t.bands[bands[0]].counter = 0
		bands = bands[1:]
	}
	prio = bands[0]
	b := t.bands[prio]
	q = least(b.queues)
	b.v = max(b.v, b.queues[q].tag())
	b.queues[q].n += cost
	s.v = max(s.v, t.tag())
	t.n += cost
	if len(bands) > 1 {
		b.counter++
	}
	return tenant, prio, q
}

// pair runs both schedulers side by side.
type pair struct {
	fast    *fair.Scheduler[string]
	slow    *naive
	entries map[string]*fair.Entry[string]
}

func newPair(guard int) *pair {
	return &pair{fast: fair.New[string](guard), slow: &naive{guard: guard, tenants: map[string]*naiveTenant{}},
		entries: map[string]*fair.Entry[string]{}}
}

func key(tenant string, prio int, q string) string { return fmt.Sprintf("%s/%d/%s", tenant, prio, q) }

func (p *pair) member(tenant string, prio int, q string) (*fair.Entry[string], *naiveTenant, *naiveBand, *member) {
	k := key(tenant, prio, q)
	if p.entries[k] == nil {
		p.entries[k] = p.fast.Entry(tenant, q, prio, 1, k)
	}
	t := p.slow.tenants[tenant]
	if t == nil {
		t = &naiveTenant{member: member{weight: 1}, bands: map[int]*naiveBand{}}
		p.slow.tenants[tenant] = t
	}
	b := t.bands[prio]
	if b == nil {
		b = &naiveBand{queues: map[string]*member{}}
		t.bands[prio] = b
	}
	m := b.queues[q]
	if m == nil {
		m = &member{weight: 1}
		b.queues[q] = m
	}
	return p.entries[k], t, b, m
}

func (t *naiveTenant) competing() bool {
	for _, b := range t.bands {
		if least(b.queues) != "" {
			return true
		}
	}
	return false
}

// step applies one operation, chosen by four bytes, to both; it returns what differs.
func (p *pair) step(op, a, b, c byte) error {
	tenant := fmt.Sprintf("t%d", a%4)
	prio := int(b%3) - 1
	q := fmt.Sprintf("q%d", c%4)
	e, t, band, m := p.member(tenant, prio, q)
	switch op % 10 {
	case 0:
		p.fast.Join(e)
		if !t.competing() {
			t.join(p.slow.v)
		}
		m.join(band.v)
	case 1:
		p.fast.Leave(e)
		was := t.competing()
		m.leave()
		if was && !t.competing() {
			t.leave()
		}
	case 2:
		w := []float64{0.001, 0.3, 1, 3, 10000}[int(b)%5]
		p.fast.Reweigh(e, w)
		m.reweigh(w)
	case 3:
		w := []float64{0.5, 1, 2.5}[int(c)%3]
		p.fast.SetTenantWeight(tenant, w)
		t.reweigh(w)
	case 4:
		p.fast.SetGuard(int(a % 4))
		p.slow.guard = int(a % 4)
	case 5:
		by := 40 * (int64(a) - 128)
		p.fast.Correct(e, by)
		m.correct(by, band.v)
	case 6:
		by := 40 * (int64(b) - 128)
		p.fast.CorrectTenant(tenant, by)
		t.correct(by, p.slow.v)
	default:
		if twice := p.fast.Peek(); twice != p.fast.Peek() {
			return fmt.Errorf("Peek changes something")
		}
		next := p.fast.Peek()
		cost := 1 + int64(a)*int64(b%2)
		wantTenant, wantPrio, wantQueue := p.slow.pick(cost)
		if next == nil || wantTenant == "" {
			if next != nil || wantTenant != "" || !p.fast.Empty() {
				return fmt.Errorf("picked %v, want %q", next, wantTenant)
			}
			return nil
		}
		if want := key(wantTenant, wantPrio, wantQueue); next.Queue != want || next.Prio() != wantPrio {
			return fmt.Errorf("picked %s, want %s", next.Queue, want)
		}
		p.fast.Charge(next, cost)
	}
	return nil
}

func FuzzScheduler(f *testing.F) {
	f.Add(byte(0), []byte{0, 0, 0, 0, 5, 0, 0, 0})
	f.Add(byte(3), []byte{0, 0, 2, 0, 0, 0, 1, 1, 5, 0, 0, 0, 5, 0, 0, 0, 5, 0, 0, 0, 5, 0, 0, 0})
	random := rand.New(rand.NewPCG(1, 2))
	for range 20 {
		ops := make([]byte, 4*300)
		for i := range ops {
			ops[i] = byte(random.Uint32())
		}
		f.Add(byte(random.Uint32N(4)), ops)
	}
	f.Fuzz(func(t *testing.T, guard byte, ops []byte) {
		p := newPair(int(guard % 8))
		for i := 0; i+4 <= len(ops); i += 4 {
			if err := p.step(ops[i], ops[i+1], ops[i+2], ops[i+3]); err != nil {
				t.Fatalf("step %d: %v", i/4, err)
			}
		}
	})
}

func TestSchedulerAgainstTheRule(t *testing.T) {
	t.Parallel()
	for seed := range uint64(200) {
		random := rand.New(rand.NewPCG(seed, 0))
		p := newPair(int(random.Uint32N(5)))
		for i := range 500 {
			if err := p.step(byte(random.Uint32()), byte(random.Uint32()), byte(random.Uint32()), byte(random.Uint32())); err != nil {
				t.Fatalf("seed %d, step %d: %v", seed, i, err)
			}
		}
	}
}

// The bound of FAIRNESS.md, for queues and for tenants, over every interval of a run in which all compete throughout.
func TestBound(t *testing.T) {
	t.Parallel()
	weights := []float64{0.25, 1, 1, 3, 7.5}
	for _, tenants := range []bool{false, true} {
		s := fair.New[int](0)
		for i, w := range weights {
			tenant := "t"
			if tenants {
				tenant = fmt.Sprint("t", i)
				s.SetTenantWeight(tenant, w)
			}
			s.Join(s.Entry(tenant, fmt.Sprint("q", i), 0, w, i))
		}
		const picks = 600
		served := make([][]int, picks+1) // served[k][i]: picks of i among the first k
		served[0] = make([]int, len(weights))
		for k := range picks {
			e := s.Peek()
			s.Charge(e, 1)
			served[k+1] = slices.Clone(served[k])
			served[k+1][e.Queue]++
		}
		for from := 0; from < picks; from += 7 {
			for to := from + 1; to <= picks; to++ {
				for i, wi := range weights {
					for j, wj := range weights[:i] {
						si := float64(served[to][i] - served[from][i])
						sj := float64(served[to][j] - served[from][j])
						if d := math.Abs(si/wi - sj/wj); d > 1/wi+1/wj+1e-9 {
							t.Fatalf("tenants=%t picks %d–%d: |%v/%v − %v/%v| = %v", tenants, from, to, si, wi, sj, wj, d)
						}
					}
				}
			}
		}
	}
}

func TestExamples(t *testing.T) {
	t.Parallel()
	pick := func(s *fair.Scheduler[string], n int) (picks string) {
		for range n {
			e := s.Peek()
			s.Charge(e, 1)
			picks += e.Queue
		}
		return picks
	}
	t.Run("3:1 gives 30 of 40", func(t *testing.T) {
		s := fair.New[string](0)
		s.Join(s.Entry("t", "a", 0, 3, "a"))
		s.Join(s.Entry("t", "b", 0, 1, "b"))
		if got := pick(s, 8); got != "abaaabaa" {
			t.Errorf("picked %s", got)
		}
	})
	t.Run("guard 3", func(t *testing.T) {
		s := fair.New[string](3)
		s.Join(s.Entry("t", "vip", 10, 1, "V"))
		s.Join(s.Entry("t", "normal", 0, 1, "n"))
		if got := pick(s, 12); got != "VVVnVVVnVVVn" {
			t.Errorf("picked %s", got)
		}
	})
	t.Run("no banked credit, no shed debt", func(t *testing.T) {
		s := fair.New[string](0)
		a, b := s.Entry("t", "a", 0, 1, "a"), s.Entry("t", "b", 0, 1, "b")
		s.Join(a)
		pick(s, 100)
		s.Join(b)
		if got := pick(s, 6); got != "bababa" && got != "bbabab" {
			t.Errorf("after a long absence picked %s", got)
		}
		s.Leave(b)
		s.Join(b)
		if got := pick(s, 4); got != "abab" && got != "baba" {
			t.Errorf("after leaving and joining picked %s", got)
		}
	})
}

// Value is within ErrorBound of the real number, for any tag.
func FuzzTag(f *testing.F) {
	f.Add(0.0, int64(0), 1.0)
	f.Add(1e9, int64(1)<<40, 0.001)
	f.Add(0.1, int64(3), 0.3)
	f.Add(1e6, int64(-77), 0.3)
	f.Fuzz(func(t *testing.T, base float64, n int64, weight float64) {
		if !(base >= 0 && base < 1<<53) || n <= -1<<53 || n >= 1<<53 || !(weight >= 0.001 && weight <= 10000) {
			t.Skip()
		}
		tag := fair.Tag{Base: base, N: n, Weight: weight}
		exact := new(big.Rat).Add(rat(base), new(big.Rat).Quo(new(big.Rat).SetInt64(n), rat(weight)))
		diff := new(big.Rat).Sub(rat(tag.Value()), exact)
		size := new(big.Rat).Add(rat(base), new(big.Rat).Quo(new(big.Rat).Abs(new(big.Rat).SetInt64(n)), rat(weight)))
		limit := new(big.Rat).Mul(size, rat(fair.ErrorBound))
		if diff.Abs(diff).Cmp(limit) > 0 {
			t.Errorf("%+v: value %v is off by %v", tag, tag.Value(), diff.FloatString(30))
		}
		if tag.Charge(1).Value() < tag.Value() {
			t.Errorf("%+v: a service lowers the tag", tag)
		}
		for _, w := range []float64{0.001, 1, 10000} {
			if r := tag.Reweigh(w); r.Value() != tag.Value() || r.N != 0 {
				t.Errorf("%+v: weight %v moves the tag to %v", tag, w, r.Value())
			}
		}
		if v := base / 2; tag.Advance(v) < v || fair.Join(v, base, weight).Value() < v {
			t.Errorf("%+v: virtual time falls", tag)
		}
	})
}

func rat(f float64) *big.Rat { return new(big.Rat).SetFloat64(f) }

func TestPickDoesNotAllocate(t *testing.T) {
	s := populated(8, 8)
	if n := testing.AllocsPerRun(1000, func() { s.Charge(s.Peek(), 1) }); n != 0 {
		t.Errorf("a pick allocates %v times", n)
	}
}

func populated(tenants, queues int) *fair.Scheduler[int] {
	s := fair.New[int](0)
	for i := range tenants {
		tenant := fmt.Sprint("t", i)
		s.SetTenantWeight(tenant, float64(1+i%7))
		for j := range queues {
			s.Join(s.Entry(tenant, fmt.Sprint("q", j), 0, float64(1+j%5), j))
		}
	}
	return s
}

func BenchmarkPick(b *testing.B) {
	for _, n := range []int{100, 1000, 100000} {
		b.Run(fmt.Sprintf("queues=%d", n), func(b *testing.B) { benchmarkPick(b, populated(1, n)) })
		b.Run(fmt.Sprintf("tenants=%d", n), func(b *testing.B) { benchmarkPick(b, populated(n, 1)) })
	}
}

func benchmarkPick(b *testing.B, s *fair.Scheduler[int]) {
	b.ReportAllocs()
	for b.Loop() {
		s.Charge(s.Peek(), 1)
	}
}

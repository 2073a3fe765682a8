package fair

import (
	"cmp"
	"math"
	"slices"
)

// Scheduler decides who is next in one view. It is not safe for concurrent use. Q is whatever the engine wants back
// for a queue.
//
// The engine makes one Entry per queue and band, and says when it begins (Join) and ceases (Leave) to compete. One pick
// is Peek, then Charge of what Peek gave; a job that turns out to be unservable is dropped between the two, and nobody is
// charged.
type Scheduler[Q any] struct {
	guard   int
	v       float64
	tenants map[string]*tenant[Q]
	heap    heap[*tenant[Q]]
}

// tenant is one tenant of a view. Its tag counts while it is in the heap; parked is the tag it left with.
type tenant[Q any] struct {
	name   string
	tag    Tag
	value  float64
	parked float64
	index  int
	held   bool // does not compete, whatever its queues do
	bands  map[int]*band[Q]
	active []*band[Q] // bands with a competing queue, highest first
}

// band is one priority of a tenant.
type band[Q any] struct {
	tenant  *tenant[Q]
	prio    int
	v       float64
	counter int // picks since a lower band last had its turn
	heap    heap[*Entry[Q]]
}

// Entry is one queue in one band of one view.
type Entry[Q any] struct {
	Queue  Q
	name   string
	band   *band[Q]
	tag    Tag
	value  float64
	parked float64
	index  int
}

// New returns a scheduler in which nobody competes. guard is max_consecutive_high, 0 = strict priority.
func New[Q any](guard int) *Scheduler[Q] {
	return &Scheduler[Q]{guard: guard, tenants: make(map[string]*tenant[Q])}
}

// SetGuard changes max_consecutive_high from the next pick on.
func (s *Scheduler[Q]) SetGuard(n int) { s.guard = n }

// SetTenantWeight sets the weight of a tenant; its tag keeps its value.
func (s *Scheduler[Q]) SetTenantWeight(name string, weight float64) {
	t := s.tenant(name)
	if t.tag.Weight == weight {
		return
	}
	t.tag = t.tag.Reweigh(weight)
	t.value = t.tag.Value()
	if t.index != absent {
		s.heap.fix(t)
	}
}

func (s *Scheduler[Q]) tenant(name string) *tenant[Q] {
	t := s.tenants[name]
	if t == nil {
		t = &tenant[Q]{name: name, tag: Tag{Weight: 1}, index: absent, bands: make(map[int]*band[Q])}
		s.tenants[name] = t
	}
	return t
}

// Entry makes the entry of a queue in a band; it does not compete yet. Ask once per queue and band, and keep it: it holds
// the parked tag.
func (s *Scheduler[Q]) Entry(tenantName, queueName string, prio int, weight float64, q Q) *Entry[Q] {
	t := s.tenant(tenantName)
	b := t.bands[prio]
	if b == nil {
		b = &band[Q]{tenant: t, prio: prio}
		t.bands[prio] = b
	}
	return &Entry[Q]{Queue: q, name: queueName, band: b, tag: Tag{Weight: weight}, index: absent}
}

// Competes reports whether e has joined.
func (e *Entry[Q]) Competes() bool { return e.index != absent }

// Prio is the band of e.
func (e *Entry[Q]) Prio() int { return e.band.prio }

// Join makes e compete. It does nothing when it does already.
func (s *Scheduler[Q]) Join(e *Entry[Q]) {
	if e.Competes() {
		return
	}
	b := e.band
	e.tag = Join(b.v, e.parked, e.tag.Weight)
	e.value = e.tag.Value()
	b.heap.push(e)
	if len(b.heap) > 1 {
		return
	}
	t := b.tenant
	i, _ := slices.BinarySearchFunc(t.active, b, func(x, y *band[Q]) int { return cmp.Compare(y.prio, x.prio) })
	t.active = slices.Insert(t.active, i, b)
	if len(t.active) == 1 && !t.held {
		s.enter(t)
	}
}

// enter makes a tenant compete.
func (s *Scheduler[Q]) enter(t *tenant[Q]) {
	t.tag = Join(s.v, t.parked, t.tag.Weight)
	t.value = t.tag.Value()
	s.heap.push(t)
}

// exit ends a tenant's competing and parks its tag.
func (s *Scheduler[Q]) exit(t *tenant[Q]) {
	t.parked = t.value
	s.heap.remove(t)
}

// HoldTenant keeps a tenant from competing, or lets it again. Its queues stay as they are among themselves.
func (s *Scheduler[Q]) HoldTenant(name string, held bool) {
	t := s.tenant(name)
	if t.held == held {
		return
	}
	t.held = held
	switch {
	case held && t.index != absent:
		s.exit(t)
	case !held && len(t.active) > 0:
		s.enter(t)
	}
}

// Leave ends e's competing and parks its tag. It does nothing when it does not compete.
func (s *Scheduler[Q]) Leave(e *Entry[Q]) {
	if !e.Competes() {
		return
	}
	b := e.band
	e.parked = e.value
	b.heap.remove(e)
	if len(b.heap) > 0 {
		return
	}
	t := b.tenant
	i := slices.Index(t.active, b)
	t.active = slices.Delete(t.active, i, i+1)
	if len(t.active) == 0 && t.index != absent {
		s.exit(t)
	}
}

// Reweigh gives e a new weight; its tag keeps its value.
func (s *Scheduler[Q]) Reweigh(e *Entry[Q], weight float64) {
	if e.tag.Weight == weight {
		return
	}
	e.tag = e.tag.Reweigh(weight)
	e.value = e.tag.Value()
	if e.Competes() {
		e.band.heap.fix(e)
	}
}

// Empty reports whether nobody competes.
func (s *Scheduler[Q]) Empty() bool { return len(s.heap) == 0 }

// Peek returns who is next, nil when nobody competes. It changes nothing.
func (s *Scheduler[Q]) Peek() *Entry[Q] {
	if len(s.heap) == 0 {
		return nil
	}
	t := s.heap[0]
	return t.active[s.choose(t)].heap[0]
}

// choose returns the index in t.active of the band whose turn it is.
func (s *Scheduler[Q]) choose(t *tenant[Q]) int {
	i := 0
	for s.guard > 0 && i+1 < len(t.active) && t.active[i].counter >= s.guard {
		i++
	}
	return i
}

// Charge records that e, just returned by Peek, was served once, at a cost ≥ 1: always 1 unless time is charged.
func (s *Scheduler[Q]) Charge(e *Entry[Q], cost int64) {
	b := e.band
	t := b.tenant
	chosen := s.choose(t)
	for _, passed := range t.active[:chosen] {
		passed.counter = 0
	}
	if chosen+1 < len(t.active) && b.counter < math.MaxInt {
		b.counter++
	}
	b.v = e.tag.Advance(b.v)
	e.tag = e.tag.Charge(cost)
	e.value = e.tag.Value()
	b.heap.fix(e)

	s.v = t.tag.Advance(s.v)
	t.tag = t.tag.Charge(cost)
	t.value = t.tag.Value()
	s.heap.fix(t)
}

// Correct adds by to what e was charged, whether it competes or has left.
func (s *Scheduler[Q]) Correct(e *Entry[Q], by int64) {
	if !e.Competes() {
		e.parked = CorrectParked(e.parked, e.band.v, by, e.tag.Weight)
		return
	}
	e.tag = e.tag.Correct(by, e.band.v)
	e.value = e.tag.Value()
	e.band.heap.fix(e)
}

// CorrectTenant adds by to what a tenant was charged, whether it competes or has left.
func (s *Scheduler[Q]) CorrectTenant(name string, by int64) {
	t := s.tenant(name)
	if t.index == absent {
		t.parked = CorrectParked(t.parked, s.v, by, t.tag.Weight)
		return
	}
	t.tag = t.tag.Correct(by, s.v)
	t.value = t.tag.Value()
	s.heap.fix(t)
}

func (t *tenant[Q]) place() *int { return &t.index }

func (t *tenant[Q]) before(o *tenant[Q]) bool {
	return t.value < o.value || t.value == o.value && t.name < o.name
}

func (e *Entry[Q]) place() *int { return &e.index }

func (e *Entry[Q]) before(o *Entry[Q]) bool {
	return e.value < o.value || e.value == o.value && e.name < o.name
}

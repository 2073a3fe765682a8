package memq

import (
	"maps"
	"slices"

	"github.com/taskhost/taskhost/queue"
)

// view is the state of the fairness rule for one set of queue names.
type view struct {
	names   map[string]bool // empty = all queues
	v       float64
	tenants map[string]*tenant
}

type tenant struct {
	member
	bands    map[int]*band
	counters map[int]int // picks of a band while a lower one competed
}

type band struct {
	v      float64
	queues map[string]*member
}

// member is a tenant or a queue as the rule sees it.
type member struct {
	competes bool
	base     float64
	n        int64
	weight   float64
	parked   float64 // the tag it left with
}

func (m *member) tag() float64 { return m.base + float64(m.n)/m.weight }

func (m *member) join(v, weight float64) {
	*m = member{competes: true, base: max(v, m.parked), weight: weight}
}

func (m *member) leave() {
	*m = member{parked: m.tag(), weight: m.weight}
}

func (m *member) reweigh(weight float64) {
	if weight != m.weight {
		m.base, m.n, m.weight = m.tag(), 0, weight
	}
}

// viewOf returns the scheduler of a view, made at its first use; what waits already then joins at 0.
func (s *Store) viewOf(v queue.View) *view {
	key := v.Key()
	if s.views[key] == nil {
		names := map[string]bool{}
		for _, name := range v.Queues {
			names[name] = true
		}
		s.views[key] = &view{names: names, tenants: map[string]*tenant{}}
		s.syncViews()
	}
	return s.views[key]
}

// syncViews lets join, leave and change weight whoever does so after a change of the lines, of what runs, of the settings or
// of the time.
func (s *Store) syncViews() {
	s.bringBack()
	for _, v := range s.views {
		v.sync(s)
	}
}

func (v *view) includes(name string) bool { return len(v.names) == 0 || v.names[name] }

func (v *view) sync(s *Store) {
	eligible := map[lineKey]bool{}
	backlogged := map[string]bool{}
	for key := range s.lines {
		if v.includes(key.queue) && s.front(key) != nil && !s.heldBack(key.queueKey, s.now()) {
			eligible[key] = true
			backlogged[key.tenant] = true
		}
	}
	for key := range eligible {
		v.member(key) // there from now on
	}
	for name, t := range v.tenants {
		t.follow(backlogged[name] && !s.tenantFull(name), v.v, s.scheduling.TenantWeight(name)*s.scheduling.ChargeUnit())
		for p, b := range t.bands {
			for q, m := range b.queues {
				key := lineKey{queueKey{name, q}, p}
				m.follow(eligible[key], b.v, s.settings(key.queueKey).Weight*s.scheduling.ChargeUnit())
			}
		}
	}
}

// follow brings a member to whether it competes now, and to its weight.
func (m *member) follow(competes bool, v, weight float64) {
	switch {
	case competes && !m.competes:
		m.join(v, weight)
	case !competes && m.competes:
		m.leave()
	case competes:
		m.reweigh(weight)
	}
}

func (v *view) member(key lineKey) *member {
	t := v.tenants[key.tenant]
	if t == nil {
		t = &tenant{bands: map[int]*band{}, counters: map[int]int{}}
		v.tenants[key.tenant] = t
	}
	b := t.bands[key.band]
	if b == nil {
		b = &band{queues: map[string]*member{}}
		t.bands[key.band] = b
	}
	m := b.queues[key.queue]
	if m == nil {
		m = &member{}
		b.queues[key.queue] = m
	}
	return m
}

// choice is one pick before it is charged.
type choice struct {
	lineKey
	reset      []int // bands whose turn the starvation guard skipped
	lowerWaits bool
}

// choose applies steps 1 to 3 of the rule; false when nobody competes. It changes nothing.
func (v *view) choose(maxConsecutiveHigh int) (choice, bool) {
	var c choice
	members := map[string]*member{}
	for name, t := range v.tenants {
		members[name] = &t.member
	}
	name, ok := smallest(members)
	if !ok {
		return c, false
	}
	c.tenant = name
	t := v.tenants[name]
	bands := t.competing()
	i := 0
	for maxConsecutiveHigh > 0 && i+1 < len(bands) && t.counters[bands[i]] >= maxConsecutiveHigh {
		c.reset = append(c.reset, bands[i])
		i++
	}
	c.band = bands[i]
	c.lowerWaits = i+1 < len(bands)
	c.queue, _ = smallest(t.bands[c.band].queues)
	return c, true
}

// charge applies step 5; cost is 1 unless time is charged.
func (v *view) charge(c choice, cost int64) {
	t := v.tenants[c.tenant]
	b := t.bands[c.band]
	q := b.queues[c.queue]
	for _, p := range c.reset {
		t.counters[p] = 0
	}
	b.v = max(b.v, q.tag())
	q.n += cost
	v.v = max(v.v, t.tag())
	t.n += cost
	if c.lowerWaits {
		t.counters[c.band]++
	}
}

// competing lists the bands in which a queue of the tenant competes, highest first.
func (t *tenant) competing() []int {
	var bands []int
	for p, b := range t.bands {
		if _, ok := smallest(b.queues); ok {
			bands = append(bands, p)
		}
	}
	slices.Sort(bands)
	slices.Reverse(bands)
	return bands
}

// smallest returns the competing member with the smallest tag, ties by name.
func smallest(members map[string]*member) (string, bool) {
	best, found := "", false
	for _, name := range slices.Sorted(maps.Keys(members)) {
		m := members[name]
		if m.competes && (!found || m.tag() < members[best].tag()) {
			best, found = name, true
		}
	}
	return best, found
}

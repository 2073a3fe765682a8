package memq

// charge is what a reservation was charged while time is charged; the zero charge is none.
type charge struct {
	view *view
	lineKey
	estimate int64 // ms
}

// measurement is how long a reservation ran that was settled.
type measurement struct {
	charge
	ms int64
}

// costMost is the most that one job costs, in ms.
const costMost = 1 << 30

func clampCost(ms int64) int64 { return min(max(ms, 1), costMost) }

// estimate is what the next job of a queue is charged: 1 when every job costs the same, else the milliseconds it will take, judging by
// those before it.
func (s *Store) estimate(key queueKey) int64 {
	unit := s.scheduling.ChargeByTime.Milliseconds()
	switch {
	case unit == 0:
		return 1
	case s.costs[key] == 0:
		return clampCost(unit)
	}
	return clampCost(s.costs[key] / 8)
}

// correct puts right what the settled reservations of one call were charged, all of a queue at once, and learns from them.
func (s *Store) correct(measured []measurement) {
	if s.scheduling.ChargeByTime == 0 {
		return
	}
	type tenantIn struct {
		view *view
		name string
	}
	type lineIn struct {
		view *view
		lineKey
	}
	lines, tenants := map[lineIn]int64{}, map[tenantIn]int64{}
	total, n := map[queueKey]int64{}, map[queueKey]int64{}
	for _, m := range measured {
		if m.view == nil {
			continue // reserved when every job cost the same
		}
		cost := clampCost(m.ms)
		lines[lineIn{m.view, m.lineKey}] += cost - m.estimate
		tenants[tenantIn{m.view, m.tenant}] += cost - m.estimate
		total[m.queueKey] += cost
		n[m.queueKey]++
	}
	for key, by := range lines {
		b := key.view.tenants[key.tenant].bands[key.band]
		b.queues[key.queue].correct(by, b.v, s.settings(key.queueKey).Weight*s.scheduling.ChargeUnit())
	}
	for key, by := range tenants {
		key.view.tenants[key.name].correct(by, key.view.v, s.scheduling.TenantWeight(key.name)*s.scheduling.ChargeUnit())
	}
	for key, k := range n {
		if old := s.costs[key]; old == 0 || k >= 8 {
			s.costs[key] = 8 * total[key] / k
		} else {
			s.costs[key] = old + total[key] - k*(old/8)
		}
	}
}

// correct adds by to what a member was charged; its tag, or the one it left with, ends at v at the least.
func (m *member) correct(by int64, v, weight float64) {
	if !m.competes {
		m.parked = max(v, max(v, m.parked)+float64(by)/weight)
		return
	}
	m.n += by
	if m.tag() < v {
		m.base, m.n = v, 0
	}
}

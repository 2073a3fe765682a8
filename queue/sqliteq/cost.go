package sqliteq

import "github.com/taskhost/taskhost/queue/fair"

// estimate is what the next job of a queue is charged, in milliseconds; 0 when every job costs the same. With s.mu held.
func (s *Store) estimate(q *queueState) int64 {
	if s.scheduling.ChargeByTime == 0 {
		return 0
	}
	return q.cost.Estimate(s.scheduling.ChargeByTime.Milliseconds())
}

// correct puts right what jobs were charged that one call has settled, once per queue and tenant, and learns from them. It follows
// the commit, and is only for a store that charges time; with s.mu held.
func (s *Store) correct(moves []move) {
	type tenantIn struct {
		view *view
		name string
	}
	type measured struct{ total, n int64 }
	entries, tenants, queues := map[lineEntry]int64{}, map[tenantIn]int64{}, map[*queueState]measured{}
	for i := range moves {
		r := moves[i].r
		if r.estimate == 0 {
			continue // reserved when every job cost the same
		}
		cost := fair.Cost(moves[i].v.Duration.Milliseconds())
		for _, le := range s.lineOf(r.q, r.prio).entries {
			if le.view == r.b.view {
				entries[le] += cost - r.estimate
			}
		}
		tenants[tenantIn{r.b.view, r.q.tenant.name}] += cost - r.estimate
		m := queues[r.q]
		queues[r.q] = measured{total: m.total + cost, n: m.n + 1}
	}
	for le, by := range entries {
		le.view.sched.Correct(le.entry, by)
	}
	for key, by := range tenants {
		key.view.sched.CorrectTenant(key.name, by)
	}
	for q, m := range queues {
		q.cost = q.cost.Learn(m.total, m.n)
	}
}

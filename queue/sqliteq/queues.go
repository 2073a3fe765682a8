package sqliteq

import (
	"github.com/taskhost/taskhost/queue"
	"github.com/taskhost/taskhost/queue/fair"
)

// tenantState is a tenant as the store knows it.
type tenantState struct {
	id     int64
	name   string
	stored bool // its row is committed
	queues map[string]*queueState

	running    int64
	maxRunning int // in force; 0 = no cap
}

// queueState is one queue. Counters change with the commits they count, under Store.mu.
type queueState struct {
	id       int64
	tenant   *tenantState
	name     string
	stored   bool // its row is committed
	used     bool // got a job; committed
	override queue.QueueSettings
	settings queue.EffectiveSettings // in force
	lines    map[int]*line
	slots    map[string]*slots // by concurrency key

	cost      fair.Average // of its jobs, while time is charged
	bucket    fair.Bucket  // of its rate
	rateUntil int64        // held back by its rate until then; 0 = it is not

	scheduled int64
	ready     int64
	running   int64
	dead      int64
	served    int64
	servedRow int64 // what the row says
}

// eachReady calls f with every ready job, in no order.
func (q *queueState) eachReady(gone map[int64]struct{}, f func(seq int64)) {
	for _, l := range q.lines {
		for seq := range l.all() {
			if _, dead := gone[seq]; !dead {
				f(seq)
			}
		}
		for _, sd := range l.back {
			f(sd.seq)
		}
	}
	for _, k := range q.slots {
		for _, sd := range k.aside {
			f(sd.seq)
		}
	}
}

// tenant returns the tenant, made when it is new; with s.mu held.
func (s *Store) tenant(name string) *tenantState {
	t := s.tenants[name]
	if t == nil {
		s.lastTenant++
		t = s.addTenant(s.lastTenant, name)
	}
	return t
}

func (s *Store) addTenant(id int64, name string) *tenantState {
	t := &tenantState{id: id, name: name, queues: make(map[string]*queueState), maxRunning: s.scheduling.TenantMaxRunning(name)}
	s.tenants[name] = t
	s.tenantsByID[id] = t
	return t
}

// queue returns the queue, made when it is new; with s.mu held.
func (s *Store) queue(tenant, name string) *queueState {
	t := s.tenant(tenant)
	q := t.queues[name]
	if q == nil {
		s.lastQueue++
		q = s.addQueue(s.lastQueue, t, name)
	}
	return q
}

func (s *Store) addQueue(id int64, t *tenantState, name string) *queueState {
	q := &queueState{id: id, tenant: t, name: name, lines: make(map[int]*line)}
	q.settings = queue.Effective(q.override, s.scheduling.Queues[name])
	t.queues[name] = q
	s.queuesByID[id] = q
	return q
}

// findQueue returns nil for a queue that has no state; with s.mu held.
func (s *Store) findQueue(tenant, name string) *queueState {
	if t := s.tenants[tenant]; t != nil {
		return t.queues[name]
	}
	return nil
}

// lineOf returns the line of a priority, made when it is new; with s.mu held.
func (s *Store) lineOf(q *queueState, prio int) *line {
	l := q.lines[prio]
	if l == nil {
		l = &line{q: q, prio: prio}
		q.lines[prio] = l
		for _, v := range s.views {
			s.enterView(l, v)
		}
	}
	return l
}

// put stores the row of a queue, and of its tenant, as it is to be.
func (g *group) putQueue(q *queueState, used bool, override queue.QueueSettings) error {
	if !q.tenant.stored {
		if err := g.exec(sqlTenantInsert, q.tenant.id, q.tenant.name); err != nil {
			return err
		}
	}
	var weight, priority, paused, maxRunning, maxPerKey, rate any
	if override.Weight != nil {
		weight = *override.Weight
	}
	if override.Priority != nil {
		priority = int64(*override.Priority)
	}
	if override.Paused != nil {
		paused = boolInt(*override.Paused)
	}
	if override.MaxRunning != nil {
		maxRunning = int64(*override.MaxRunning)
	}
	if override.MaxPerKey != nil {
		maxPerKey = int64(*override.MaxPerKey)
	}
	if override.Rate != nil {
		rate = override.Rate.String()
	}
	return g.exec(sqlQueuePut, q.id, q.tenant.id, q.name, boolInt(used), q.servedRow, weight, priority, paused, maxRunning, maxPerKey, rate)
}

func boolInt(b bool) int64 {
	if b {
		return 1
	}
	return 0
}

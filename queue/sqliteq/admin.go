package sqliteq

import (
	"cmp"
	"context"
	"database/sql/driver"
	"encoding/json"
	"maps"
	"slices"
	"time"

	"github.com/taskhost/taskhost/queue"
	"github.com/taskhost/taskhost/queue/fair"
)

// Configure implements queue.Configurable. The snapshot is stored, so that a store opened again counts the crashes of the
// process before it by the budget that was in force.
func (s *Store) Configure(ctx context.Context, c queue.Scheduling) error {
	if err := s.enter(ctx); err != nil {
		return err
	}
	if err := c.Validate(); err != nil {
		return err
	}
	c = c.Clone()
	text, err := json.Marshal(c)
	if err != nil {
		return err
	}
	return s.step(ctx, func(g *group, t *step) error {
		g.config = c
		t.then = append(t.then, func() { s.configure(c) })
		return g.exec(sqlMetaScheduling, text)
	})
}

// configure puts a snapshot in force; with s.mu held.
func (s *Store) configure(c queue.Scheduling) {
	s.scheduling = c
	for _, v := range s.views {
		v.sched.SetGuard(c.MaxConsecutiveHigh)
		for name := range s.tenants {
			v.sched.SetTenantWeight(name, c.TenantWeight(name)*c.ChargeUnit())
		}
	}
	for name, t := range s.tenants {
		t.maxRunning = c.TenantMaxRunning(name)
		s.holdTenant(t)
	}
	for _, q := range s.queuesByID {
		s.apply(q, queue.Effective(q.override, c.Queues[q.name]))
		if c.ChargeByTime == 0 {
			q.cost = fair.Average{}
		}
	}
	for _, joins := range [...]bool{true, false} { // first, so that no tenant leaves that goes on competing
		for _, q := range s.queuesByID {
			for _, l := range q.lines {
				if l.eligible() == joins {
					s.sync(l)
				}
			}
		}
	}
}

// exists: configured, overridden, or ever used; with s.mu held.
func (s *Store) exists(name string, q *queueState) bool {
	_, configured := s.scheduling.Queues[name]
	return configured || q != nil && (q.used || !q.override.Empty())
}

// ListQueues implements queue.Queues.
func (s *Store) ListQueues(ctx context.Context, tenant string) ([]queue.QueueInfo, error) {
	if err := s.enter(ctx); err != nil {
		return nil, err
	}
	if err := queue.ValidName("tenant", tenant); err != nil {
		return nil, err
	}
	s.mu.Lock()
	names := make(map[string]struct{})
	for name := range s.scheduling.Queues {
		names[name] = struct{}{}
	}
	if t := s.tenants[tenant]; t != nil {
		for name := range t.queues {
			names[name] = struct{}{}
		}
	}
	var infos []queue.QueueInfo
	var oldest []int64
	for _, name := range slices.Sorted(maps.Keys(names)) {
		if q := s.findQueue(tenant, name); s.exists(name, q) {
			info, seq := s.info(tenant, name, q)
			infos, oldest = append(infos, info), append(oldest, seq)
		}
	}
	s.mu.Unlock()
	return infos, s.fillAges(ctx, infos, oldest)
}

// GetQueue implements queue.Queues.
func (s *Store) GetQueue(ctx context.Context, tenant, name string) (queue.QueueInfo, error) {
	if err := s.enter(ctx); err != nil {
		return queue.QueueInfo{}, err
	}
	s.mu.Lock()
	q := s.findQueue(tenant, name)
	if queue.ValidName("tenant", tenant) != nil || !s.exists(name, q) {
		s.mu.Unlock()
		return queue.QueueInfo{}, queue.ErrNotFound
	}
	info, seq := s.info(tenant, name, q)
	s.mu.Unlock()
	infos := []queue.QueueInfo{info}
	err := s.fillAges(ctx, infos, []int64{seq})
	return infos[0], err
}

// SetQueue implements queue.Queues.
func (s *Store) SetQueue(ctx context.Context, tenant, name string, c queue.QueueChange) (queue.QueueInfo, error) {
	if err := s.enter(ctx); err != nil {
		return queue.QueueInfo{}, err
	}
	if err := cmp.Or(queue.ValidName("tenant", tenant), queue.ValidName("queue", name), c.Validate()); err != nil {
		return queue.QueueInfo{}, err
	}
	infos, oldest := make([]queue.QueueInfo, 1), make([]int64, 1)
	err := s.step(ctx, func(g *group, t *step) error {
		s.mu.Lock()
		q := s.queue(tenant, name)
		if _, taken := g.touched[-q.id]; taken { // a second change in one group must see the first
			s.mu.Unlock()
			return errNextGroup
		}
		override := c.Apply(q.override)
		s.mu.Unlock()
		g.touched[-q.id] = struct{}{}
		t.then = append(t.then, func() {
			q.stored, q.tenant.stored = true, true
			q.override = override
			s.apply(q, queue.Effective(override, s.scheduling.Queues[name]))
			s.syncQueue(q)
			infos[0], oldest[0] = s.info(tenant, name, q)
		})
		return g.putQueue(q, q.used, override)
	})
	if err != nil {
		return queue.QueueInfo{}, err
	}
	err = s.fillAges(ctx, infos, oldest)
	return infos[0], err
}

// info describes a queue, whose state may be nil, and returns the number of its oldest ready job, 0 for none; with s.mu
// held.
func (s *Store) info(tenant, name string, q *queueState) (queue.QueueInfo, int64) {
	e := queue.Effective(queue.QueueSettings{}, s.scheduling.Queues[name])
	if q != nil {
		e = q.settings
	}
	info := queue.QueueInfo{
		Tenant:     tenant,
		Name:       name,
		Weight:     e.Weight,
		Priority:   e.Priority,
		Paused:     e.Paused,
		MaxRunning: e.MaxRunning,
		MaxPerKey:  e.MaxPerKey,
		Rate:       e.Rate,
	}
	if waits := queueWaits(e, s.tenants[tenant], q, s.now()); len(waits) > 0 {
		info.Waiting = waits[0].Code
	}
	if q == nil {
		return info, 0
	}
	info.Override = q.override.Clone()
	info.Scheduled, info.Ready, info.Running, info.Dead, info.Served = q.scheduled, q.ready, q.running, q.dead, q.served
	oldest := never
	q.eachReady(s.gone, func(seq int64) { oldest = min(oldest, seq) })
	if oldest == never {
		oldest = 0
	}
	return info, oldest
}

// fillAges looks up when the oldest ready jobs were created; one that has gone meanwhile leaves the age 0.
func (s *Store) fillAges(ctx context.Context, infos []queue.QueueInfo, oldest []int64) error {
	now := s.now()
	births := make(map[int64]birth)
	s.mu.Lock()
	var unknown []int64
	for _, seq := range oldest {
		if seq == 0 {
			continue
		}
		if e, ok := s.cache.get(seq); ok {
			births[seq] = e.birth
		} else {
			unknown = append(unknown, seq)
		}
	}
	s.mu.Unlock()
	if len(unknown) > 0 {
		err := s.read(ctx, func(c *conn) error {
			for _, seq := range unknown {
				err := c.query(ctx, sqlJobRead, func(row []driver.Value) error {
					births[seq] = birth(asInt(row[3]))
					return nil
				}, seq)
				if err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	for i, seq := range oldest {
		if b, ok := births[seq]; ok {
			infos[i].OldestAge = max(now.Sub(b.time()), time.Duration(0))
		}
	}
	return nil
}

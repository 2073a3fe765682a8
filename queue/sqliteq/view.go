package sqliteq

import (
	"github.com/taskhost/taskhost/queue"
	"github.com/taskhost/taskhost/queue/fair"
)

// view is one set of queue names with its own scheduler over the shared lines. It is made at its first use and stays.
type view struct {
	names map[string]struct{} // empty = all
	sched *fair.Scheduler[*line]
	wake  chan struct{} // closed, and made anew, when somebody joins; nil while nobody waits
}

func (v *view) includes(queueName string) bool {
	if len(v.names) == 0 {
		return true
	}
	_, ok := v.names[queueName]
	return ok
}

// viewOf returns the view, with s.mu held.
func (s *Store) viewOf(qv queue.View) *view {
	key := ""
	if len(qv.Queues) > 0 {
		key = qv.Key()
	}
	if v := s.views[key]; v != nil {
		return v
	}
	v := &view{names: make(map[string]struct{}, len(qv.Queues)), sched: fair.New[*line](s.scheduling.MaxConsecutiveHigh)}
	for _, name := range qv.Queues {
		v.names[name] = struct{}{}
	}
	s.views[key] = v
	for _, q := range s.queuesByID {
		for _, l := range q.lines {
			s.enterView(l, v)
			s.sync(l) // everybody starts at 0, so the order does not matter
		}
	}
	return v
}

func (s *Store) enterView(l *line, v *view) {
	if !v.includes(l.q.name) {
		return
	}
	t := l.q.tenant
	v.sched.SetTenantWeight(t.name, s.scheduling.TenantWeight(t.name)*s.scheduling.ChargeUnit())
	v.sched.HoldTenant(t.name, t.full())
	e := v.sched.Entry(t.name, l.q.name, l.prio, l.q.settings.Weight*s.scheduling.ChargeUnit(), l)
	l.entries = append(l.entries, lineEntry{view: v, entry: e})
}

// rouse wakes who waits on the view, with s.mu held.
func (v *view) rouse() {
	if v.wake != nil {
		close(v.wake)
		v.wake = nil
	}
}

// eligible reports whether a line is to compete.
func (l *line) eligible() bool { return l.takeable() > 0 && !l.q.heldBack() }

// sync lets a line join or leave after it, or its queue, changed; with s.mu held.
func (s *Store) sync(l *line) {
	eligible := l.eligible()
	for _, le := range l.entries {
		if eligible == le.entry.Competes() {
			continue
		}
		if eligible {
			le.view.sched.Join(le.entry)
			le.view.rouse()
		} else {
			le.view.sched.Leave(le.entry)
		}
	}
}

// syncQueue is sync for every line of a queue.
func (s *Store) syncQueue(q *queueState) {
	for _, l := range q.lines {
		s.sync(l)
	}
}

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
	v.sched.SetTenantWeight(l.q.tenant.name, s.scheduling.TenantWeight(l.q.tenant.name))
	e := v.sched.Entry(l.q.tenant.name, l.q.name, l.prio, l.q.settings.Weight, l)
	l.entries = append(l.entries, lineEntry{view: v, entry: e})
}

// sync lets a line join or leave after it, or its queue, changed; with s.mu held.
func (s *Store) sync(l *line) {
	eligible := l.live > 0 && !l.q.settings.Paused
	for _, le := range l.entries {
		if eligible == le.entry.Competes() {
			continue
		}
		if eligible {
			le.view.sched.Join(le.entry)
			if le.view.wake != nil {
				close(le.view.wake)
				le.view.wake = nil
			}
		} else {
			le.view.sched.Leave(le.entry)
		}
	}
}

// reweigh applies the settings in force to every line of a queue, with s.mu held.
func (s *Store) reweigh(q *queueState) {
	for _, l := range q.lines {
		for _, le := range l.entries {
			le.view.sched.Reweigh(le.entry, q.settings.Weight)
		}
		s.sync(l)
	}
}

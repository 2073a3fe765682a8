package memq

import (
	"slices"
	"time"

	"github.com/taskhost/taskhost/queue"
)

// lineKey names the line of the ready jobs of one queue and priority.
type lineKey struct {
	queueKey
	band int
}

func keyOf(r *record) lineKey {
	return lineKey{queueKey{r.job.Tenant, r.job.Queue}, r.job.Priority}
}

// toTail makes a job ready behind all others of its line.
func (s *Store) toTail(r *record) {
	s.makeReady(r)
	s.lines[keyOf(r)] = append(s.lines[keyOf(r)], r)
	s.syncViews()
	s.touch(r)
}

// toFront makes jobs ready before all others of their lines, as a block in the order in which they had been reserved.
func (s *Store) toFront(block []*record) {
	slices.SortFunc(block, func(a, b *record) int { return int(b.reservation - a.reservation) })
	for _, r := range block { // the last reserved goes in first
		s.makeReady(r)
		s.lines[keyOf(r)] = slices.Insert(s.lines[keyOf(r)], 0, r)
		s.syncViews()
		s.touch(r)
	}
}

func (s *Store) makeReady(r *record) {
	r.job.State = queue.StateReady
	r.job.Reason = queue.ReasonNone
	r.job.NextRunAt = time.Time{}
}

// leaveLine takes a job out of its line, if it is in one.
func (s *Store) leaveLine(r *record) {
	s.takeFromLine(r)
	s.syncViews()
}

func (s *Store) takeFromLine(r *record) {
	key := keyOf(r)
	r.aside, r.back = false, false
	s.lines[key] = slices.DeleteFunc(s.lines[key], func(o *record) bool { return o == r })
	if len(s.lines[key]) == 0 {
		delete(s.lines, key)
	}
}

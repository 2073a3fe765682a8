package sqliteq

import (
	"context"

	"github.com/taskhost/taskhost/queue"
)

// WaitingOn implements queue.Explainer.
func (s *Store) WaitingOn(ctx context.Context, tenant, id string) ([]queue.WaitReason, error) {
	if err := s.enter(ctx); err != nil {
		return nil, err
	}
	b, seq, ok := s.ids.parse(id)
	if !ok {
		return nil, queue.ErrNotFound
	}
	if _, runs := s.runningView(tenant, b, seq); runs {
		return nil, nil
	}
	var v *jobView
	err := s.read(ctx, func(c *conn) (err error) {
		v, err = s.find(ctx, c, tenant, b, seq)
		return err
	})
	switch {
	case err != nil:
		return nil, err
	case v == nil:
		return nil, queue.ErrNotFound
	case v.state == queue.StateScheduled:
		return []queue.WaitReason{{Code: queue.WaitCodeOf(v.st.reason), Until: fromMillis(v.runAt)}}, nil
	case v.state != queue.StateReady:
		return nil, nil
	}
	sp, err := decodeRecord(v.record)
	if err != nil {
		return nil, nil // it dies when it comes to the front
	}
	now := s.now()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.running[seq] != nil { // reserved since
		return nil, nil
	}
	q := v.q
	list := queueWaits(q.settings, q.tenant, q, now)
	if key := sp.job.ConcurrencyKey; key != "" {
		if k := q.slots[key]; k != nil && !k.free() {
			list = append(list, queue.WaitReason{Code: queue.WaitKey, Key: key, Limit: q.settings.MaxPerKey, Running: k.running})
		}
	}
	ahead := int64(-1) // itself
	for prio, l := range q.lines {
		if prio >= v.prio {
			ahead += int64(l.takeable() + l.aside)
		}
	}
	if ahead > 0 {
		list = append(list, queue.WaitReason{Code: queue.WaitAhead, AtMost: ahead})
	}
	return list, nil
}

package sqliteq

import (
	"cmp"
	"context"
	"database/sql/driver"
	"slices"
	"time"

	"github.com/taskhost/taskhost/queue"
)

// maintainMax bounds what one Maintain does of each kind, in jobs.
const maintainMax = 1000

// Retention and the sweep of idempotency keys are done in lumps: after one, the next is not due before this has passed,
// however soon the next job is over its age. Maintain itself does at any time whatever is due.
const (
	retainEvery = 10 * time.Second
	forgetEvery = time.Minute
)

// Maintain implements queue.Queue. It asks the writer only for what is due.
func (s *Store) Maintain(ctx context.Context) (queue.MaintainReport, error) {
	var report queue.MaintainReport
	if err := s.enter(ctx); err != nil {
		return report, err
	}
	now := s.now().UnixMilli()
	evicted := 0
	for _, stage := range [...]struct {
		due   func(now int64) bool
		run   func(g *group, t *step, n *int) error
		count *int
	}{
		{due: s.expiryDue, run: s.expire, count: &report.Expired},
		{due: s.scheduleDue, run: s.promote, count: &report.Promoted},
		{due: s.leaseDue, run: s.reap, count: &report.Reaped},
		{due: s.retentionDue, run: func(g *group, t *step, n *int) error { return s.retain(g, t, n, &evicted) }, count: &report.Retained},
	} {
		if !stage.due(now) {
			continue
		}
		n := 0
		if err := s.step(ctx, func(g *group, t *step) error { n = 0; return stage.run(g, t, &n) }); err != nil {
			return report, err
		}
		*stage.count = n
		report.More = report.More || n >= maintainMax
	}
	report.Evicted = evicted
	if s.forgetDue(now) {
		if err := s.step(ctx, s.forget); err != nil {
			return report, err
		}
	}
	return report, nil
}

func (s *Store) expiryDue(now int64) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.nextExpiry() <= now
}

func (s *Store) scheduleDue(now int64) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.nextScheduled() <= now
}

func (s *Store) leaseDue(now int64) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.nextLeaseEnd() <= now
}

func (s *Store) retentionDue(now int64) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.nextRetention() <= now
}

func (s *Store) forgetDue(now int64) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.forgetAt <= now
}

// nextExpiry is when the next waiting job expires; with s.mu held, like the others.
func (s *Store) nextExpiry() int64 {
	for len(s.expiry) > 0 {
		top := s.expiry[0]
		if s.expires[top.seq] == top.at {
			return top.at
		}
		s.expiry.pop()
	}
	return never
}

func (s *Store) nextScheduled() int64 {
	for len(s.scheduled) > 0 {
		top := s.scheduled[0]
		if _, dead := s.unscheduled[top.seq]; !dead {
			return top.at
		}
		delete(s.unscheduled, top.seq)
		s.scheduled.pop()
	}
	return never
}

func (s *Store) nextLeaseEnd() int64 {
	for len(s.batches) > 0 {
		b := s.batches[0]
		first := b.firstEnd(s)
		if first <= b.until {
			return b.until
		}
		s.batches.rekey(b, first)
	}
	return never
}

// firstEnd is when the first lease of the batch ends.
func (b *batch) firstEnd(s *Store) int64 {
	first := never
	for _, r := range b.jobs {
		if s.running[r.seq] == r {
			first = min(first, r.until)
		}
	}
	return first
}

func (s *Store) nextRetention() int64 {
	next := never
	for region, state := range [...]queue.State{finOther: queue.StateSucceeded, finDead: queue.StateDead} {
		if s.finishedFirst[region] == never {
			continue
		}
		if until, ok := keptUntil(s.scheduling.Retention, state, s.finishedFirst[region]); ok {
			next = min(next, until)
		}
		if most := s.scheduling.Retention.Most(state); most > 0 && (s.finishedCount[region] < 0 || s.finishedCount[region] > int64(most)) {
			next = 0 // at once, or to count them
		}
	}
	return next
}

// compactTimers drops what no longer counts once that is the greater part; with s.mu held.
func (s *Store) compactTimers() {
	if len(s.unscheduled) > 1024 && 2*len(s.unscheduled) > len(s.scheduled) {
		s.scheduled.compact(func(d due) bool { _, dead := s.unscheduled[d.seq]; return !dead })
		clear(s.unscheduled)
	}
	if len(s.expiry) > 1024 && len(s.expiry) > 2*len(s.expires) {
		s.expiry.compact(func(d due) bool { return s.expires[d.seq] == d.at })
	}
}

func (s *Store) expire(g *group, t *step, n *int) error {
	s.mu.Lock()
	var over []due
	for len(over) < maintainMax && s.nextExpiry() <= g.nowMS {
		over = append(over, s.expiry.pop())
	}
	s.mu.Unlock()
	t.size = len(over)
	putBack := func() {
		for _, d := range over {
			s.expiry.push(d)
		}
	}
	for _, d := range over {
		if _, taken := g.touched[d.seq]; taken {
			s.mu.Lock()
			putBack()
			s.mu.Unlock()
			return errNextGroup
		}
	}
	t.undo = append(t.undo, putBack)
	for _, d := range over {
		j, err := g.readJob(d.seq)
		if err != nil {
			return err
		}
		if j == nil || j.q == nil {
			continue
		}
		g.touched[d.seq] = struct{}{}
		s.mu.Lock()
		_, reserved := s.running[d.seq]
		_, waits := s.expires[d.seq]
		if waits && !reserved { // else a Reserve was faster
			t.undo = append(t.undo, s.leaveWaiting(j))
		}
		s.mu.Unlock()
		if !waits || reserved {
			continue
		}
		if err := g.finishWaiting(j, queue.StateExpired, t); err != nil {
			return err
		}
		*n++
	}
	return nil
}

func (s *Store) promote(g *group, t *step, n *int) error {
	s.mu.Lock()
	var ready []due
	for len(ready) < maintainMax && s.nextScheduled() <= g.nowMS {
		ready = append(ready, s.scheduled.pop())
	}
	s.mu.Unlock()
	t.size = len(ready)
	t.undo = append(t.undo, func() {
		for _, d := range ready {
			s.scheduled.push(d)
		}
	})
	for _, d := range ready {
		g.touched[d.seq] = struct{}{} // cannot be taken: scheduled jobs change in groups only, and leave the heap then
		if err := g.exec(sqlJobDue, g.tailPos(), d.seq); err != nil {
			return err
		}
	}
	*n = len(ready)
	t.then = append(t.then, func() {
		for _, d := range ready {
			d.l.q.scheduled--
			s.ready(d.l, d.seq)
			s.notify(d.seq)
		}
	})
	return nil
}

func (s *Store) reap(g *group, t *step, n *int) error {
	s.mu.Lock()
	var ended []*running
	var lapsed []*batch
	for _, b := range s.batches {
		if b.until > g.nowMS || len(ended) >= maintainMax {
			continue
		}
		lapsed = append(lapsed, b)
		for _, r := range b.jobs {
			if s.running[r.seq] == r && !r.busy && r.until <= g.nowMS {
				ended = append(ended, r)
			}
		}
	}
	slices.SortFunc(ended, func(a, b *running) int { return cmp.Compare(a.order, b.order) })
	moves := make([]move, len(ended))
	for i, r := range ended {
		lasted := time.Duration(r.until-r.started) * time.Millisecond
		moves[i] = s.decide(r, &queue.Settlement{Verb: queue.VerbCrash, Duration: lasted})
	}
	s.mu.Unlock()
	t.size = len(ended)
	t.undo = append(t.undo, func() { revertMoves(moves) })
	if err := g.settle(moves); err != nil {
		return err
	}
	*n = len(ended)
	t.then = append(t.then, func() {
		s.applyMoves(moves)
		for _, b := range lapsed {
			if b.index >= 0 {
				s.batches.rekey(b, max(b.until, b.firstEnd(s)))
			}
		}
	})
	return nil
}

func (s *Store) retain(g *group, t *step, n, evicted *int) error {
	*evicted = 0
	for region, state := range [...]queue.State{finOther: queue.StateSucceeded, finDead: queue.StateDead} {
		low, high := int64(0), deadBase-1
		if region == finDead {
			low, high = deadBase, never
		}
		surplus, err := g.surplus(region, g.config.Retention.Most(state), low, high)
		if err != nil {
			return err
		}
		type over struct{ fin, seq, queue int64 }
		var list []over
		err = g.query(sqlFinishedDue, func(row []driver.Value) error {
			until, ok := keptUntil(g.config.Retention, state, asInt(row[3]))
			if !ok || until > g.nowMS {
				if int64(len(list)) >= surplus {
					return errStop
				}
				*evicted++
			}
			list = append(list, over{asInt(row[0]), asInt(row[1]), asInt(row[2])})
			return nil
		}, low, high, int64(maintainMax))
		if err != nil {
			return err
		}
		for _, o := range list {
			if err := g.removeExtras(o.seq, true, true); err != nil {
				return err
			}
		}
		if len(list) > 0 {
			if err := g.exec(sqlFinishedDeleteRun, low, list[len(list)-1].fin); err != nil {
				return err
			}
		}
		first, err := finishedFirst(context.Background(), g.w.c, low, high)
		if err != nil {
			return err
		}
		g.finDeleted[region] += int64(len(list))
		g.counters.removed += int64(len(list))
		*n += len(list)
		t.then = append(t.then, func() {
			s.finishedFirst[region] = first
			for _, o := range list {
				if q := s.queuesByID[o.queue]; q != nil && region == finDead {
					q.dead--
				}
				s.unwatch(o.seq)
			}
		})
	}
	t.then = append(t.then, func() { s.retainAt = g.nowMS + retainEvery.Milliseconds() })
	return nil
}

// surplus is how many finished rows of a region are over their bound; 0 without one. The first call counts the rows.
func (g *group) surplus(region, most int, low, high int64) (int64, error) {
	if most == 0 {
		return 0, nil
	}
	s := g.s
	s.mu.Lock()
	count := s.finishedCount[region]
	s.mu.Unlock()
	if count < 0 {
		err := g.query(sqlFinishedCount, func(row []driver.Value) error {
			count = asInt(row[0]) + g.finDeleted[region]
			return nil
		}, low, high)
		if err != nil {
			return 0, err
		}
		s.mu.Lock()
		s.finishedCount[region] = count
		s.mu.Unlock()
	}
	return max(count+g.finAdded[region]-g.finDeleted[region]-int64(most), 0), nil
}

// finishedFirst is the finish time of the oldest finished row in a range of numbers.
func finishedFirst(ctx context.Context, c *conn, low, high int64) (int64, error) {
	first := never
	err := c.query(ctx, sqlFinishedFirst, func(row []driver.Value) error {
		if asInt(row[0]) <= high {
			first = asInt(row[1])
		}
		return nil
	}, low)
	return first, err
}

// forget sweeps idempotency keys and unique keys whose time is over; Enqueue does not count them any more.
func (s *Store) forget(g *group, t *step) error {
	if err := g.exec(sqlIdempotencySweep, g.nowMS, int64(maintainMax)); err != nil {
		return err
	}
	if err := g.exec(sqlUniqueSweep, g.nowMS, int64(maintainMax)); err != nil {
		return err
	}
	next, err := forgetFirst(context.Background(), g.w.c)
	if err != nil {
		return err
	}
	t.then = append(t.then, func() {
		s.forgetAt = next
		if next != never {
			s.forgetAt = max(next, g.nowMS+forgetEvery.Milliseconds())
		}
	})
	return nil
}

// forgetFirst is when the next key is to be swept.
func forgetFirst(ctx context.Context, c *conn) (int64, error) {
	first := never
	for _, text := range [...]string{sqlIdempotencyFirst, sqlUniqueFirst} {
		err := c.query(ctx, text, func(row []driver.Value) error {
			if isInt(row[0]) {
				first = min(first, asInt(row[0]))
			}
			return nil
		})
		if err != nil {
			return first, err
		}
	}
	return first, nil
}

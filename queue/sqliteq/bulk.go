package sqliteq

import (
	"context"
	"database/sql/driver"

	"github.com/taskhost/taskhost/queue"
)

// ChangeJobs implements queue.Bulk: one request to the writer, so all changes are in one commit. A job that is being settled
// while it runs is skipped. A damaged job can be cancelled and purged only.
func (s *Store) ChangeJobs(ctx context.Context, tenant string, c queue.Change, ids []string) ([]queue.ChangeOutcome, error) {
	if err := s.enter(ctx); err != nil {
		return nil, err
	}
	if err := queue.ValidChange(tenant, c, ids); err != nil {
		return nil, err
	}
	outcomes := make([]queue.ChangeOutcome, len(ids))
	keys := make([]bulkJob, 0, len(ids))
	for i, id := range ids {
		outcomes[i] = queue.ChangeMissing
		if b, seq, ok := s.ids.parse(id); ok {
			keys = append(keys, bulkJob{index: i, birth: b, seq: seq})
		}
	}
	if len(keys) == 0 {
		return outcomes, nil
	}
	err := s.step(ctx, func(g *group, t *step) error {
		for _, k := range keys { // before anything is changed, so that this may run again in the next group
			if _, taken := g.touched[k.seq]; taken {
				return errNextGroup
			}
		}
		t.size = len(keys)
		b := bulk{s: s, g: g, t: t, tenant: tenant, change: c}
		for _, k := range keys {
			outcome, err := b.one(k)
			if err != nil {
				return err
			}
			outcomes[k.index] = outcome
		}
		b.unschedule()
		return nil
	})
	if err != nil {
		return nil, err
	}
	return outcomes, nil
}

// bulkJob is a job to be changed, and where its outcome goes.
type bulkJob struct {
	index int
	birth birth
	seq   int64
}

// bulk is one ChangeJobs inside the writer.
type bulk struct {
	s       *Store
	g       *group
	t       *step
	tenant  string
	change  queue.Change
	retried []*jobRow
}

func (b *bulk) one(k bulkJob) (queue.ChangeOutcome, error) {
	if r, busy := b.running(k); r != nil || busy {
		return b.whileRunning(r)
	}
	v, err := b.s.find(context.Background(), b.g.w.c, b.tenant, k.birth, k.seq)
	if err != nil || v == nil {
		return queue.ChangeMissing, err
	}
	var changed bool
	if v.state.Terminal() {
		changed, err = b.finished(k.seq)
	} else {
		changed, err = b.waiting(k)
	}
	if changed {
		b.g.touched[k.seq] = struct{}{}
		return queue.Changed, err
	}
	return queue.ChangeSkipped, err
}

// running claims a running job for a cancel; busy says that somebody else has, or that nothing is to be done with running ones.
func (b *bulk) running(k bulkJob) (r *running, busy bool) {
	s := b.s
	s.mu.Lock()
	defer s.mu.Unlock()
	r = s.running[k.seq]
	if r == nil || r.birth != k.birth || r.q.tenant.name != b.tenant {
		return nil, false
	}
	if r.busy || r.cancel || b.change.Action != queue.ChangeCancel {
		return nil, true
	}
	r.busy = true
	free := func() { r.busy = false }
	b.t.then = append(b.t.then, free)
	b.t.undo = append(b.t.undo, free)
	return r, true
}

func (b *bulk) whileRunning(r *running) (queue.ChangeOutcome, error) {
	if r == nil {
		return queue.ChangeSkipped, nil
	}
	st := r.st.clone()
	st.set(stateCancel, true)
	b.t.then = append(b.t.then, func() {
		r.st, r.cancel = st, true
		b.s.notify(r.seq)
	})
	return queue.Changed, b.g.exec(sqlJobState, st.encode(), r.seq)
}

// waiting changes a scheduled or ready job.
func (b *bulk) waiting(k bulkJob) (bool, error) {
	switch b.change.Action {
	case queue.ChangeCancel, queue.ChangePurge, queue.ChangeRetry:
	default:
		return false, nil
	}
	s, g, t := b.s, b.g, b.t
	j, err := g.readJob(k.seq)
	if err != nil || j == nil || j.q == nil {
		return false, err
	}
	if b.change.Action == queue.ChangeRetry {
		return b.retry(j)
	}
	s.mu.Lock()
	if s.running[k.seq] != nil { // a Reserve was faster
		s.mu.Unlock()
		return false, nil
	}
	t.undo = append(t.undo, s.leaveWaiting(j))
	s.mu.Unlock()
	if b.change.Action == queue.ChangeCancel {
		return true, g.finishWaiting(j, queue.StateCancelled, t)
	}
	g.deletes = append(g.deletes, k.seq)
	g.counters.removed++
	if err := b.freeUnique(j); err != nil {
		return false, err
	}
	t.then = append(t.then, func() {
		s.notify(k.seq)
		s.unwatch(k.seq)
	})
	return true, g.removeExtras(k.seq, true, true)
}

func (b *bulk) freeUnique(j *jobRow) error {
	flags := byte(0)
	if !j.damaged {
		flags = recordFlags(j.record)
	}
	return b.g.freeUnique(&endedJob{seq: j.seq, q: j.q, record: j.record}, flags, j.damaged)
}

// retry makes a job that waits for its next attempt ready.
func (b *bulk) retry(j *jobRow) (bool, error) {
	if j.damaged || j.runAt == 0 || j.st.reason != queue.ReasonRetry {
		return false, nil
	}
	b.retried = append(b.retried, j)
	return true, b.g.exec(sqlJobDue, b.g.tailPos(), j.seq)
}

// unschedule takes the retried jobs out of the heap, all in one pass, and makes them ready after the commit.
func (b *bulk) unschedule() {
	if len(b.retried) == 0 {
		return
	}
	s := b.s
	leaves := make(map[int64]bool, len(b.retried))
	for _, j := range b.retried {
		leaves[j.seq] = true
	}
	var moved []due
	s.mu.Lock()
	s.scheduled.compact(func(d due) bool {
		if !leaves[d.seq] {
			return true
		}
		moved = append(moved, d)
		return false
	})
	s.mu.Unlock()
	b.t.undo = append(b.t.undo, func() {
		for _, d := range moved {
			s.scheduled.push(d)
		}
	})
	b.t.then = append(b.t.then, func() {
		for _, j := range b.retried {
			j.q.scheduled--
			s.ready(s.lineOf(j.q, j.prio), j.seq)
			s.notify(j.seq)
		}
	})
}

// finished changes a finished job.
func (b *bulk) finished(seq int64) (bool, error) {
	row, err := b.s.findFinished(context.Background(), b.g.w.c, b.tenant, seq)
	if err != nil || row == nil {
		return false, err
	}
	switch b.change.Action {
	case queue.ChangeReplay:
		if row.state != queue.StateDead {
			return false, nil
		}
		return b.s.replay(b.g, b.t, row, b.change.ToQueue)
	case queue.ChangePurge:
		return b.s.purge(b.g, b.t, row)
	case queue.ChangeErase:
		return b.erase(row)
	}
	return false, nil
}

func (b *bulk) erase(row *finishedRow) (bool, error) {
	sp, err := decodeRecord(row.record)
	if err != nil || !sp.erasedAt.IsZero() {
		return false, nil //nolint:nilerr // a damaged record is skipped, as documented
	}
	st := row.st.clone()
	st.result, st.resultBytes = nil, 0
	st.set(stateLargeResult|stateCheckpoint|stateLogs, false)
	st.cutRun, st.cutAttempt = 0, 0
	record := sp.erase(b.g.now)
	if err := b.g.exec(sqlFinishedErase, driver.Value(record), driver.Value(st.encode()), row.fin); err != nil {
		return false, err
	}
	b.t.then = append(b.t.then, func() { b.s.notify(row.seq) })
	return true, b.g.removeExtras(row.seq, true, true)
}

package sqliteq

import (
	"context"
	"database/sql/driver"
	"fmt"

	"github.com/taskhost/taskhost/queue"
)

// read runs f on one of the reading connections, in a transaction, so that f sees one moment of the store.
func (s *Store) read(ctx context.Context, f func(c *conn) error) error {
	select {
	case c := <-s.readers:
		defer func() { s.readers <- c }()
		err := c.tx(ctx, "BEGIN", func() error { return f(c) })
		if err == nil {
			return nil
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		return fmt.Errorf("%w: %s: %w", queue.ErrUnavailable, s.path, err)
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-s.closed:
		return queue.ErrClosed
	}
}

// GetJob implements queue.Jobs.
func (s *Store) GetJob(ctx context.Context, tenant, id string) (*queue.Job, error) {
	if err := s.enter(ctx); err != nil {
		return nil, err
	}
	b, seq, ok := s.ids.parse(id)
	if !ok {
		return nil, queue.ErrNotFound
	}
	if v, ok := s.runningView(tenant, b, seq); ok {
		return s.job(&v), nil
	}
	var v *jobView
	err := s.read(ctx, func(c *conn) (err error) {
		v, err = s.find(ctx, c, tenant, b, seq)
		if v != nil && err == nil {
			err = v.loadBlobs(ctx, c)
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	if v == nil {
		return nil, queue.ErrNotFound
	}
	return s.job(v), nil
}

func (s *Store) runningView(tenant string, b birth, seq int64) (jobView, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	r := s.running[seq]
	if r == nil || r.birth != b || r.q.tenant.name != tenant {
		return jobView{}, false
	}
	return r.view(), true
}

// find looks for a job that does not run: among the waiting, then among the finished. nil means that the tenant has no
// such job.
func (s *Store) find(ctx context.Context, c *conn, tenant string, b birth, seq int64) (*jobView, error) {
	var v *jobView
	err := c.query(ctx, sqlJobRead, func(row []driver.Value) error {
		if j := s.scanJob(row); j.q != nil && j.birth == b && j.q.tenant.name == tenant {
			v = j.view()
		}
		return nil
	}, seq)
	if err != nil || v != nil {
		return v, err
	}
	f, err := s.findFinished(ctx, c, tenant, seq)
	if f == nil || f.birth != b {
		return nil, err
	}
	return &f.jobView, err
}

func (s *Store) findFinished(ctx context.Context, c *conn, tenant string, seq int64) (f *finishedRow, err error) {
	s.mu.Lock()
	t := s.tenants[tenant]
	s.mu.Unlock()
	if t == nil {
		return nil, nil
	}
	err = c.query(ctx, sqlFinishedRead, func(row []driver.Value) error {
		f = s.scanFinished(row)
		return nil
	}, t.id, seq)
	return f, err
}

func (j *jobRow) view() *jobView {
	v := &jobView{seq: j.seq, birth: j.birth, q: j.q, prio: j.prio, state: queue.StateReady, runAt: j.runAt, expiresAt: j.expires,
		record: j.record, st: j.st}
	if j.runAt != 0 {
		v.state = queue.StateScheduled
	}
	return v
}

// finishedRow is a row of finished.
type finishedRow struct {
	jobView
	fin     int64
	damaged bool
}

// scanFinished reads the columns of finished_read, finished_down, dead_down and dead_up.
func (s *Store) scanFinished(row []driver.Value) *finishedRow {
	f := &finishedRow{fin: asInt(row[0])}
	f.jobView = jobView{seq: asInt(row[1]), prio: int(asInt(row[3])), state: stateOfCode(asInt(row[4])), birth: birth(asInt(row[5])),
		finishedAt: asInt(row[6]), expiresAt: asInt(row[7]), record: asBytes(row[8])}
	st, err := decodeState(asBytes(row[9]))
	if err != nil {
		st, f.damaged = fresh.clone(), true
		st.lastError = damagedError()
	}
	f.st = st
	if _, err := decodeRecord(f.record); err != nil {
		f.damaged = true
	}
	s.mu.Lock()
	f.q = s.queuesByID[asInt(row[2])]
	if f.q == nil {
		f.q = s.lostQueue
	}
	s.mu.Unlock()
	return f
}

// loadBlobs reads what does not live in the row.
func (v *jobView) loadBlobs(ctx context.Context, c *conn) (err error) {
	if len(v.record) > 1 && recordFlags(v.record)&recordLarge != 0 {
		if v.payload, err = readBlob(ctx, c, v.seq, blobPayload); err != nil {
			return err
		}
	}
	if v.st.has(stateLargeResult) {
		if v.result, err = readBlob(ctx, c, v.seq, blobResult); err != nil {
			return err
		}
	}
	if v.st.has(stateCheckpoint) {
		v.checkpoint, err = readBlob(ctx, c, v.seq, blobCheckpoint)
	}
	return err
}

// CancelJob implements queue.Jobs. The cancel of a running job is stored before it is acknowledged: should the process
// die, the job does not start again.
func (s *Store) CancelJob(ctx context.Context, tenant, id string) (*queue.Job, error) {
	if err := s.enter(ctx); err != nil {
		return nil, err
	}
	b, seq, ok := s.ids.parse(id)
	if !ok {
		return nil, queue.ErrNotFound
	}
	var result jobView
	err := s.step(ctx, func(g *group, t *step) error {
		r, err := s.claimRunning(t, func(r *running) bool { return r.seq == seq && r.birth == b && r.q.tenant.name == tenant }, seq)
		if err != nil {
			return err
		}
		if r != nil {
			st := r.st.clone()
			st.set(stateCancel, true)
			t.then = append(t.then, func() {
				r.st, r.cancel = st, true
				result = r.view()
				s.notify(seq)
			})
			return g.exec(sqlJobState, st.encode(), seq)
		}
		if _, taken := g.touched[seq]; taken {
			return errNextGroup
		}
		return s.cancelWaiting(g, t, tenant, id, b, seq, &result)
	})
	if err != nil {
		return nil, err
	}
	return s.job(&result), nil
}

func (s *Store) cancelWaiting(g *group, t *step, tenant, id string, b birth, seq int64, result *jobView) error {
	ctx := context.Background()
	v, err := s.find(ctx, g.w.c, tenant, b, seq)
	if err != nil {
		return err
	}
	if v == nil {
		return answer(queue.ErrNotFound)
	}
	if v.state.Terminal() {
		if v.state != queue.StateCancelled {
			return answer(&queue.StateError{JobID: id, State: v.state, Op: "cancel"})
		}
		*result = *v
		return result.loadBlobs(ctx, g.w.c)
	}
	if err := v.loadBlobs(ctx, g.w.c); err != nil {
		return err
	}
	j, err := g.readJob(seq)
	if err != nil {
		return err
	}
	s.mu.Lock()
	if s.running[seq] != nil { // a Reserve was faster
		s.mu.Unlock()
		return errNextGroup
	}
	t.undo = append(t.undo, s.leaveWaiting(j))
	s.mu.Unlock()
	g.touched[seq] = struct{}{}
	v.state, v.runAt, v.finishedAt, v.checkpoint = queue.StateCancelled, 0, g.nowMS, nil
	*result = *v
	return g.finishWaiting(j, queue.StateCancelled, t)
}

// claimRunning marks a running job for this request, until the group ends; nil when it does not run or is not wanted.
func (s *Store) claimRunning(t *step, want func(*running) bool, seq int64) (*running, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	r := s.running[seq]
	if r == nil || !want(r) {
		return nil, nil
	}
	if r.busy {
		return nil, errNextGroup
	}
	r.busy = true
	free := func() { r.busy = false }
	t.then = append(t.then, free)
	t.undo = append(t.undo, free)
	return r, nil
}

// DeleteJob implements queue.Jobs.
func (s *Store) DeleteJob(ctx context.Context, tenant, id string) error {
	if err := s.enter(ctx); err != nil {
		return err
	}
	b, seq, ok := s.ids.parse(id)
	if !ok {
		return queue.ErrNotFound
	}
	return s.step(ctx, func(g *group, t *step) error {
		if _, taken := g.touched[seq]; taken {
			return errNextGroup
		}
		s.mu.Lock()
		r := s.running[seq]
		if r != nil && r.birth == b && r.q.tenant.name == tenant {
			busy := r.busy
			s.mu.Unlock()
			if busy {
				return errNextGroup
			}
			return answer(&queue.StateError{JobID: id, State: queue.StateRunning, Op: "delete"})
		}
		s.mu.Unlock()
		v, err := s.find(context.Background(), g.w.c, tenant, b, seq)
		if err != nil {
			return err
		}
		if v == nil {
			return answer(queue.ErrNotFound)
		}
		return s.remove(g, t, v)
	})
}

// remove deletes every trace of a job that does not run.
func (s *Store) remove(g *group, t *step, v *jobView) error {
	waiting := !v.state.Terminal()
	if waiting {
		j, err := g.readJob(v.seq)
		if err != nil {
			return err
		}
		s.mu.Lock()
		if s.running[v.seq] != nil {
			s.mu.Unlock()
			return errNextGroup
		}
		t.undo = append(t.undo, s.leaveWaiting(j))
		s.mu.Unlock()
		g.deletes = append(g.deletes, v.seq)
	} else {
		f, err := s.findFinished(context.Background(), g.w.c, v.q.tenant.name, v.seq)
		if err != nil {
			return err
		}
		if err := g.deleteFinished(f); err != nil {
			return err
		}
	}
	g.touched[v.seq] = struct{}{}
	if err := g.forgetKeys(v, waiting); err != nil {
		return err
	}
	if err := g.removeExtras(v.seq, true, true); err != nil {
		return err
	}
	g.counters.removed++
	t.then = append(t.then, func() {
		if v.state == queue.StateDead {
			v.q.dead--
		}
		s.unwatch(v.seq)
	})
	return nil
}

// forgetKeys frees the idempotency key of a deleted job, and its unique key if it may still hold it.
func (g *group) forgetKeys(v *jobView, waiting bool) error {
	sp, err := decodeRecord(v.record)
	if err != nil {
		if err := g.exec(sqlIdempotencyForget, v.seq); err != nil {
			return err
		}
		return g.exec(sqlUniqueForget, v.seq)
	}
	if k := sp.job.IdempotencyKey; k != "" {
		if err := g.exec(sqlIdempotencyDelete, v.q.tenant.id, k, v.seq); err != nil {
			return err
		}
	}
	if k := sp.job.Unique.Key; k != "" && (waiting || sp.flags&recordWindow != 0) {
		return g.exec(sqlUniqueDelete, v.q.tenant.id, k, v.seq)
	}
	return nil
}

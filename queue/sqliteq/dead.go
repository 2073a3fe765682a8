package sqliteq

import (
	"context"
	"database/sql/driver"
	"errors"
	"slices"

	"github.com/taskhost/taskhost/queue"
)

// deadChunkMax bounds one ReplayDead or PurgeDead, whatever its limit: the writer serves nobody else meanwhile.
const deadChunkMax = 5000

// CountDead implements queue.DeadLetters.
func (s *Store) CountDead(ctx context.Context, f queue.DeadFilter) (int, error) {
	if err := s.enter(ctx); err != nil {
		return 0, err
	}
	if err := f.Validate(); err != nil {
		return 0, err
	}
	n := 0
	err := s.read(ctx, func(c *conn) error {
		return s.eachDead(ctx, c, &f, func(*finishedRow) error { n++; return nil })
	})
	return n, err
}

// ReplayDead implements queue.DeadLetters. A job whose record is damaged is skipped: it could only die again.
func (s *Store) ReplayDead(ctx context.Context, f queue.DeadFilter, toQueue string, limit int) (queue.DeadChunk, error) {
	return s.deadChunk(ctx, f, toQueue, limit, func(g *group, t *step, row *finishedRow) (bool, error) {
		return s.replay(g, t, row, toQueue)
	})
}

// PurgeDead implements queue.DeadLetters.
func (s *Store) PurgeDead(ctx context.Context, f queue.DeadFilter, limit int) (queue.DeadChunk, error) {
	return s.deadChunk(ctx, f, "", limit, s.purge)
}

// purge removes a finished job.
func (s *Store) purge(g *group, t *step, row *finishedRow) (bool, error) {
	if err := g.deleteFinished(row); err != nil {
		return false, err
	}
	g.counters.removed++
	t.then = append(t.then, func() {
		if row.state == queue.StateDead {
			row.q.dead--
		}
		s.unwatch(row.seq)
	})
	return true, g.removeExtras(row.seq, true, true)
}

// eachDead calls f with the matching dead jobs, by id.
func (s *Store) eachDead(ctx context.Context, c *conn, f *queue.DeadFilter, each func(*finishedRow) error) error {
	s.mu.Lock()
	t := s.tenants[f.Tenant]
	s.mu.Unlock()
	if t == nil {
		return nil
	}
	after := int64(0)
	if f.After != "" {
		if _, seq, ok := s.ids.parse(f.After); ok {
			after = seq
		}
	}
	consider := func(row []driver.Value) error {
		r := s.scanFinished(row)
		if r.state == queue.StateDead && s.matchesDead(f, r) {
			return each(r)
		}
		return nil
	}
	if len(f.IDs) == 0 {
		return c.query(ctx, sqlDeadUp, consider, t.id, after)
	}
	var seqs []int64
	for _, id := range f.IDs {
		if _, seq, ok := s.ids.parse(id); ok && seq > after {
			seqs = append(seqs, seq)
		}
	}
	slices.Sort(seqs)
	stopped := false
	for _, seq := range slices.Compact(seqs) {
		err := c.query(ctx, sqlFinishedRead, func(row []driver.Value) error {
			err := consider(row)
			stopped = errors.Is(err, errStop)
			return err
		}, t.id, seq)
		if err != nil || stopped {
			return err
		}
	}
	return nil
}

func (s *Store) matchesDead(f *queue.DeadFilter, r *finishedRow) bool {
	if f.Queue != "" && r.q.name != f.Queue {
		return false
	}
	if !f.DeadBefore.IsZero() && !fromMillis(r.finishedAt).Before(f.DeadBefore) {
		return false
	}
	if f.ErrorFingerprint != "" && queue.ErrorFingerprint(r.st.lastError) != f.ErrorFingerprint {
		return false
	}
	if f.Type != "" {
		if sp, err := decodeRecord(r.record); err != nil || sp.job.Type != f.Type {
			return false
		}
	}
	id := s.ids.id(r.birth, r.seq)
	return id > f.After && (len(f.IDs) == 0 || slices.Contains(f.IDs, id))
}

// deadChunk finds the matches on a reading connection, and changes in the writer those of them that are still dead.
func (s *Store) deadChunk(ctx context.Context, f queue.DeadFilter, toQueue string, limit int,
	act func(g *group, t *step, row *finishedRow) (changed bool, err error)) (queue.DeadChunk, error) {
	if err := s.enter(ctx); err != nil {
		return queue.DeadChunk{}, err
	}
	if err := f.Validate(); err != nil {
		return queue.DeadChunk{}, err
	}
	if err := queue.ValidChunk(limit); err != nil {
		return queue.DeadChunk{}, err
	}
	if toQueue != "" {
		if err := queue.ValidName("to_queue", toQueue); err != nil {
			return queue.DeadChunk{}, err
		}
	}
	limit = min(limit, deadChunkMax)
	chunk := queue.DeadChunk{Last: f.After, Done: true}
	var seqs []int64
	err := s.read(ctx, func(c *conn) error {
		return s.eachDead(ctx, c, &f, func(r *finishedRow) error {
			if len(seqs) == limit {
				chunk.Done = false
				return errStop
			}
			seqs = append(seqs, r.seq)
			chunk.Last = s.ids.id(r.birth, r.seq)
			return nil
		})
	})
	if err != nil || len(seqs) == 0 {
		return chunk, err
	}
	err = s.step(ctx, func(g *group, t *step) error {
		chunk.Changed, chunk.Skipped = 0, 0
		t.size = len(seqs)
		for _, seq := range seqs {
			row, err := s.findFinished(context.Background(), g.w.c, f.Tenant, seq)
			if err != nil {
				return err
			}
			if row == nil || row.state != queue.StateDead {
				continue
			}
			changed, err := act(g, t, row)
			if err != nil {
				return err
			}
			if changed {
				chunk.Changed++
			} else {
				chunk.Skipped++
			}
		}
		return nil
	})
	if err != nil {
		return queue.DeadChunk{}, err
	}
	return chunk, nil
}

// replay starts a new run; false when another job holds the unique key, or the record is damaged or erased.
func (s *Store) replay(g *group, t *step, row *finishedRow, toQueue string) (bool, error) {
	sp, err := decodeRecord(row.record)
	if err != nil || !sp.erasedAt.IsZero() {
		return false, nil //nolint:nilerr // a damaged record is skipped, as documented
	}
	if key := sp.job.Unique.Key; key != "" && sp.flags&recordWindow == 0 {
		holder, _, err := g.uniqueHolder(row.q.tenant.id, key)
		if err != nil || holder != 0 {
			return false, err
		}
		if err := g.exec(sqlUniquePut, row.q.tenant.id, key, row.seq, int64(row.birth), nil); err != nil {
			return false, err
		}
	}
	from, to := row.q, row.q
	if toQueue != "" {
		s.mu.Lock()
		to = s.queue(from.tenant.name, toQueue)
		s.mu.Unlock()
	}
	if !to.used {
		if err := g.putQueue(to, true, to.override); err != nil {
			return false, err
		}
	}
	st := row.st.clone()
	st.run++
	st.attempt, st.crashes, st.interruptions = 0, 0, 0
	st.progress = nil
	st.returns++
	if st.has(stateCheckpoint) {
		st.set(stateCheckpoint, false)
		key := 4*row.seq + blobCheckpoint
		if err := g.exec(sqlBlobsDeleteRun, key, key); err != nil {
			return false, err
		}
	}
	if err := g.deleteFinished(row); err != nil {
		return false, err
	}
	err = g.exec(sqlJobInsert, row.seq, to.id, int64(row.prio), int64(row.birth), g.tailPos(), orNull(row.expiresAt), row.record, st.encode())
	if err != nil {
		return false, err
	}
	g.touched[row.seq] = struct{}{}
	t.then = append(t.then, func() {
		from.dead--
		to.stored, to.used = true, true
		l := s.lineOf(to, row.prio)
		if row.expiresAt != 0 && st.startedAt.IsZero() {
			s.expires[row.seq] = row.expiresAt
			s.expiry.push(due{at: row.expiresAt, seq: row.seq})
		}
		s.ready(l, row.seq)
		s.notify(row.seq)
	})
	return true, nil
}

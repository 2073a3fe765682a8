package sqliteq

import (
	"bytes"
	"context"
	"database/sql/driver"

	"github.com/taskhost/taskhost/queue"
)

// enqueueWork is one call of Enqueue.
type enqueueWork struct {
	s        *Store
	specs    []queue.JobSpec
	items    []enqueueItem
	outcomes []queue.EnqueueOutcome
	done     chan error
}

// enqueueItem is one spec on its way.
type enqueueItem struct {
	record, large []byte
	fingerprint   [32]byte
	skip          bool // rejected before
	created       bool
	seq           int64
	birth         birth
	q             *queueState
	prio          int
	runAt         int64
	expiresAt     int64
	forgetAt      int64 // when a key of it is to be swept; never without one
}

// Enqueue implements queue.Queue.
func (s *Store) Enqueue(ctx context.Context, specs []queue.JobSpec) ([]queue.EnqueueOutcome, error) {
	if err := s.enter(ctx); err != nil {
		return nil, err
	}
	w := &enqueueWork{s: s, specs: specs, items: make([]enqueueItem, len(specs)),
		outcomes: make([]queue.EnqueueOutcome, len(specs)), done: make(chan error, 1)}
	for i := range specs {
		spec, it := &specs[i], &w.items[i]
		if err := spec.Validate(s.limits); err != nil {
			w.outcomes[i] = queue.EnqueueOutcome{Status: queue.EnqueueRejected, Err: err}
			it.skip = true
			continue
		}
		it.record, it.large = encodeRecord(spec)
		if spec.IdempotencyKey != "" {
			it.fingerprint = queue.SpecFingerprint(*spec)
		}
	}
	if err := s.do(ctx, w, w.done); err != nil {
		return nil, err
	}
	for i := range w.items {
		if it := &w.items[i]; it.created {
			w.outcomes[i] = queue.EnqueueOutcome{Status: queue.EnqueueCreated, ID: s.ids.id(it.birth, it.seq)}
		}
	}
	return w.outcomes, nil
}

func (w *enqueueWork) plan(g *group) error {
	w.s.mu.Lock()
	for i := range w.items {
		it, spec := &w.items[i], &w.specs[i]
		if it.skip {
			continue
		}
		it.q = w.s.queue(spec.Tenant, spec.Queue)
		it.prio = it.q.settings.Priority
		if spec.Priority != nil {
			it.prio = *spec.Priority
		}
	}
	w.s.mu.Unlock()
	for i := range w.items {
		it := &w.items[i]
		it.created = false
		if it.skip {
			continue
		}
		if err := w.store(g, it, &w.specs[i], &w.outcomes[i]); err != nil {
			return err
		}
	}
	return nil
}

// store checks the keys of one job and adds its rows.
func (w *enqueueWork) store(g *group, it *enqueueItem, spec *queue.JobSpec, out *queue.EnqueueOutcome) error {
	tenant := it.q.tenant.id
	if spec.IdempotencyKey != "" || spec.Unique.Key != "" {
		if taken, err := w.checkKeys(g, it, spec, out); taken || err != nil {
			return err
		}
	}
	if g.counters.nextSeq > seqMax {
		*out = queue.EnqueueOutcome{Status: queue.EnqueueRejected, Err: &queue.LimitError{Field: "store", Limit: "jobs ever stored",
			Max: seqMax, Got: g.counters.nextSeq, Unit: "jobs"}}
		return nil
	}
	if !it.q.used {
		if err := g.putQueue(it.q, true, it.q.override); err != nil {
			return err
		}
	}
	it.seq = g.tailPos()
	g.w.last = nextBirth(g.w.last, g.now, g.w.random)
	it.birth = g.w.last
	it.runAt, it.expiresAt, it.forgetAt = 0, 0, never
	if spec.Delay > 0 {
		it.runAt = queue.After(g.now, spec.Delay).UnixMilli()
	}
	if spec.ExpiresIn > 0 {
		it.expiresAt = queue.After(g.now, spec.ExpiresIn).UnixMilli()
	}
	g.inserts = append(g.inserts, it.seq, it.q.id, int64(it.prio), int64(it.birth), orNull(it.runAt), orNull(it.expiresAt),
		driver.Value(it.record), nil)
	if it.large != nil {
		if err := g.exec(sqlBlobPut, 4*it.seq+blobPayload, it.large); err != nil {
			return err
		}
	}
	if spec.IdempotencyKey != "" {
		until := queue.After(g.now, w.s.limits.IdempotencyTTL).UnixMilli()
		it.forgetAt = until
		if err := g.exec(sqlIdempotencyPut, tenant, spec.IdempotencyKey, it.seq, int64(it.birth), until, it.fingerprint[:]); err != nil {
			return err
		}
	}
	if spec.Unique.Key != "" {
		var until driver.Value
		if spec.Unique.Until == queue.UniqueUntilWindow {
			at := queue.After(g.now, spec.Unique.Window).UnixMilli()
			it.forgetAt = min(it.forgetAt, at)
			until = at
		}
		if err := g.exec(sqlUniquePut, tenant, spec.Unique.Key, it.seq, int64(it.birth), until); err != nil {
			return err
		}
	}
	it.created = true
	g.counters.enqueued++
	return nil
}

// checkKeys answers a spec whose idempotency or unique key decides.
func (w *enqueueWork) checkKeys(g *group, it *enqueueItem, spec *queue.JobSpec, out *queue.EnqueueOutcome) (taken bool, err error) {
	tenant := it.q.tenant.id
	if spec.IdempotencyKey != "" {
		err = g.query(sqlIdempotencyRead, func(row []driver.Value) error {
			if asInt(row[2]) <= g.nowMS {
				return nil
			}
			taken = true
			id := w.s.ids.id(birth(asInt(row[1])), asInt(row[0]))
			if bytes.Equal(asBytes(row[3]), it.fingerprint[:]) {
				*out = queue.EnqueueOutcome{Status: queue.EnqueueDuplicate, ID: id}
			} else {
				*out = queue.EnqueueOutcome{Status: queue.EnqueueRejected,
					Err: &queue.IdempotencyMismatchError{Key: spec.IdempotencyKey, JobID: id}}
			}
			return nil
		}, tenant, spec.IdempotencyKey)
		if err != nil || taken {
			return taken, err
		}
	}
	if spec.Unique.Key == "" {
		return false, nil
	}
	holder, b, err := g.uniqueHolder(tenant, spec.Unique.Key)
	if err != nil || holder == 0 {
		return false, err
	}
	id := w.s.ids.id(b, holder)
	if spec.Unique.OnConflict == queue.UniqueExisting {
		*out = queue.EnqueueOutcome{Status: queue.EnqueueDuplicate, ID: id}
		return true, nil
	}
	st, err := g.holderState(spec.Tenant, holder)
	if err != nil {
		return false, err
	}
	*out = queue.EnqueueOutcome{Status: queue.EnqueueRejected,
		Err: &queue.UniqueHeldError{Key: spec.Unique.Key, JobID: id, State: st}}
	return true, nil
}

// uniqueHolder returns 0 when the key is free.
func (g *group) uniqueHolder(tenant int64, key string) (seq int64, b birth, err error) {
	err = g.query(sqlUniqueRead, func(row []driver.Value) error {
		seq, b = asInt(row[0]), birth(asInt(row[1]))
		return nil
	}, tenant, key, g.nowMS)
	return seq, b, err
}

// holderState is the state of a job that holds a unique key; "" when it is gone, and its window holds the key.
func (g *group) holderState(tenant string, seq int64) (queue.State, error) {
	g.s.mu.Lock()
	_, runs := g.s.running[seq]
	g.s.mu.Unlock()
	if runs {
		return queue.StateRunning, nil
	}
	var st queue.State
	for i := 0; i < len(g.inserts); i += insertColumns { // created in this group
		if g.inserts[i] != driver.Value(seq) {
			continue
		}
		if g.inserts[i+4] != nil {
			return queue.StateScheduled, nil
		}
		return queue.StateReady, nil
	}
	err := g.query(sqlJobDueAt, func(row []driver.Value) error {
		st = queue.StateReady
		if row[0] != nil {
			st = queue.StateScheduled
		}
		return nil
	}, seq)
	if err != nil || st != "" {
		return st, err
	}
	f, err := g.s.findFinished(context.Background(), g.w.c, tenant, seq)
	if f != nil {
		st = f.state
	}
	return st, err
}

func (w *enqueueWork) apply(g *group) {
	s := w.s
	for i := range w.items {
		it := &w.items[i]
		if !it.created {
			continue
		}
		q := it.q
		q.stored, q.used, q.tenant.stored = true, true, true
		s.forgetAt = min(s.forgetAt, it.forgetAt)
		if it.expiresAt != 0 {
			s.expires[it.seq] = it.expiresAt
			s.expiry.push(due{at: it.expiresAt, seq: it.seq})
		}
		l := s.lineOf(q, it.prio)
		if !q.settings.Paused {
			s.cache.put(it.seq, entry{birth: it.birth, record: it.record, payload: it.large, st: fresh, expiresAt: it.expiresAt})
		}
		if it.runAt != 0 {
			q.scheduled++
			s.scheduled.push(due{at: it.runAt, seq: it.seq, l: l})
			continue
		}
		s.ready(l, it.seq)
	}
}

// ready puts a job at the tail of its line; with s.mu held.
func (s *Store) ready(l *line, seq int64) {
	l.q.ready++
	l.pushBack(seq)
	if l.takeable() == 1 {
		s.sync(l)
	}
}

// readyFront puts a job at the front of its line; with s.mu held.
func (s *Store) readyFront(l *line, seq int64) {
	l.q.ready++
	s.lastFront--
	l.pushFront(seq, s.lastFront)
	if l.takeable() == 1 {
		s.sync(l)
	}
}

func (w *enqueueWork) revert(*group)    {}
func (w *enqueueWork) finish(err error) { w.done <- err }
func (w *enqueueWork) weight() int      { return len(w.items) }

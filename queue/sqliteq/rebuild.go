package sqliteq

import (
	"cmp"
	"context"
	"database/sql/driver"
	"fmt"
	"slices"
	"time"

	"github.com/taskhost/taskhost/queue"
)

// rebuild fills memory from the database: first it ends what the process before had in its hands, in one transaction,
// then it reads the waiting jobs.
func (s *Store) rebuild(ctx context.Context, c *conn) error {
	if err := s.loadQueues(ctx, c); err != nil {
		return err
	}
	for region, low := range [...]int64{finOther: 0, finDead: deadBase} {
		if err := s.loadFinished(ctx, c, region, low); err != nil {
			return err
		}
	}
	forget, err := forgetFirst(ctx, c)
	if err != nil {
		return err
	}
	s.forgetAt = forget
	var top int64
	err = c.query(ctx, sqlSeqMax, func(row []driver.Value) error { top = asInt(row[0]); return nil })
	if err != nil {
		return err
	}
	s.w.counters.nextSeq = max(s.w.counters.nextSeq, top+1)
	r := &rebuilder{s: s, c: c, placed: make(map[*line][]placed)}
	if err := r.read(ctx); err != nil {
		return err
	}
	return r.repair(ctx)
}

func (s *Store) loadQueues(ctx context.Context, c *conn) error {
	err := c.query(ctx, sqlTenantsRead, func(row []driver.Value) error {
		t := s.addTenant(asInt(row[0]), asString(row[1]))
		t.stored = true
		s.lastTenant = max(s.lastTenant, t.id)
		return nil
	})
	if err != nil {
		return err
	}
	err = c.query(ctx, sqlQueuesRead, func(row []driver.Value) error {
		t := s.tenantsByID[asInt(row[1])]
		if t == nil {
			return fmt.Errorf("queue %q belongs to tenant number %d, which does not exist", asString(row[2]), asInt(row[1]))
		}
		q := s.addQueue(asInt(row[0]), t, asString(row[2]))
		s.lastQueue = max(s.lastQueue, q.id)
		q.stored, q.used = true, asInt(row[3]) != 0
		q.served = asInt(row[4])
		q.servedRow = q.served
		if w, ok := row[5].(float64); ok {
			q.override.Weight = &w
		}
		if isInt(row[6]) {
			p := int(asInt(row[6]))
			q.override.Priority = &p
		}
		if isInt(row[7]) {
			p := asInt(row[7]) != 0
			q.override.Paused = &p
		}
		if isInt(row[8]) {
			n := int(asInt(row[8]))
			q.override.MaxRunning = &n
		}
		if isInt(row[9]) {
			n := int(asInt(row[9]))
			q.override.MaxPerKey = &n
		}
		if text := asString(row[10]); text != "" {
			r, err := queue.ParseRate(text)
			if err != nil {
				return fmt.Errorf("queue %q of tenant %q: %w", q.name, t.name, err)
			}
			q.override.Rate = &r
		}
		q.settings = queue.Effective(q.override, s.scheduling.Queues[q.name])
		return nil
	})
	if err != nil {
		return err
	}
	return c.query(ctx, sqlQueuesDead, func(row []driver.Value) error {
		if q := s.queuesByID[asInt(row[0])]; q != nil {
			q.dead = asInt(row[1])
		}
		return nil
	})
}

func (s *Store) loadFinished(ctx context.Context, c *conn, region int, low int64) error {
	high := deadBase - 1
	if region == finDead {
		high = never
	}
	first, err := finishedFirst(ctx, c, low, high)
	if err != nil {
		return err
	}
	s.finishedFirst[region] = first
	s.w.nextFin[region] = low + 1
	return c.query(ctx, sqlFinishedLast, func(row []driver.Value) error {
		if fin := asInt(row[0]); fin >= low {
			s.w.nextFin[region] = fin + 1
		}
		return nil
	}, high)
}

// placed is a job with a place of its own in its line.
type placed struct {
	pos, seq int64
}

// rebuilder reads the waiting jobs.
type rebuilder struct {
	s      *Store
	c      *conn
	placed map[*line][]placed

	cancelled []int64 // cancel acknowledged, must not start again
	damaged   []int64
	held      map[int64]heldJob
}

// heldJob was in the hands of the process before.
type heldJob struct {
	batchJob
	batch   int64
	worker  string
	started int64
	lease   int64
}

// batchOrder orders held jobs as they were reserved.
func (h heldJob) before(o heldJob) int {
	return cmp.Or(cmp.Compare(h.batch, o.batch), cmp.Compare(h.order, o.order))
}

func (r *rebuilder) read(ctx context.Context) error {
	s := r.s
	if err := r.readBatches(ctx); err != nil {
		return err
	}
	held := make(map[int64]heldJob, len(r.held))
	err := r.c.query(ctx, sqlJobsIndex, func(row []driver.Value) error {
		seq := asInt(row[0])
		q := s.queuesByID[asInt(row[1])]
		if q == nil || !isInt(row[2]) || row[4] != nil && !isInt(row[4]) {
			r.damaged = append(r.damaged, seq)
			return nil
		}
		st := fresh
		if blob := asBytes(row[6]); blob != nil {
			var err error
			if st, err = decodeState(blob); err != nil {
				r.damaged = append(r.damaged, seq)
				return nil //nolint:nilerr // damage of one record is noted, and ends that job only
			}
		}
		l := s.lineOf(q, int(asInt(row[2])))
		if h, ok := r.held[seq]; ok && h.returns == st.returns {
			held[seq] = h
			return nil
		}
		if st.has(stateCancel) {
			r.cancelled = append(r.cancelled, seq)
			return nil
		}
		if at := asInt(row[5]); at != 0 && st.startedAt.IsZero() {
			s.expires[seq] = at
			s.expiry = append(s.expiry, due{at: at, seq: seq})
		}
		switch {
		case row[4] != nil:
			q.scheduled++
			s.scheduled = append(s.scheduled, due{at: asInt(row[4]), seq: seq, l: l})
		case isInt(row[3]):
			r.placed[l] = append(r.placed[l], placed{pos: asInt(row[3]), seq: seq})
		default:
			l.pushBack(seq)
		}
		return nil
	})
	if err != nil {
		return err
	}
	r.held = held
	s.expiry.compact(func(due) bool { return true })
	s.scheduled.compact(func(due) bool { return true })
	r.merge()
	for _, q := range s.queuesByID {
		for _, l := range q.lines {
			q.ready += int64(l.live)
		}
	}
	return nil
}

func (r *rebuilder) readBatches(ctx context.Context) error {
	r.held = make(map[int64]heldJob)
	return r.c.query(ctx, sqlBatchesRead, func(row []driver.Value) error {
		jobs, err := decodeBatch(asBytes(row[4]))
		if err != nil {
			r.s.log.Warn("a batch row is damaged; the crashes of its jobs are not counted", "path", r.s.path, "row", asInt(row[0]), "error", err)
			return nil
		}
		for _, j := range jobs {
			r.held[j.seq] = heldJob{batchJob: j, batch: asInt(row[0]), worker: asString(row[1]), started: asInt(row[2]), lease: asInt(row[3])}
		}
		return nil
	})
}

// merge puts the jobs with places of their own among the others, whose place is their number.
func (r *rebuilder) merge() {
	for l, list := range r.placed {
		for seq := range l.all() {
			list = append(list, placed{pos: seq, seq: seq})
		}
		slices.SortFunc(list, func(a, b placed) int { return cmp.Compare(a.pos, b.pos) })
		l.head, l.tail, l.live = nil, nil, 0
		for _, p := range list {
			l.pushBack(p.seq)
		}
	}
}

// repair ends what cannot wait on: damaged and cancelled jobs, and those that were being run.
func (r *rebuilder) repair(ctx context.Context) error {
	if len(r.damaged)+len(r.cancelled)+len(r.held) == 0 {
		return r.c.exec(ctx, sqlBatchesClear)
	}
	s := r.s
	g := &s.w.g
	g.begin(s.w)
	var t step
	var moves []move
	err := r.c.tx(ctx, "BEGIN IMMEDIATE", func() error {
		for _, list := range [...]struct {
			seqs []int64
			to   queue.State
		}{{r.damaged, queue.StateDead}, {r.cancelled, queue.StateCancelled}} {
			for _, seq := range list.seqs {
				if err := r.end(g, &t, seq, list.to); err != nil {
					return err
				}
			}
		}
		var err error
		if moves, err = r.crash(g, &t); err != nil {
			return err
		}
		if err := g.settle(moves); err != nil {
			return err
		}
		if err := g.exec(sqlBatchesClear); err != nil {
			return err
		}
		g.dirty = true
		return g.flush()
	})
	if err != nil {
		return err
	}
	for i := range moves {
		moves[i].r.q.running++ // as if it ran until now
		moves[i].r.q.tenant.running++
	}
	s.settleGroup(g, nil, nil)
	s.mu.Lock()
	defer s.mu.Unlock()
	t.apply(g)
	s.applyMoves(moves)
	if len(moves) > 0 {
		s.log.Info("jobs that the process before had reserved were taken back", "path", s.path, "jobs", len(moves))
	}
	return nil
}

func (r *rebuilder) end(g *group, t *step, seq int64, to queue.State) error {
	j, err := g.readJob(seq)
	if err != nil || j == nil {
		return err
	}
	if j.q == nil {
		j.q = r.s.lostQueue
	}
	return g.finishWaiting(j, to, t)
}

// crash makes the settlements of the jobs that were held.
func (r *rebuilder) crash(g *group, t *step) ([]move, error) {
	held := make([]heldJob, 0, len(r.held))
	for _, h := range r.held {
		held = append(held, h)
	}
	slices.SortFunc(held, heldJob.before)
	var moves []move
	for i, h := range held {
		j, err := g.readJob(h.seq)
		if err != nil {
			return nil, err
		}
		if j.damaged {
			if err := g.finishWaiting(j, queue.StateDead, t); err != nil {
				return nil, err
			}
			continue
		}
		v := &jobView{seq: j.seq, record: j.record, st: j.st}
		if err := v.loadBlobs(context.Background(), r.c); err != nil {
			return nil, err
		}
		b := &batch{worker: h.worker, started: h.started, lease: h.lease, index: -1}
		run := &running{seq: j.seq, birth: j.birth, q: j.q, prio: j.prio, b: b, order: int64(i), started: h.started, until: h.started + h.lease,
			expires: j.expires, record: j.record, payload: v.payload, checkpoint: v.checkpoint, st: j.st, cancel: j.st.has(stateCancel)}
		lasted := time.Duration(h.lease) * time.Millisecond
		if gone := g.nowMS - h.started; gone < h.lease {
			lasted = time.Duration(max(gone, 0)) * time.Millisecond
		}
		moves = append(moves, r.s.decide(run, &queue.Settlement{Verb: queue.VerbCrash, Duration: lasted,
			Error: &queue.JobError{Kind: queue.ErrorKindCrash, Message: "the process that held the store ended under it", Retryable: true}}))
	}
	return moves, nil
}

package sqliteq

import (
	"context"
	"time"

	"github.com/taskhost/taskhost/queue"
)

// reservation is one Reserve on its way.
type reservation struct {
	s       *Store
	p       *queue.ReserveParams
	now     int64
	until   int64
	size    int // payload bytes taken
	b       *batch
	views   []jobView
	fetched map[int64]fetched
	misses  map[*line]int // readings for a line so far
	wanted  []int64       // everything that was marked as being read
	drops   []drop
	aside   int // jobs that stepped aside
	err     error
}

// Reserve implements queue.Queue. It changes memory only; records that are not in memory any more are read first.
func (s *Store) Reserve(ctx context.Context, p queue.ReserveParams) ([]*queue.Job, error) {
	if err := s.enter(ctx); err != nil {
		return nil, err
	}
	if err := p.Validate(); err != nil {
		return nil, err
	}
	if s.Err() != nil {
		// What is reserved could not be settled. See whether the disk writes again.
		if err := s.step(ctx, func(g *group, _ *step) error { g.dirty = true; return nil }); err != nil {
			return nil, err
		}
	}
	now := s.now()
	r := &reservation{s: s, p: &p, now: now.UnixMilli(), until: queue.After(now, p.Lease).UnixMilli()}
	for {
		missing := r.take()
		if err := r.dropAll(ctx); err != nil {
			r.err = err
			break
		}
		if len(missing) == 0 {
			break
		}
		if r.err = r.read(ctx, missing); r.err != nil {
			break
		}
	}
	r.endFetch()
	if r.b == nil {
		return nil, r.err
	}
	s.w.submit(&batchWork{s: s, b: r.b, frees: r.startedKeys()})
	jobs := make([]*queue.Job, len(r.views))
	for i := range r.views {
		jobs[i] = s.job(&r.views[i])
		jobs[i].Token = r.b.token
	}
	return jobs, nil
}

// startedKeys are the unique keys that are free now that their jobs have started.
func (r *reservation) startedKeys() (keys []uniqueKey) {
	for i := range r.views {
		v := &r.views[i]
		if recordFlags(v.record)&recordStarted == 0 {
			continue
		}
		if sp, err := decodeRecord(v.record); err == nil { // it was sound when it was picked
			keys = append(keys, uniqueKey{tenant: v.q.tenant.id, key: sp.job.Unique.Key, seq: v.seq})
		}
	}
	return keys
}

// take picks job by job until the batch is full, nothing is ready, or a record must be read: it then returns the numbers
// of jobs to read.
func (r *reservation) take() (missing []int64) {
	s := r.s
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closing {
		r.err = queue.ErrClosed
		return nil
	}
	v := s.viewOf(r.p.View)
	s.openRates(r.now)
	for len(r.views) < r.p.Max {
		next := v.sched.Peek()
		if next == nil {
			return nil
		}
		l := next.Queue
		seq := l.front(s.gone)
		if at, ok := s.expires[seq]; ok && at <= r.now {
			r.drop(l, seq, queue.StateExpired)
			continue
		}
		e, ok := s.cache.get(seq)
		if !ok {
			f, read := r.fetched[seq]
			if !read || !s.current(seq, f) {
				return r.want(l)
			}
			if f.damaged {
				r.drop(l, seq, queue.StateDead)
				continue
			}
			e = f.entry
		}
		var k *slots
		if key := recordKey(e.record); key != "" {
			if k = l.q.slotsOf(key); !k.free() {
				if r.aside == queue.AsideMax {
					return nil
				}
				r.aside++
				s.stepAside(l, seq, k)
				continue
			}
		}
		bytes := recordPayloadBytes(e.record)
		if r.p.MaxBytes > 0 && len(r.views) > 0 && r.size+bytes > r.p.MaxBytes {
			if k != nil {
				k.tidy()
			}
			return nil
		}
		r.size += bytes
		estimate := s.estimate(l.q)
		v.sched.Charge(next, max(1, estimate))
		s.leaveFront(l, seq)
		r.start(v, l, seq, e, k).estimate = estimate
		if l.takeable() == 0 {
			s.sync(l)
		}
	}
	return nil
}

// leaveFront takes the front job out of its line, which who calls it lets leave; with s.mu held.
func (s *Store) leaveFront(l *line, seq int64) {
	if sd := s.sidesteps[seq]; sd != nil {
		s.forgetSidestep(sd)
	} else {
		l.popFront()
	}
	l.q.ready--
	s.cache.drop(seq)
	delete(s.fetching, seq)
	delete(s.expires, seq)
}

// start puts a job under a lease; with s.mu held.
func (r *reservation) start(v *view, l *line, seq int64, e entry, k *slots) *running {
	s := r.s
	if r.b == nil {
		r.b = &batch{token: newToken(s.epoch, s.tokens), worker: r.p.Worker, started: r.now, lease: r.until - r.now, until: r.until, view: v,
			jobs: make([]*running, 0, min(r.p.Max, l.live+1))}
		s.batches.push(r.b)
	}
	s.reserved++
	job := &running{seq: seq, birth: e.birth, q: l.q, prio: l.prio, b: r.b, order: s.reserved, started: r.now, until: r.until,
		expires: e.expiresAt, record: e.record, payload: e.payload, checkpoint: e.checkpoint, st: e.st, slots: k, logBytes: -1}
	r.b.jobs = append(r.b.jobs, job)
	r.b.left++
	s.running[seq] = job
	if k != nil {
		k.running++
	}
	s.countRunning(l.q, 1)
	s.chargeRate(l.q, r.now)
	l.q.served++
	r.views = append(r.views, job.view())
	s.notify(seq)
	if r.until < s.dueAnnounced {
		s.announceDue()
	}
	return job
}

// drop takes a job that will not run out of its line; the writer ends it.
func (r *reservation) drop(l *line, seq int64, to queue.State) {
	s := r.s
	expires := s.expires[seq]
	sd := s.sidesteps[seq]
	s.leaveFront(l, seq)
	if sd != nil && sd.k.bringBack() {
		s.syncQueue(l.q)
	}
	s.sync(l)
	s.limbo[seq] = struct{}{}
	r.drops = append(r.drops, drop{seq: seq, l: l, to: to, expires: expires})
}

// drop is a ready job that came to the front and will not run.
type drop struct {
	seq int64
	l   *line
	to  queue.State // expired, or dead when its record is damaged

	expires int64 // 0 = never
}

// dropAll ends the dropped jobs and waits for that, so that who reserved sees them ended.
func (r *reservation) dropAll(ctx context.Context) error {
	if len(r.drops) == 0 {
		return nil
	}
	drops := r.drops
	r.drops = nil
	return r.s.endDropped(ctx, drops)
}

func (s *Store) endDropped(ctx context.Context, drops []drop) error {
	return s.step(ctx, func(g *group, t *step) error {
		t.size = len(drops)
		for _, d := range drops {
			if _, taken := g.touched[d.seq]; taken {
				return errNextGroup
			}
		}
		// When the commit fails the jobs go back to where they were.
		t.undo = append(t.undo, func() {
			for i := len(drops) - 1; i >= 0; i-- {
				if d := drops[i]; s.leaveLimbo(d.seq) {
					if d.expires != 0 {
						s.expires[d.seq] = d.expires
					}
					s.readyFront(d.l, d.seq)
				}
			}
		})
		for _, d := range drops {
			s.mu.Lock()
			_, still := s.limbo[d.seq]
			s.mu.Unlock()
			if !still {
				continue // cancelled or deleted meanwhile
			}
			row, err := g.readJob(d.seq)
			if err != nil {
				return err
			}
			if row == nil {
				s.log.Error("a waiting job has no row; the database is damaged", "path", s.path, "seq", d.seq)
				continue
			}
			g.touched[d.seq] = struct{}{}
			if err := g.finishWaiting(row, d.to, t); err != nil {
				return err
			}
		}
		t.then = append(t.then, func() {
			for _, d := range drops {
				s.leaveLimbo(d.seq)
			}
		})
		return nil
	})
}

func (s *Store) leaveLimbo(seq int64) bool {
	_, in := s.limbo[seq]
	delete(s.limbo, seq)
	return in
}

// Extend implements queue.Queue. Leases live in memory: they end with the process anyway.
func (s *Store) Extend(ctx context.Context, refs []queue.Ref, lease time.Duration) ([]queue.ExtendOutcome, error) {
	if err := s.enter(ctx); err != nil {
		return nil, err
	}
	if err := queue.ValidLease(lease); err != nil {
		return nil, err
	}
	parsed := make([]parsedRef, len(refs))
	for i := range refs {
		parsed[i] = s.parseRef(refs[i])
	}
	until := queue.After(s.now(), lease)
	ms := until.UnixMilli()
	outcomes := make([]queue.ExtendOutcome, len(refs))
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := range parsed {
		r := s.held(parsed[i])
		if r == nil {
			outcomes[i] = queue.ExtendOutcome{Status: queue.ExtendLost}
			continue
		}
		r.until = ms
		if ms < r.b.until {
			r.b.until = ms
			s.batches.up(r.b.index)
		}
		outcomes[i] = queue.ExtendOutcome{Status: queue.ExtendOK, Until: until}
		if r.cancel {
			outcomes[i].Status = queue.ExtendCancelRequested
		}
	}
	s.announceDue()
	return outcomes, nil
}

package sqliteq

import (
	"github.com/taskhost/taskhost/queue"
)

// running is a reserved job.
type running struct {
	seq     int64
	birth   birth
	q       *queueState
	prio    int
	b       *batch
	order   int64 // number of the reservation in this process
	started int64
	until   int64
	expires int64 // for show; a job that has started does not expire

	record     []byte
	payload    []byte // when it is not in the record
	checkpoint []byte
	st         *state // as stored
	slots      *slots // of its concurrency key; nil without one
	estimate   int64  // what it was charged, in milliseconds; 0 when every job cost the same
	cancel     bool
	busy       bool // a request of the writer's group has it
	settled    bool // … and ends it
	logBytes   int  // of this attempt; -1 = not known yet
}

// batch is what one Reserve took.
type batch struct {
	token    queue.Token
	worker   string
	started  int64
	lease    int64
	until    int64 // lower bound of the leases' ends
	index    int   // in Store.batches
	jobs     []*running
	left     int   // not settled
	settling int   // of those: settled in the writer's group
	row      int64 // of batches; 0 = not written
	view     *view // nil for what the process before reserved
}

// held returns the job that ref is the current reservation of, nil when the lease is lost; with s.mu held.
func (s *Store) held(ref parsedRef) *running {
	r := s.running[ref.seq]
	if r == nil || r.birth != ref.birth || r.b.token != ref.token || r.settled {
		return nil
	}
	return r
}

// parsedRef is a queue.Ref whose id was read outside the lock. seq is 0 for an id that is not ours.
type parsedRef struct {
	seq   int64
	birth birth
	token queue.Token
}

func (s *Store) parseRef(ref queue.Ref) parsedRef {
	b, seq, ok := s.ids.parse(ref.ID)
	if !ok {
		return parsedRef{}
	}
	return parsedRef{seq: seq, birth: b, token: ref.Token}
}

// end takes a settled job out of the running; with s.mu held.
func (s *Store) end(r *running) {
	delete(s.running, r.seq)
	if k := r.slots; k != nil {
		k.running--
		if k.bringBack() {
			s.syncQueue(r.q)
		}
	}
	s.countRunning(r.q, -1)
	r.b.left--
	r.b.settling--
	if r.b.left == 0 && r.b.index >= 0 {
		s.batches.remove(r.b)
	}
}

// letGo forgets what a settled job carried: its batch may live on for long.
func (r *running) letGo() {
	r.record, r.payload, r.checkpoint, r.st = nil, nil, nil, nil
}

// jobView is everything the store knows of one job, in one shape for all its places.
type jobView struct {
	seq        int64
	birth      birth
	q          *queueState
	prio       int
	state      queue.State
	runAt      int64
	finishedAt int64
	expiresAt  int64
	record     []byte
	payload    []byte
	checkpoint []byte
	result     []byte
	st         *state
	// while running
	started int64
	until   int64
	worker  string
	cancel  bool
}

// job builds what callers see. An undecodable record gives a job without what the record said.
func (s *Store) job(v *jobView) *queue.Job {
	sp, err := decodeRecord(v.record)
	if err != nil {
		sp = spec{}
	}
	st := v.st
	j := &queue.Job{
		ID:             s.ids.id(v.birth, v.seq),
		Tenant:         v.q.tenant.name,
		Queue:          v.q.name,
		Type:           sp.job.Type,
		State:          v.state,
		Priority:       v.prio,
		Payload:        sp.payload,
		PayloadJSON:    sp.job.PayloadJSON,
		Headers:        sp.job.Headers,
		Labels:         sp.job.Labels,
		Timeout:        sp.job.Timeout,
		MaxAttempts:    sp.job.MaxAttempts,
		Backoff:        sp.job.Backoff,
		IdempotencyKey: sp.job.IdempotencyKey,
		Unique:         sp.job.Unique,
		ConcurrencyKey: sp.job.ConcurrencyKey,
		RetriedFrom:    sp.job.RetriedFrom,
		Run:            st.run,
		Attempt:        st.attempt,
		Crashes:        st.crashes,
		Interruptions:  st.interruptions,
		CreatedAt:      v.birth.time(),
		NextRunAt:      fromMillis(v.runAt),
		StartedAt:      st.startedAt,
		FinishedAt:     fromMillis(v.finishedAt),
		ExpiresAt:      fromMillis(v.expiresAt),
		ErasedAt:       sp.erasedAt,
		PayloadBytes:   sp.payloadBytes,
		Result:         v.result,
		ResultBytes:    st.resultBytes,
		LastError:      copyError(st.lastError),
		Attempts:       copyAttempts(st.attempts),
		Handler:        st.handler,
		Checkpoint:     v.checkpoint,
	}
	if v.state == queue.StateScheduled {
		j.Reason = st.reason
		if st.reason == queue.ReasonNone {
			j.Reason = queue.ReasonDelay
		}
	}
	if sp.flags&recordLarge != 0 {
		j.Payload = v.payload
	}
	if st.result != nil {
		j.Result = st.result
	}
	if st.progress != nil {
		p := *st.progress
		j.Progress = &p
	}
	if v.state == queue.StateRunning {
		j.Attempt = st.attempt + 1
		j.StartedAt = fromMillis(v.started)
		j.LeaseUntil = fromMillis(v.until)
		j.Worker = v.worker
		j.CancelRequested = v.cancel
	}
	return j
}

// view is the job as it runs; with s.mu held.
func (r *running) view() jobView {
	return jobView{seq: r.seq, birth: r.birth, q: r.q, prio: r.prio, state: queue.StateRunning, expiresAt: r.expires,
		record: r.record, payload: r.payload, checkpoint: r.checkpoint, st: r.st,
		started: r.started, until: r.until, worker: r.b.worker, cancel: r.cancel}
}

func preview(j *queue.Job) *queue.Job {
	j.Payload, j.Result, j.Checkpoint, j.Attempts = nil, nil, nil, nil
	return j
}

func copyError(e *queue.JobError) *queue.JobError {
	if e == nil {
		return nil
	}
	c := *e
	return &c
}

func copyAttempts(list []queue.Attempt) []queue.Attempt {
	if len(list) == 0 {
		return nil
	}
	c := make([]queue.Attempt, len(list))
	copy(c, list)
	for i := range c {
		c[i].Error = copyError(c[i].Error)
	}
	return c
}

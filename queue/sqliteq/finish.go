package sqliteq

import (
	"database/sql/driver"
	"time"

	"github.com/taskhost/taskhost/queue"
)

// errorKindUndecodable is the JobError.Kind of a job whose stored record is damaged.
const errorKindUndecodable = "undecodable"

// endedJob is a job that reaches a terminal state in this group, from whatever place.
type endedJob struct {
	seq      int64
	birth    birth
	q        *queueState
	prio     int
	expires  int64
	record   []byte
	st       *state // as it ends; the caller's own
	outcome  queue.State
	result   []byte
	noUnique bool // the unique key is known to be free
}

// finish writes the end of a job: its row moves to finished, or goes when finished jobs are not kept. It reports whether it
// was kept.
func (g *group) finish(e *endedJob) (kept bool, err error) {
	flags := byte(0)
	if len(e.record) > 1 {
		flags = e.record[1]
	}
	damaged := e.st.lastError != nil && e.st.lastError.Kind == errorKindUndecodable
	if err := g.freeUnique(e, flags, damaged); err != nil {
		return false, err
	}
	g.deletes = append(g.deletes, e.seq)
	age, forever := g.config.Retention.Age(e.outcome)
	if age == 0 && !forever {
		g.counters.removed++
		return false, g.removeExtras(e.seq, damaged || flags&recordLarge != 0 || e.st.has(stateCheckpoint), damaged || e.st.has(stateLogs))
	}
	if e.st.has(stateCheckpoint) && e.outcome != queue.StateDead {
		key := 4*e.seq + blobCheckpoint
		if err := g.exec(sqlBlobsDeleteRun, key, key); err != nil {
			return false, err
		}
		e.st.set(stateCheckpoint, false)
	}
	if e.st.has(stateLogs) && !g.config.Retention.KeepsLogs(e.st.lastError != nil) {
		if err := g.exec(sqlLogsDelete, e.seq); err != nil {
			return false, err
		}
		e.st.set(stateLogs, false)
		e.st.cutRun, e.st.cutAttempt = 0, 0
	}
	if e.outcome == queue.StateSucceeded {
		e.st.resultBytes = len(e.result)
		if len(e.result) > inlineMax {
			e.st.set(stateLargeResult, true)
			if err := g.exec(sqlBlobPut, 4*e.seq+blobResult, e.result); err != nil {
				return false, err
			}
		} else {
			e.st.result = e.result
		}
	}
	e.st.reason = queue.ReasonNone
	region := regionOf(e.outcome)
	g.finAdded[region]++
	fin := g.w.nextFin[region]
	g.w.nextFin[region]++
	g.firstEnd[region] = true
	g.finished = append(g.finished, fin, e.q.tenant.id, e.seq, e.q.id, int64(e.prio), stateCodes[e.outcome], int64(e.birth), g.nowMS,
		orNull(e.expires), driver.Value(orEmpty(e.record)), driver.Value(e.st.encode()))
	return true, nil
}

func orEmpty(b []byte) []byte {
	if b == nil {
		return []byte{}
	}
	return b
}

func (g *group) freeUnique(e *endedJob, flags byte, damaged bool) error {
	if damaged {
		return g.exec(sqlUniqueForget, e.seq)
	}
	if e.noUnique || flags&recordUnique == 0 || flags&recordWindow != 0 {
		return nil
	}
	sp, err := decodeRecord(e.record)
	if err != nil {
		return g.exec(sqlUniqueForget, e.seq)
	}
	return g.exec(sqlUniqueDelete, e.q.tenant.id, sp.job.Unique.Key, e.seq)
}

// removeExtras removes what a job has beside its row.
func (g *group) removeExtras(seq int64, blobs, logs bool) error {
	if blobs {
		if err := g.exec(sqlBlobsDeleteRun, 4*seq, 4*seq+3); err != nil {
			return err
		}
	}
	if logs {
		return g.exec(sqlLogsDelete, seq)
	}
	return nil
}

// jobRow is a row of jobs.
type jobRow struct {
	seq     int64
	birth   birth
	q       *queueState
	prio    int
	runAt   int64
	expires int64
	record  []byte
	st      *state
	damaged bool // record or state
}

// scanJob reads the columns of job_read and jobs_down. A row whose queue is unknown gives q = nil.
func (s *Store) scanJob(row []driver.Value) *jobRow {
	j := &jobRow{seq: asInt(row[0]), prio: int(asInt(row[2])), birth: birth(asInt(row[3])), runAt: asInt(row[5]), expires: asInt(row[6]),
		record: asBytes(row[7])}
	st, err := decodeState(asBytes(row[8]))
	if err != nil {
		st, j.damaged = fresh.clone(), true
	}
	j.st = st
	if _, err := decodeRecord(j.record); err != nil {
		j.damaged = true
	}
	s.mu.Lock()
	j.q = s.queuesByID[asInt(row[1])]
	s.mu.Unlock()
	return j
}

// readJob returns nil when there is no such row.
func (g *group) readJob(seq int64) (job *jobRow, err error) {
	err = g.query(sqlJobRead, func(row []driver.Value) error {
		job = g.s.scanJob(row)
		return nil
	}, seq)
	return job, err
}

// finishWaiting ends a job that is in no line and in no heap any more, or will not be when t.then has run.
func (g *group) finishWaiting(j *jobRow, to queue.State, t *step) error {
	st := j.st.clone()
	if to == queue.StateDead {
		st.lastError = damagedError()
	}
	kept, err := g.finish(&endedJob{seq: j.seq, birth: j.birth, q: j.q, prio: j.prio, expires: j.expires, record: j.record, st: st, outcome: to})
	if err != nil {
		return err
	}
	t.then = append(t.then, func() { g.s.afterEnd(j.q, j.seq, to, kept) })
	return nil
}

// afterEnd follows the commit of an end; with s.mu held.
func (s *Store) afterEnd(q *queueState, seq int64, to queue.State, kept bool) {
	if kept && to == queue.StateDead {
		q.dead++
	}
	s.notify(seq)
	if !kept {
		s.unwatch(seq)
	}
}

// leaveWaiting takes a ready or scheduled job out of memory, and returns how to put it back; with s.mu held.
func (s *Store) leaveWaiting(j *jobRow) (back func()) {
	expires := s.expires[j.seq]
	delete(s.expires, j.seq)
	s.cache.drop(j.seq)
	delete(s.fetching, j.seq)
	restore := func() {
		if expires != 0 {
			s.expires[j.seq] = expires
			s.expiry.push(due{at: expires, seq: j.seq})
		}
	}
	switch l := s.lineOf(j.q, j.prio); {
	case s.leaveLimbo(j.seq):
		return func() { restore(); s.readyFront(l, j.seq) }
	case s.sidesteps[j.seq] != nil:
		sd := s.sidesteps[j.seq]
		j.q.ready--
		s.forgetSidestep(sd)
		sd.k.bringBack()
		s.syncQueue(j.q)
		return func() {
			restore()
			j.q.ready++
			sd.k = j.q.slotsOf(sd.k.key) // the old ones may be forgotten
			s.putAside(sd)
			sd.k.bringBack()
			s.syncQueue(j.q)
		}
	case j.runAt != 0:
		j.q.scheduled--
		s.unscheduled[j.seq] = struct{}{}
		s.compactTimers()
		return func() {
			restore()
			j.q.scheduled++
			if _, still := s.unscheduled[j.seq]; still {
				delete(s.unscheduled, j.seq)
			} else {
				s.scheduled.push(due{at: j.runAt, seq: j.seq, l: l})
			}
		}
	default:
		s.gone[j.seq] = struct{}{}
		j.q.ready--
		l.bury(s.gone)
		s.sync(l)
		return func() {
			restore()
			if _, still := s.gone[j.seq]; still { // in its old place
				delete(s.gone, j.seq)
				l.live++
				j.q.ready++
				s.sync(l)
			} else {
				s.readyFront(l, j.seq)
			}
		}
	}
}

// attempt records one attempt that ends now.
func attemptRecord(r *running, v *queue.Settlement) queue.Attempt {
	return queue.Attempt{
		Run:             r.st.run,
		Attempt:         r.st.attempt + 1,
		StartedAt:       fromMillis(r.started),
		DurationMS:      v.Duration.Milliseconds(),
		Fuel:            v.Fuel,
		PeakMemoryBytes: v.PeakMemoryBytes,
		Worker:          r.b.worker,
		Handler:         v.Handler,
	}
}

// keptUntil says when a job that ended at the given time is removed; false for never.
func keptUntil(r queue.Retention, s queue.State, finishedAt int64) (int64, bool) {
	age, forever := r.Age(s)
	return queue.After(time.UnixMilli(finishedAt), age).UnixMilli(), !forever
}

func damagedError() *queue.JobError {
	return &queue.JobError{Kind: errorKindUndecodable, Message: "the stored record is damaged and cannot be read"}
}

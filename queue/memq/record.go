package memq

import (
	"maps"
	"slices"
	"time"

	"github.com/taskhost/taskhost/queue"
)

// record is one job with what the store knows of it besides.
type record struct {
	job         queue.Job
	reservation int64 // number of its last reservation; orders what goes back to the front
	charge      charge
	aside       bool // in its line, but passed over: its concurrency key had no free slot when it was next
	back        bool // in its line, no longer passed over, and not next again since
	logs        []queue.LogLine
	logSeq      int64
	logSizes    map[attemptKey]int
	logFull     map[attemptKey]bool
	watches     map[*watch]bool
}

type attemptKey struct{ run, attempt int }

// find returns the job of a tenant, nil when there is none.
func (s *Store) find(tenant, id string) *record {
	if r := s.findID(id); r != nil && r.job.Tenant == tenant {
		return r
	}
	return nil
}

func (s *Store) findID(id string) *record {
	for _, r := range s.jobs {
		if r.job.ID == id {
			return r
		}
	}
	return nil
}

// held returns the job that ref is the current reservation of, nil when the lease is lost.
func (s *Store) held(ref queue.Ref) *record {
	r := s.findID(ref.ID)
	if r == nil || r.job.State != queue.StateRunning || r.job.Token != ref.Token {
		return nil
	}
	return r
}

// touch tells everyone that the job changed.
func (s *Store) touch(r *record) {
	r.signalWatches()
	s.broadcast()
}

// finish ends a job that is in no line, and removes it at once where finished jobs are not kept.
func (s *Store) finish(r *record, state queue.State, now time.Time) {
	r.job.State = state
	r.job.Reason = queue.ReasonNone
	r.job.NextRunAt = time.Time{}
	r.job.FinishedAt = now
	if state != queue.StateDead {
		r.job.Checkpoint = nil
	}
	s.syncViews()
	s.freeUnique(r)
	if !s.scheduling.Retention.KeepsLogs(r.job.LastError != nil) {
		r.dropLogs()
	}
	s.touch(r)
	if age, forever := s.scheduling.Retention.Age(state); age == 0 && !forever {
		s.remove(r)
	}
}

// remove deletes every trace but the idempotency key.
func (s *Store) remove(r *record) {
	s.leaveLine(r)
	s.freeUnique(r)
	s.jobs = slices.DeleteFunc(s.jobs, func(o *record) bool { return o == r })
	s.removed++
	r.closeWatches()
	s.broadcast()
}

func (r *record) dropLogs() {
	r.logs, r.logSizes, r.logFull = nil, nil, nil
}

// copyJob returns a job that shares nothing with the store but byte slices that nobody changes. The token is only for
// whom reserved it.
func (r *record) copyJob() *queue.Job {
	j := r.job
	j.Token = ""
	j.Headers = maps.Clone(j.Headers)
	j.Labels = maps.Clone(j.Labels)
	j.LastError = copyError(j.LastError)
	j.Attempts = slices.Clone(j.Attempts)
	for i := range j.Attempts {
		j.Attempts[i].Error = copyError(j.Attempts[i].Error)
	}
	if j.Progress != nil {
		p := *j.Progress
		j.Progress = &p
	}
	return &j
}

// preview is copyJob as lists show it.
func (r *record) preview() *queue.Job {
	j := r.copyJob()
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

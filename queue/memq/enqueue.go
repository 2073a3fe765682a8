package memq

import (
	"context"
	"maps"
	"time"

	"github.com/taskhost/taskhost/queue"
)

// remembered is what an idempotency key was used for.
type remembered struct {
	id          string
	fingerprint [32]byte
	until       time.Time
}

// Enqueue implements queue.Queue.
func (s *Store) Enqueue(ctx context.Context, specs []queue.JobSpec) ([]queue.EnqueueOutcome, error) {
	if err := s.lock(ctx); err != nil {
		return nil, err
	}
	defer s.mu.Unlock()
	now := s.now()
	outcomes := make([]queue.EnqueueOutcome, len(specs))
	for i := range specs {
		outcomes[i] = s.enqueue(&specs[i], now)
	}
	return outcomes, nil
}

func (s *Store) enqueue(spec *queue.JobSpec, now time.Time) queue.EnqueueOutcome {
	if err := spec.Validate(s.limits); err != nil {
		return queue.EnqueueOutcome{Status: queue.EnqueueRejected, Err: err}
	}
	idem := tenantKey{spec.Tenant, spec.IdempotencyKey}
	fingerprint := queue.SpecFingerprint(*spec)
	if first, ok := s.idempotency[idem]; ok && now.Before(first.until) {
		if first.fingerprint != fingerprint {
			return queue.EnqueueOutcome{Status: queue.EnqueueRejected,
				Err: &queue.IdempotencyMismatchError{Key: spec.IdempotencyKey, JobID: first.id}}
		}
		return queue.EnqueueOutcome{Status: queue.EnqueueDuplicate, ID: first.id}
	}
	if holder := s.uniqueHolder(spec.Tenant, spec.Unique.Key); holder != nil {
		if spec.Unique.OnConflict == queue.UniqueExisting {
			return queue.EnqueueOutcome{Status: queue.EnqueueDuplicate, ID: holder.job.ID}
		}
		return queue.EnqueueOutcome{Status: queue.EnqueueRejected,
			Err: &queue.UniqueHeldError{Key: spec.Unique.Key, JobID: holder.job.ID, State: holder.job.State}}
	}
	if w, ok := s.windows[tenantKey{spec.Tenant, spec.Unique.Key}]; ok && spec.Unique.Key != "" && now.Before(w.until) {
		if spec.Unique.OnConflict == queue.UniqueExisting {
			return queue.EnqueueOutcome{Status: queue.EnqueueDuplicate, ID: w.id}
		}
		held := &queue.UniqueHeldError{Key: spec.Unique.Key, JobID: w.id}
		if holder := s.findID(w.id); holder != nil {
			held.State = holder.job.State
		}
		return queue.EnqueueOutcome{Status: queue.EnqueueRejected, Err: held}
	}
	id, err := s.ids.next(now, s.random)
	if err != nil {
		return queue.EnqueueOutcome{Status: queue.EnqueueUnknown, Err: err}
	}
	if spec.IdempotencyKey != "" {
		s.idempotency[idem] = remembered{id: id, fingerprint: fingerprint, until: queue.After(now, s.limits.IdempotencyTTL)}
	}
	r := &record{job: s.newJob(id, spec, now), watches: map[*watch]bool{}}
	s.jobs = append(s.jobs, r)
	s.enqueued++
	s.useQueue(queueKey{spec.Tenant, spec.Queue})
	if spec.Unique.Until == queue.UniqueUntilWindow {
		s.windows[tenantKey{spec.Tenant, spec.Unique.Key}] = window{id: id, until: queue.After(now, spec.Unique.Window)}
	}
	s.takeUnique(r)
	if spec.Delay > 0 {
		s.schedule(r, queue.ReasonDelay, spec.Delay, now)
	} else {
		s.toTail(r)
	}
	return queue.EnqueueOutcome{Status: queue.EnqueueCreated, ID: id}
}

func (s *Store) newJob(id string, spec *queue.JobSpec, now time.Time) queue.Job {
	j := queue.Job{
		ID:             id,
		Tenant:         spec.Tenant,
		Queue:          spec.Queue,
		Type:           spec.Type,
		Priority:       s.settings(queueKey{spec.Tenant, spec.Queue}).Priority,
		Payload:        spec.Payload,
		PayloadJSON:    spec.PayloadJSON,
		Headers:        maps.Clone(spec.Headers),
		Labels:         maps.Clone(spec.Labels),
		Timeout:        spec.Timeout,
		MaxAttempts:    spec.MaxAttempts,
		Backoff:        spec.Backoff,
		IdempotencyKey: spec.IdempotencyKey,
		Unique:         spec.Unique,
		ConcurrencyKey: spec.ConcurrencyKey,
		RetriedFrom:    spec.RetriedFrom,
		Run:            1,
		CreatedAt:      now,
		PayloadBytes:   len(spec.Payload),
	}
	if spec.Priority != nil {
		j.Priority = *spec.Priority
	}
	if spec.ExpiresIn > 0 {
		j.ExpiresAt = queue.After(now, spec.ExpiresIn)
	}
	return j
}

// schedule makes a job wait for its time; without a delay it goes to the tail at once.
func (s *Store) schedule(r *record, why queue.Reason, delay time.Duration, now time.Time) {
	if delay <= 0 {
		s.toTail(r)
		return
	}
	r.job.State = queue.StateScheduled
	r.job.Reason = why
	r.job.NextRunAt = queue.After(now, delay)
	s.syncViews()
	s.touch(r)
}

// uniqueHolder returns the job that holds a unique key, nil when it is free.
func (s *Store) uniqueHolder(tenant, key string) *record {
	if key == "" {
		return nil
	}
	return s.unique[tenantKey{tenant, key}]
}

func (s *Store) takeUnique(r *record) {
	if r.job.Unique.Key != "" && r.job.Unique.Until != queue.UniqueUntilWindow {
		s.unique[tenantKey{r.job.Tenant, r.job.Unique.Key}] = r
	}
}

func (s *Store) freeUnique(r *record) {
	key := tenantKey{r.job.Tenant, r.job.Unique.Key}
	if s.unique[key] == r {
		delete(s.unique, key)
	}
}

func (s *Store) useQueue(key queueKey) {
	if s.used[key] == nil {
		s.used[key] = &usage{}
	}
}

package schedules

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/taskhost/taskhost/queue"
)

// Bounds of serving.
const (
	CatchUpMax      = 1000   // jobs that catch-up "all" makes after one downtime
	SkippedCountMax = 10_000 // due times of one downtime that are counted as skipped
	enqueueChunk    = 100    // jobs in one call of the store
)

// entry is a schedule in the leader's table.
type entry struct {
	record
	state stateRecord
	spec  Spec
	next  time.Time // zero = never: paused
}

func (e *entry) arm() {
	e.next = time.Time{}
	if !e.paused() {
		e.next = e.spec.Next(e.base(&e.state))
	}
}

// load reads the table, and sweeps states without a schedule.
func (s *Service) load(ctx context.Context) error {
	revision, err := s.revision(ctx)
	if err != nil {
		return err
	}
	var table []*entry
	byKey := map[string]*entry{}
	known := map[string]bool{}
	err = scan(ctx, s, kindSchedule, "", func(rec queue.Record, r record) {
		known[rec.Key] = true
		spec, err := Parse(r.Cron, r.TZ)
		if err != nil {
			s.o.Log.Error("schedule cannot be served", "tenant", r.Tenant, "schedule", r.Name, "error", err)
			return
		}
		r.revision = rec.Revision
		e := &entry{record: r, spec: spec, state: stateRecord{Created: r.CreatedAt}}
		table = append(table, e)
		byKey[rec.Key] = e
	})
	if err != nil {
		return err
	}
	var orphans []string
	err = scan(ctx, s, kindState, "", func(rec queue.Record, st stateRecord) {
		st.revision = rec.Revision
		if e := byKey[rec.Key]; e != nil {
			e.state = *st.of(&e.record)
		} else if !known[rec.Key] {
			orphans = append(orphans, rec.Key)
		}
	})
	if err != nil {
		return err
	}
	for _, key := range orphans {
		if err := s.o.Records.DeleteRecord(ctx, kindState, key); err != nil && !errors.Is(err, queue.ErrNotFound) {
			return fmt.Errorf("remove the state of a schedule that is gone: %w", err)
		}
	}
	for _, e := range table {
		e.arm()
	}
	s.table, s.seen, s.dirty = table, revision, false
	s.counts.known.Store(int64(len(known)))
	return nil
}

// firing is one job to enqueue.
type firing struct {
	e   *entry
	due time.Time
}

// serve enqueues what is due, and returns how long nothing is.
func (s *Service) serve(ctx context.Context) (time.Duration, error) {
	for {
		now, err := s.o.Queue.Now(ctx)
		if err != nil {
			return 0, fmt.Errorf("ask the store for its time: %w", err)
		}
		var firings []firing
		next, moved := time.Time{}, false
		for _, e := range s.table {
			if e.next.IsZero() {
				continue
			}
			if !e.next.After(now) {
				due, err := s.plan(ctx, e, now)
				if err != nil {
					return 0, err
				}
				firings, moved = append(firings, due...), true
			} else if next.IsZero() || e.next.Before(next) {
				next = e.next
			}
		}
		if !moved {
			if next.IsZero() {
				return forever, nil
			}
			return max(next.Sub(now), time.Millisecond), nil
		}
		// Oldest first, whatever schedule it is of.
		slices.SortStableFunc(firings, func(a, b firing) int { return a.due.Compare(b.due) })
		for chunk := range slices.Chunk(firings, enqueueChunk) {
			if err := s.fire(ctx, chunk, now); err != nil {
				return 0, err
			}
			if s.o.Leaser != nil && time.Since(s.acquired) >= s.o.TTL/3 { // much to catch up: the lease comes first
				return time.Millisecond, nil
			}
		}
	}
}

// plan says which due times of an entry are to be served now; those that are skipped are noted at once.
func (s *Service) plan(ctx context.Context, e *entry, now time.Time) ([]firing, error) {
	base := e.base(&e.state)
	due, skipped := pick(e.spec, base, now, e.CatchUp)
	if skipped > 0 {
		s.o.Log.Warn("missed due times are not caught up", "tenant", e.Tenant, "schedule", e.Name, "catch_up", string(cmp.Or(e.CatchUp, CatchUpNone)),
			"first", e.next, "skipped", skipped, "caught_up", len(due))
		e.state.Skipped += skipped
		s.counts.skipped.Add(skipped)
		e.state.Through = now
		if len(due) > 0 { // a due time is on a whole second: just before the first that is served
			e.state.Through = due[0].Add(-time.Millisecond)
		}
		if err := s.putState(ctx, e.key(), &e.state); err != nil {
			return nil, err
		}
	}
	if len(due) == 0 {
		e.arm()
		return nil, nil
	}
	firings := make([]firing, len(due))
	for i, at := range due {
		firings[i] = firing{e, at}
	}
	return firings, nil
}

// pick returns the due times in (base, now] that are to be served, oldest first, and how many are skipped.
func pick(spec Spec, base, now time.Time, catchUp CatchUp) (due []time.Time, skipped int64) {
	limit := CatchUpMax
	if first := spec.Next(base); first.Before(now.Add(-LateMax)) {
		switch catchUp {
		case CatchUpAll:
		case CatchUpOne:
			limit = 1
		case CatchUpNone:
			limit = 0
		default:
			limit = 0
		}
	}
	due = newest(spec, base, now, limit)
	end := now
	if len(due) > 0 {
		end = due[0].Add(-time.Second)
	}
	for at := spec.Next(base); !at.IsZero() && !at.After(end) && skipped < SkippedCountMax; at = spec.Next(at) {
		skipped++
	}
	return due, skipped
}

// newest returns the last n due times in (base, now], oldest first. It looks back further and further, so that years without a
// host do not cost a step for every second of them.
func newest(spec Spec, base, now time.Time, n int) []time.Time {
	if n == 0 {
		return nil
	}
	for back := 2 * LateMax; ; back *= 4 {
		from := now.Add(-back)
		whole := back <= 0 || back > 1<<61 || !from.After(base)
		if whole {
			from = base
		}
		var due []time.Time
		for at := spec.Next(from); !at.IsZero() && !at.After(now); at = spec.Next(at) {
			if due = append(due, at); len(due) >= 2*n+1 {
				due = append(due[:0], due[len(due)-n:]...)
			}
		}
		if len(due) > n {
			due = due[len(due)-n:]
		}
		if whole || len(due) == n {
			return due
		}
	}
}

// fire enqueues jobs in one call, and notes how far each schedule came.
func (s *Service) fire(ctx context.Context, chunk []firing, now time.Time) error {
	specs := make([]queue.JobSpec, len(chunk))
	for i, f := range chunk {
		specs[i] = f.e.Definition.spec(f.due, s.o.Defaults)
		specs[i].IdempotencyKey = idempotencyKey(f.e.Name, f.due)
	}
	outcomes, err := s.o.Queue.Enqueue(ctx, specs)
	if err != nil {
		return fmt.Errorf("enqueue the jobs of schedules: %w", err)
	}
	for i, o := range outcomes {
		if o.Status == queue.EnqueueUnknown {
			return fmt.Errorf("enqueue the job of schedule %s: %w", chunk[i].e.key(), cmp.Or(o.Err, queue.ErrUnavailable))
		}
	}
	var touched []*entry
	for i, o := range outcomes {
		e := chunk[i].e
		s.note(e, chunk[i].due, now, o)
		if !slices.Contains(touched, e) {
			touched = append(touched, e)
		}
	}
	for _, e := range touched {
		if err := s.putState(ctx, e.key(), &e.state); err != nil {
			return err
		}
		e.arm()
	}
	return nil
}

// note enters an outcome into the state.
func (s *Service) note(e *entry, due, now time.Time, o queue.EnqueueOutcome) {
	st := &e.state
	st.LastDue, st.Through = due, due
	var used *queue.IdempotencyMismatchError
	switch {
	case o.Status == queue.EnqueueCreated:
		s.counts.enqueued.Add(1)
		st.LastJob, st.LastAt = o.ID, now
		st.Enqueued++
	case o.Status == queue.EnqueueDuplicate:
		// A host that died before it could note so enqueued it; or the unique key's holder stands for it.
		st.LastJob, st.LastAt = o.ID, now
		st.Enqueued++
	case errors.As(o.Err, &used): // likewise, and the definition changed since
		st.LastJob, st.LastAt = used.JobID, now
		st.Enqueued++
	default:
		s.counts.refused.Add(1)
		st.Refused++
		st.LastErrorAt, st.LastError = now, fmt.Sprint(o.Err)
		s.o.Log.Warn("the job of a schedule was refused", "tenant", e.Tenant, "schedule", e.Name, "due", due, "error", o.Err)
	}
}

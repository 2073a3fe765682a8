package memq

import (
	"context"
	"fmt"

	"github.com/taskhost/taskhost/queue"
)

// Audit implements queue.Auditor.
func (s *Store) Audit(ctx context.Context) (queue.AuditReport, error) {
	if err := s.lock(ctx); err != nil {
		return queue.AuditReport{}, err
	}
	defer s.mu.Unlock()
	report := queue.AuditReport{Counts: map[queue.State]int64{}, Enqueued: s.enqueued, Removed: s.removed}
	fault := func(format string, args ...any) { report.Faults = append(report.Faults, fmt.Sprintf(format, args...)) }

	places := map[*record]int{}
	for key, line := range s.lines {
		if len(line) == 0 {
			fault("line %v is empty", key)
		}
		for _, r := range line {
			places[r]++
			if keyOf(r) != key {
				fault("%s waits in line %v instead of %v", r.job.ID, key, keyOf(r))
			}
		}
	}
	back, aside := map[slotKey]int{}, map[slotKey]int{}
	for _, r := range s.jobs {
		if r.back {
			back[slotOf(&r.job)]++
		}
		if r.aside {
			aside[slotOf(&r.job)]++
		}
		if r.job.State != queue.StateReady && (r.aside || r.back) {
			fault("%s is %s and stepped aside %t, came back %t", r.job.ID, r.job.State, r.aside, r.back)
		}
		report.Counts[r.job.State]++
		want := 0
		if r.job.State == queue.StateReady {
			want = 1
		}
		if places[r] != want {
			fault("%s is %s and in %d lines, want %d", r.job.ID, r.job.State, places[r], want)
		}
		delete(places, r)
		if running := r.job.State == queue.StateRunning; running != (r.job.Token != "") || running == r.job.LeaseUntil.IsZero() {
			fault("%s is %s with token %t and lease until %s", r.job.ID, r.job.State, r.job.Token != "", r.job.LeaseUntil)
		}
		if r.job.State.Terminal() == r.job.FinishedAt.IsZero() {
			fault("%s is %s and finished at %s", r.job.ID, r.job.State, r.job.FinishedAt)
		}
	}
	for key, n := range aside {
		if free := s.freeSlots(key); back[key] < free {
			fault("%d jobs of concurrency key %q of %s/%s are aside and %d came back, but %d may run", n, key.key, key.tenant, key.queue, back[key], free)
		}
	}
	for r := range places {
		fault("%s waits in a line but does not exist", r.job.ID)
	}
	for key, r := range s.unique {
		if r.job.State.Terminal() || s.findID(r.job.ID) != r {
			fault("unique key %q of %s is held by %s, which is %s", key.key, key.tenant, r.job.ID, r.job.State)
		}
	}
	if got := int64(len(s.jobs)) + s.removed; got != s.enqueued {
		fault("%d jobs exist and %d were removed, but %d were enqueued", len(s.jobs), s.removed, s.enqueued)
	}
	return report, nil
}

package sqliteq

import (
	"context"
	"database/sql/driver"
	"fmt"

	"github.com/taskhost/taskhost/queue"
)

// Audit implements queue.Auditor. It compares memory with the database in the writer, so no commit falls between; it
// takes about a second per million jobs, in which nothing is written.
func (s *Store) Audit(ctx context.Context) (queue.AuditReport, error) {
	if err := s.enter(ctx); err != nil {
		return queue.AuditReport{}, err
	}
	a := &audit{s: s}
	err := s.alone(ctx, func(g *group, _ *step) error {
		a.begin(g)
		return a.compare(g)
	})
	if err != nil {
		return queue.AuditReport{}, err
	}
	return a.report, nil
}

type audit struct {
	s      *Store
	report queue.AuditReport
	places map[int64]queue.State // what memory says of every job that is not finished
}

// faultsKept bounds the list of faults; the rest is counted.
const faultsKept = 100

func (a *audit) fault(format string, args ...any) {
	switch n := len(a.report.Faults); {
	case n < faultsKept:
		a.report.Faults = append(a.report.Faults, fmt.Sprintf(format, args...))
	case n == faultsKept:
		a.report.Faults = append(a.report.Faults, "and more")
	}
}

// begin notes where memory has each job.
func (a *audit) begin(g *group) {
	s := a.s
	a.report = queue.AuditReport{Counts: make(map[queue.State]int64), Enqueued: g.counters.enqueued, Removed: g.counters.removed}
	a.places = make(map[int64]queue.State)
	put := func(seq int64, st queue.State) {
		if had, twice := a.places[seq]; twice {
			a.fault("%s is in memory twice: as %s and as %s", a.name(seq), had, st)
		}
		a.places[seq] = st
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, q := range s.queuesByID {
		ready := int64(0)
		q.eachReady(s.gone, func(seq int64) {
			put(seq, queue.StateReady)
			ready++
		})
		if ready != q.ready {
			a.fault("queue %s/%s counts %d ready jobs and has %d", q.tenant.name, q.name, q.ready, ready)
		}
		for _, l := range q.lines {
			a.line(l)
		}
		for _, k := range q.slots {
			a.slots(k)
		}
	}
	a.running()
	for _, d := range s.scheduled {
		if _, dead := s.unscheduled[d.seq]; !dead {
			put(d.seq, queue.StateScheduled)
		}
	}
	for seq := range s.running {
		put(seq, queue.StateRunning)
	}
	for seq := range s.limbo {
		put(seq, queue.StateReady)
	}
}

// line compares what a line counts with what it has, with s.mu held like the next ones.
func (a *audit) line(l *line) {
	q := l.q
	n := 0
	for seq := range l.all() {
		if _, dead := a.s.gone[seq]; !dead {
			n++
		}
	}
	if n != l.live {
		a.fault("line %s/%s priority %d counts %d jobs and has %d", q.tenant.name, q.name, l.prio, l.live, n)
	}
	for _, le := range l.entries {
		if le.entry.Competes() != l.eligible() {
			a.fault("queue %s/%s priority %d with %d jobs competes: %t", q.tenant.name, q.name, l.prio, n+len(l.back), le.entry.Competes())
		}
	}
}

func (a *audit) slots(k *slots) {
	if free := k.q.settings.MaxPerKey - k.running; len(k.aside) > 0 && k.back < free {
		a.fault("%d jobs of concurrency key %q of %s/%s are aside and %d came back, but %d may run", len(k.aside), k.key, k.q.tenant.name, k.q.name, k.back, free)
	}
	for _, sd := range k.aside {
		if a.s.sidesteps[sd.seq] != sd {
			a.fault("%s is aside and not listed as such", a.name(sd.seq))
		}
	}
}

// running compares the counts that caps go by with the reservations there are.
func (a *audit) running() {
	queues, tenants, keys := make(map[*queueState]int64), make(map[*tenantState]int64), make(map[*slots]int)
	for _, r := range a.s.running {
		queues[r.q]++
		tenants[r.q.tenant]++
		if r.slots != nil {
			keys[r.slots]++
		}
	}
	for _, q := range a.s.queuesByID {
		if q.running != queues[q] {
			a.fault("queue %s/%s counts %d running jobs and has %d", q.tenant.name, q.name, q.running, queues[q])
		}
		for _, k := range q.slots {
			if k.running != keys[k] {
				a.fault("concurrency key %q of %s/%s counts %d running jobs and has %d", k.key, q.tenant.name, q.name, k.running, keys[k])
			}
			delete(keys, k)
		}
	}
	for k, n := range keys {
		a.fault("%d jobs run with forgotten slots of concurrency key %q of %s/%s", n, k.key, k.q.tenant.name, k.q.name)
	}
	for _, t := range a.s.tenants {
		if t.running != tenants[t] {
			a.fault("tenant %s counts %d running jobs and has %d", t.name, t.running, tenants[t])
		}
	}
}

// name of a job that may not have a row.
func (a *audit) name(seq int64) string { return fmt.Sprintf("job number %d", seq) }

func (a *audit) compare(g *group) error {
	live := int64(0)
	err := g.query(sqlJobsIndex, func(row []driver.Value) error {
		live++
		seq := asInt(row[0])
		place, ok := a.places[seq]
		delete(a.places, seq)
		if !ok {
			a.fault("%s is in no line, no schedule and not running", a.name(seq))
			return nil
		}
		a.report.Counts[place]++
		if scheduled := row[4] != nil; place == queue.StateReady && scheduled || place == queue.StateScheduled && !scheduled {
			a.fault("%s is %s in memory, but its row has a due time: %t", a.name(seq), place, scheduled)
		}
		return nil
	})
	if err != nil {
		return err
	}
	for seq, st := range a.places {
		a.fault("%s is %s in memory and has no row", a.name(seq), st)
	}
	err = g.query(sqlFinishedCounts, func(row []driver.Value) error {
		a.report.Counts[stateOfCode(asInt(row[0]))] += asInt(row[1])
		live += asInt(row[1])
		return nil
	})
	if err != nil {
		return err
	}
	if live+a.report.Removed != a.report.Enqueued {
		a.fault("%d jobs exist and %d were removed, but %d were enqueued", live, a.report.Removed, a.report.Enqueued)
	}
	for _, check := range [...]struct{ text, what string }{
		{sqlAuditDouble, "jobs are both waiting and finished"},
		{sqlAuditDoubleFinished, "jobs are finished twice"},
		{sqlAuditOrphanBlobs, "blobs belong to no job"},
		{sqlAuditOrphanLogs, "logs belong to no job"},
		{sqlAuditOrphanUniques, "unique keys are held by jobs that do not wait or run"},
	} {
		err := g.query(check.text, func(row []driver.Value) error {
			if n := asInt(row[0]); n > 0 {
				a.fault("%d %s", n, check.what)
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

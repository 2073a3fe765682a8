package queuetest

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/taskhost/taskhost/queue"
)

func (w *world) cancel(rng *rand.Rand) (operation, error) {
	n, tenant := w.anyJob(rng)
	return operation{text: fmt.Sprintf("cancel #%d", n), run: func(s *side) string {
		j, err := s.jobs.CancelJob(s.ctx, tenant, s.id(n))
		return s.describe(j) + " " + s.outcome(err)
	}}, nil
}

func (w *world) remove(rng *rand.Rand) (operation, error) {
	n, tenant := w.anyJob(rng)
	return operation{text: fmt.Sprintf("delete #%d", n), run: func(s *side) string {
		return s.outcome(s.jobs.DeleteJob(s.ctx, tenant, s.id(n)))
	}}, nil
}

// foreign asks for a job in the name of another tenant.
func (w *world) foreign(rng *rand.Rand) (operation, error) {
	n, _ := w.anyJob(rng)
	return operation{text: fmt.Sprintf("a stranger asks for #%d", n), run: func(s *side) string {
		_, get := s.jobs.GetJob(s.ctx, "stranger", s.id(n))
		_, cancel := s.jobs.CancelJob(s.ctx, "stranger", s.id(n))
		_, why := s.explainer.WaitingOn(s.ctx, "stranger", s.id(n))
		return s.outcome(get) + s.outcome(why) + s.outcome(cancel) + s.outcome(s.jobs.DeleteJob(s.ctx, "stranger", s.id(n)))
	}}, nil
}

func (w *world) settings(rng *rand.Rand) queue.QueueSettings {
	var c queue.QueueSettings
	if rng.IntN(2) == 0 {
		c.Weight = ptr(w.weight(rng))
	}
	if rng.IntN(4) == 0 {
		c.Priority = ptr(choose(rng, 0, 1, -1))
	}
	if rng.IntN(3) == 0 {
		c.Paused = ptr(rng.IntN(3) == 0)
	}
	if rng.IntN(5) == 0 {
		c.MaxRunning = ptr(1 + rng.IntN(4))
	}
	if rng.IntN(5) == 0 {
		c.MaxPerKey = ptr(1 + rng.IntN(3))
	}
	if rng.IntN(5) == 0 {
		c.Rate = ptr(choose(rng, queue.Rate{Count: 1, Per: time.Second}, queue.Rate{Count: 3, Per: 7 * time.Second}, queue.Rate{Count: 40, Per: time.Second},
			queue.Rate{Count: 7, Per: time.Minute}, queue.Rate{Count: 999, Per: time.Second}))
	}
	return c
}

func (w *world) setQueue(rng *rand.Rand) (operation, error) {
	c := queue.QueueChange{Set: w.settings(rng)}
	c.ClearWeight = c.Set.Weight == nil && rng.IntN(4) == 0
	c.ClearPriority = c.Set.Priority == nil && rng.IntN(4) == 0
	c.ClearPaused = c.Set.Paused == nil && rng.IntN(2) == 0
	c.ClearMaxRunning = c.Set.MaxRunning == nil && rng.IntN(2) == 0
	c.ClearMaxPerKey = c.Set.MaxPerKey == nil && rng.IntN(4) == 0
	c.ClearRate = c.Set.Rate == nil && rng.IntN(2) == 0
	if rng.IntN(20) == 0 {
		c.Set.Weight = ptr(-1.0)
	}
	tenant, name := w.tenant(rng), w.queueName(rng)
	return operation{
		text: fmt.Sprintf("set queue %s clear %t %t %t %t %t %t", infoText(queue.QueueInfo{Tenant: tenant, Name: name, Override: c.Set}), c.ClearWeight, c.ClearPriority,
			c.ClearPaused, c.ClearMaxRunning, c.ClearMaxPerKey, c.ClearRate),
		run: func(s *side) string {
			info, err := s.queues.SetQueue(s.ctx, tenant, name, c)
			return infoText(info) + " " + s.outcome(err)
		},
	}, nil
}

func (w *world) configure(rng *rand.Rand) (operation, error) {
	c := queue.Scheduling{
		Queues:             map[string]queue.QueueSettings{},
		Tenants:            map[string]queue.TenantSettings{},
		MaxConsecutiveHigh: choose(rng, 0, 0, 1, 2, 3),
		MaxCrashes:         rng.IntN(3),
		ChargeByTime:       choose(rng, 0, 0, time.Millisecond, 2*time.Millisecond, 7*time.Millisecond, time.Second),
		Retention: queue.Retention{
			Succeeded: choose(rng, 0, 0, -1, time.Minute),
			Dead:      choose(rng, 0, 0, -1, time.Hour),
			Logs:      choose(rng, "", queue.LogsOfAll, queue.LogsOfFailed, queue.LogsOfNone),
		},
	}
	for _, q := range []string{"q0", "q1", "q4"} {
		if rng.IntN(2) == 0 {
			c.Queues[q] = w.settings(rng)
		}
	}
	for _, t := range []string{"t0", "t1"} {
		if rng.IntN(2) == 0 {
			c.Tenants[t] = queue.TenantSettings{Weight: ptr(w.weight(rng))}
		}
		if rng.IntN(4) == 0 {
			c.Tenants[t] = queue.TenantSettings{Weight: c.Tenants[t].Weight, MaxRunning: ptr(1 + rng.IntN(5))}
		}
	}
	var text []string
	for _, q := range slices.Sorted(maps.Keys(c.Queues)) {
		text = append(text, infoText(queue.QueueInfo{Name: q, Override: c.Queues[q]}))
	}
	for _, t := range slices.Sorted(maps.Keys(c.Tenants)) {
		text = append(text, fmt.Sprintf("tenant %s %s", t, tenantText(c.Tenants[t])))
	}
	return operation{
		text: fmt.Sprintf("configure %v guard %d crashes %d charge by %s retention %v", text, c.MaxConsecutiveHigh, c.MaxCrashes, c.ChargeByTime, c.Retention),
		run:  func(s *side) string { return s.outcome(s.configured.Configure(s.ctx, c)) },
	}, nil
}

func tenantText(t queue.TenantSettings) string {
	text := ""
	if t.Weight != nil {
		text += fmt.Sprintf("weight %v ", *t.Weight)
	}
	if t.MaxRunning != nil {
		text += fmt.Sprintf("max_running %d", *t.MaxRunning)
	}
	return text
}

func (w *world) explain(rng *rand.Rand) (operation, error) {
	n, tenant := w.anyJob(rng)
	return operation{text: fmt.Sprintf("what does #%d wait for", n), run: func(s *side) string {
		reasons, err := s.explainer.WaitingOn(s.ctx, tenant, s.id(n))
		return waits(reasons) + " " + s.outcome(err)
	}}, nil
}

func (w *world) getQueue(rng *rand.Rand) (operation, error) {
	tenant, name := w.tenant(rng), choose(rng, "q0", "q1", "q4", "q5", "never")
	return operation{text: fmt.Sprintf("get queue %s/%s", tenant, name), run: func(s *side) string {
		info, err := s.queues.GetQueue(s.ctx, tenant, name)
		return infoText(info) + " " + s.outcome(err)
	}}, nil
}

// deadFilter is a filter whose ids are numbers still.
type deadFilter struct {
	queue.DeadFilter
	ids   []int
	after int // -1 = from the start
}

func (d deadFilter) on(s *side) queue.DeadFilter {
	f := d.DeadFilter
	for _, n := range d.ids {
		f.IDs = append(f.IDs, s.id(n))
	}
	if d.after >= 0 {
		f.After = s.id(d.after)
	}
	return f
}

func (w *world) deadFilter(rng *rand.Rand) deadFilter {
	f := deadFilter{DeadFilter: queue.DeadFilter{Tenant: w.tenant(rng)}, after: -1}
	switch rng.IntN(9) {
	case 0:
		f.Queue = w.queueName(rng)
	case 1:
		f.Type = choose(rng, "a", "b", "idem")
	case 2:
		f.ErrorFingerprint = queue.ErrorFingerprint(failure(choose(rng, "oops 1", "bad width 2")))
	case 3:
		f.DeadBefore = w.clock.Now().Add(-choose(rng, 0, time.Second, time.Minute))
	case 4:
		for range 1 + rng.IntN(5) {
			n, tenant := w.anyJob(rng)
			f.ids, f.Tenant = append(f.ids, n), tenant
		}
	case 5:
		f.after, f.Tenant = w.anyJob(rng)
	}
	return f
}

func (d deadFilter) String() string {
	return fmt.Sprintf("%s queue %q type %q fingerprint %q before %s ids %v after %d", d.Tenant, d.Queue, d.Type, d.ErrorFingerprint, stamp(d.DeadBefore), d.ids, d.after)
}

func (s *side) chunk(c queue.DeadChunk, err error) string {
	var parts []string
	if c.Changed > 0 {
		parts = append(parts, fmt.Sprintf("changed %d", c.Changed))
	}
	if c.Skipped > 0 {
		parts = append(parts, fmt.Sprintf("skipped %d", c.Skipped))
	}
	parts = append(parts, fmt.Sprintf("last %s done %t %s", s.number(c.Last), c.Done, s.outcome(err)))
	return strings.Join(parts, " ")
}

func (w *world) replay(rng *rand.Rand) (operation, error) {
	f, to, limit := w.deadFilter(rng), choose(rng, "", "", "q0", "q2", "bad name"), rng.IntN(6)
	return operation{text: fmt.Sprintf("replay %s to %q limit %d", f, to, limit), run: func(s *side) string {
		return s.chunk(s.dead.ReplayDead(s.ctx, f.on(s), to, limit))
	}}, nil
}

func (w *world) purge(rng *rand.Rand) (operation, error) {
	f, limit := w.deadFilter(rng), 1+rng.IntN(3)
	return operation{text: fmt.Sprintf("purge %s limit %d", f, limit), run: func(s *side) string {
		return s.chunk(s.dead.PurgeDead(s.ctx, f.on(s), limit))
	}}, nil
}

func (w *world) bulk(rng *rand.Rand) (operation, error) {
	c := queue.Change{Action: choose(rng, queue.ChangeActions()...)}
	if c.Action == queue.ChangeReplay && rng.IntN(3) == 0 {
		c.ToQueue = w.queueName(rng)
	}
	var numbers []int
	tenant := ""
	for range 1 + rng.IntN(4) {
		n, t := w.anyJob(rng)
		if !slices.Contains(numbers, n) {
			numbers = append(numbers, n)
		}
		tenant = t
	}
	return operation{text: fmt.Sprintf("%s jobs %v of %s %s", c.Action, numbers, tenant, c.ToQueue), run: func(s *side) string {
		ids := make([]string, 0, len(numbers))
		for _, n := range numbers {
			if id := s.id(n); !slices.Contains(ids, id) {
				ids = append(ids, id)
			}
		}
		got, err := s.bulk.ChangeJobs(s.ctx, tenant, c, ids)
		return fmt.Sprint(got, " ", s.outcome(err))
	}}, nil
}

func (w *world) countDead(rng *rand.Rand) (operation, error) {
	f := w.deadFilter(rng)
	return operation{text: fmt.Sprintf("count dead %s", f), run: func(s *side) string {
		n, err := s.dead.CountDead(s.ctx, f.on(s))
		return fmt.Sprintf("%d %s", n, s.outcome(err))
	}}, nil
}

func (w *world) list(rng *rand.Rand) (operation, error) {
	f := queue.JobFilter{Tenant: w.tenant(rng), Limit: choose(rng, 0, 2, 5)}
	switch rng.IntN(7) {
	case 0:
		f.States = []queue.State{choose(rng, queue.States()...), choose(rng, queue.States()...)}
	case 1:
		f.Queue = w.queueName(rng)
	case 2:
		f.Type = choose(rng, "a", "b")
	case 3:
		f.Labels = map[string]string{"l": "x"}
	case 4:
		f.Query = choose(rng, "oops", "width 1", "crashed")
	case 5:
		f.Since = w.clock.Now().Add(-choose(rng, time.Second, time.Minute))
	}
	return operation{
		text: fmt.Sprintf("list %s states %v queue %q type %q labels %v query %q since %s limit %d", f.Tenant, f.States, f.Queue, f.Type, f.Labels, f.Query, stamp(f.Since), f.Limit),
		run: func(s *side) string {
			var b strings.Builder
			f := f
			for {
				page, err := s.jobs.ListJobs(s.ctx, f)
				fmt.Fprintf(&b, "%d jobs next %s %s", len(page.Jobs), s.number(page.Next), s.outcome(err))
				for _, j := range page.Jobs {
					fmt.Fprintf(&b, "\n%s", s.describe(j))
				}
				if page.Next == "" {
					return b.String()
				}
				f.Cursor = page.Next
				b.WriteByte('\n')
			}
		},
	}, nil
}

func (w *world) progress(rng *rand.Rand) (operation, error) {
	r, err := w.anyReservation(rng)
	p := queue.Progress{Done: int64(rng.IntN(5)), Total: 5, Message: choose(rng, "", "half")}
	return operation{text: fmt.Sprintf("progress of #%d by token %d", r.job, r.batch), run: func(s *side) string {
		return s.outcome(s.notes.SetProgress(s.ctx, queue.Ref{ID: s.id(r.job), Token: s.token(r.batch)}, p))
	}}, err
}

func (w *world) log(rng *rand.Rand) (operation, error) {
	r, err := w.anyReservation(rng)
	var lines []queue.LogLine
	for range 1 + rng.IntN(3) {
		lines = append(lines, queue.LogLine{Level: choose(rng, "", "warn", "error"), Message: choose(rng, "short", "two\nlines\x1b", strings.Repeat("x", 25))})
	}
	if rng.IntN(30) == 0 {
		lines[0].Level = "shout"
	}
	return operation{
		text: fmt.Sprintf("log %d lines of #%d by token %d", len(lines), r.job, r.batch),
		run: func(s *side) string {
			answer := s.outcome(s.notes.AppendLogs(s.ctx, queue.Ref{ID: s.id(r.job), Token: s.token(r.batch)}, lines))
			for _, tenant := range []string{"t0", "t1", "t2"} {
				if page, err := s.notes.JobLogs(s.ctx, tenant, s.id(r.job), 1, 2); err == nil {
					answer += fmt.Sprintf(" lines %d", len(page.Lines))
					if page.Truncated {
						answer += " truncated"
					}
				}
			}
			return answer
		},
		after: func(*side) {
			if w.logged == nil {
				w.logged = map[int]bool{}
			}
			w.logged[r.job] = true
		},
	}, err
}

func (w *world) checkpoint(rng *rand.Rand) (operation, error) {
	r, err := w.anyReservation(rng)
	data := []byte(strings.Repeat("c", rng.IntN(18)))
	return operation{text: fmt.Sprintf("checkpoint of %d bytes of #%d by token %d", len(data), r.job, r.batch), run: func(s *side) string {
		return s.outcome(s.notes.PutCheckpoint(s.ctx, queue.Ref{ID: s.id(r.job), Token: s.token(r.batch)}, data))
	}}, err
}

func (w *world) lease(rng *rand.Rand) (operation, error) {
	name, holder := choose(rng, "n0", "n1"), choose(rng, "h0", "h1")
	if rng.IntN(3) == 0 {
		return operation{text: fmt.Sprintf("release lease %s of %s", name, holder), run: func(s *side) string {
			return s.outcome(s.leaser.ReleaseLease(s.ctx, name, holder))
		}}, nil
	}
	ttl := choose(rng, time.Second, time.Minute)
	return operation{text: fmt.Sprintf("acquire lease %s for %s, %s", name, holder, ttl), run: func(s *side) string {
		ok, err := s.leaser.AcquireLease(s.ctx, name, holder, ttl)
		return fmt.Sprintf("%t %s", ok, s.outcome(err))
	}}, nil
}

func (w *world) record(rng *rand.Rand) (operation, error) {
	key, value := choose(rng, "a", "a/b", "c"), []byte(choose(rng, "", "one", "two"))
	// Revisions are compared by what they allow, not by their number.
	fresh, remove := rng.IntN(3) == 0, rng.IntN(4) == 0
	return operation{text: fmt.Sprintf("record %s = %q fresh %t remove %t", key, value, fresh, remove), run: func(s *side) string {
		have, err := s.records.GetRecord(s.ctx, "k", key)
		answer := fmt.Sprintf("had %q %s;", have.Value, s.outcome(err))
		ifRevision := have.Revision
		if fresh {
			ifRevision = 0
		}
		if remove {
			answer += "deleted " + s.outcome(s.records.DeleteRecord(s.ctx, "k", key)) + ";"
		}
		rev, err := s.records.PutRecord(s.ctx, "k", key, value, ifRevision)
		answer += fmt.Sprintf("put %s larger %t;", s.outcome(err), rev > have.Revision)
		list, err := s.records.ListRecords(s.ctx, "k", "a", "", 0)
		for _, r := range list {
			answer += fmt.Sprintf("%s=%q ", r.Key, r.Value)
		}
		return answer + s.outcome(err)
	}}, nil
}

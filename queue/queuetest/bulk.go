package queuetest

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/taskhost/taskhost/queue"
)

func bulkCases() []testCase {
	return []testCase{
		{name: "which states a change fits", run: bulkStates},
		{name: "cancel", run: bulkCancel},
		{name: "retry now", run: bulkRetry},
		{name: "replay", run: bulkReplay},
		{name: "purge leaves the idempotency key", run: bulkPurge},
		{name: "erase", run: bulkErase},
		{name: "another tenant's jobs are missing", run: bulkTenant},
		{name: "bad arguments are refused", run: bulkBad},
		{name: "many jobs of one line", run: bulkMany},
	}
}

func (f *fixture) change(a queue.ChangeAction, ids ...string) []queue.ChangeOutcome {
	f.Helper()
	got, err := f.bulk.ChangeJobs(f.ctx, "acme", queue.Change{Action: a}, ids)
	if err != nil || len(got) != len(ids) {
		f.Fatalf("ChangeJobs(%s, %v) = %v, %v", a, ids, got, err)
	}
	return got
}

func (f *fixture) changed(a queue.ChangeAction, ids ...string) {
	f.Helper()
	for i, o := range f.change(a, ids...) {
		if o != queue.Changed {
			f.Errorf("%s of %s = %s, want changed", a, ids[i], o)
		}
	}
}

// everywhere makes one job in each state, and one more scheduled for each reason.
func (f *fixture) everywhere() map[string]string {
	f.Helper()
	ids := map[string]string{}
	for s, id := range f.endings() {
		ids[string(s)] = id
	}
	ids["running"] = f.put("q", "running")
	f.takeOne()
	for _, v := range []queue.Verb{queue.VerbNack, queue.VerbDefer} {
		ids[string(v)] = f.put("q", string(v))
		s := settlement(f.takeOne(), v)
		s.Delay = time.Hour
		f.settle(s, queue.StateScheduled)
	}
	ids["delay"] = f.put("q", "delay", delay(time.Hour))
	ids["ready"] = f.put("q", "ready")
	return ids
}

func bulkStates(f *fixture) {
	terminal := []string{"succeeded", "dead", "cancelled", "expired"}
	for _, c := range []struct {
		action queue.ChangeAction
		fits   []string
	}{
		{queue.ChangeCancel, []string{"running", "nack", "defer", "delay", "ready"}},
		{queue.ChangeRetry, []string{"nack"}},
		{queue.ChangeReplay, []string{"dead"}},
		{queue.ChangeErase, terminal},
		{queue.ChangePurge, append([]string{"nack", "defer", "delay", "ready"}, terminal...)},
	} {
		for name, id := range f.everywhere() {
			want := queue.ChangeSkipped
			if slices.Contains(c.fits, name) {
				want = queue.Changed
			}
			before := describe(f.get(id))
			if got := f.change(c.action, id)[0]; got != want {
				f.Errorf("%s of a job that is %s = %s, want %s", c.action, name, got, want)
			}
			if want == queue.ChangeSkipped {
				if after := describe(f.get(id)); after != before {
					f.Errorf("a skipped %s changed the job that is %s:\n%s\n%s", c.action, name, before, after)
				}
			}
		}
		f.checkBooks()
		for _, j := range f.list(queue.JobFilter{Limit: 500}).Jobs { // an empty store for the next change
			if j.State == queue.StateRunning {
				continue
			}
			if err := f.jobs.DeleteJob(f.ctx, "acme", j.ID); err != nil {
				f.Fatalf("DeleteJob: %v", err)
			}
		}
	}
}

func bulkCancel(f *fixture) {
	held := f.put("q", "held", unique(queue.Unique{Key: "u"}))
	running := f.put("r", "running")
	j := f.takeFrom(queue.View{Queues: []string{"r"}}, 1)[0]
	f.changed(queue.ChangeCancel, held, running)
	if got := f.wantState(held, queue.StateCancelled); got.FinishedAt.IsZero() {
		f.Errorf("a cancelled job has no end: %s", describe(got))
	}
	f.put("q", "next", unique(queue.Unique{Key: "u"})) // its key is free
	if got := f.get(running); !got.CancelRequested || got.State != queue.StateRunning {
		f.Errorf("a running job after the cancel: %s", describe(got))
	}
	if got := f.change(queue.ChangeCancel, held, running); got[0] != queue.ChangeSkipped || got[1] != queue.ChangeSkipped {
		f.Errorf("a second cancel = %v, want both skipped", got)
	}
	f.settle(settlement(j, queue.VerbRelease), queue.StateCancelled)
	f.wantOrder("next")
}

func bulkRetry(f *fixture) {
	id := f.put("q", "late", maxAttempts(3))
	s := settlement(f.takeOne(), queue.VerbNack)
	s.Delay = time.Hour
	f.settle(s, queue.StateScheduled)
	f.put("q", "first")
	f.changed(queue.ChangeRetry, id)
	if got := f.wantState(id, queue.StateReady); got.Reason != queue.ReasonNone || !got.NextRunAt.IsZero() || got.Attempt != 1 {
		f.Errorf("a job that is retried now: %s", describe(got))
	}
	if info := f.info("q"); info.Scheduled != 0 || info.Ready != 2 {
		f.Errorf("the queue has %d scheduled and %d ready jobs, want 0 and 2", info.Scheduled, info.Ready)
	}
	f.takeOne() // the one that was there before
	j := f.takeOne()
	if j.ID != id || j.Attempt != 2 {
		f.Fatalf("then came %s", describe(j))
	}
	// Its old due time is forgotten, the new one counts.
	s = settlement(j, queue.VerbNack)
	s.Delay = 2 * time.Hour
	f.settle(s, queue.StateScheduled)
	if r := f.pass(time.Hour); r.Promoted != 0 {
		f.Errorf("it became ready at the time of the retry that was made earlier")
	}
	if r := f.pass(time.Hour); r.Promoted != 1 {
		f.Errorf("it was not ready at its time")
	}
	f.wantState(id, queue.StateReady)
}

func bulkReplay(f *fixture) {
	a, b := f.put("q", "a", unique(queue.Unique{Key: "u"})), f.put("q", "b")
	f.bury(a)
	f.bury(b)
	f.put("z", "holder", unique(queue.Unique{Key: "u"}))
	got, err := f.bulk.ChangeJobs(f.ctx, "acme", queue.Change{Action: queue.ChangeReplay, ToQueue: "low"}, []string{a, b})
	if err != nil || got[0] != queue.ChangeSkipped || got[1] != queue.Changed {
		f.Fatalf("replay = %v, %v, want the first skipped: its unique key is held", got, err)
	}
	if j := f.wantState(b, queue.StateReady); j.Queue != "low" || j.Run != 2 {
		f.Errorf("a replayed job: %s", describe(j))
	}
}

func bulkPurge(f *fixture) {
	key := func(s *queue.JobSpec) { s.IdempotencyKey = "order-1" }
	waiting := f.put("q", "a", key)
	dead := f.put("q", "b")
	f.change(queue.ChangeCancel, waiting)
	f.bury(dead)
	f.changed(queue.ChangePurge, waiting, dead)
	f.wantGone(waiting)
	f.wantGone(dead)
	if o := f.try(spec("q", "a", key)); o.Status != queue.EnqueueDuplicate || o.ID != waiting {
		f.Errorf("enqueue with the key of a purged job = %+v, want a duplicate of it", o)
	}
	ready := f.put("q", "c", unique(queue.Unique{Key: "u"}))
	f.changed(queue.ChangePurge, ready)
	f.put("q", "d", unique(queue.Unique{Key: "u"})) // a job that is gone holds no key
	if got := f.change(queue.ChangePurge, ready, dead); got[0] != queue.ChangeMissing || got[1] != queue.ChangeMissing {
		f.Errorf("purge of what is gone = %v, want both missing", got)
	}
	if r := f.books(); r.Removed != 3 {
		f.Errorf("audit = %+v, want 3 removed", r)
	}
	f.wantOrder("d")
}

func bulkErase(f *fixture) {
	for _, size := range []int{10, 10_000} { // in the record, and beside it
		s := spec("q", "", maxAttempts(3))
		s.Payload, s.PayloadJSON = []byte(`"`+strings.Repeat("s", size)+`"`), true
		s.Labels, s.Headers = map[string]string{"l": "1"}, map[string]string{"h": "2"}
		done := f.created(f.try(s))
		ack := settlement(f.takeOne(), queue.VerbAck)
		ack.Result = []byte(strings.Repeat("r", size))
		f.settle(ack, queue.StateSucceeded)
		dead := f.created(f.try(s))
		j := f.takeOne()
		if err := f.notes.PutCheckpoint(f.ctx, ref(j), []byte("half")); err != nil {
			f.Fatalf("PutCheckpoint: %v", err)
		}
		if err := f.notes.AppendLogs(f.ctx, ref(j), []queue.LogLine{{Message: "a secret"}}); err != nil {
			f.Fatalf("AppendLogs: %v", err)
		}
		f.settle(settlement(j, queue.VerbDead), queue.StateDead)
		f.changed(queue.ChangeErase, done, dead)
		for _, id := range []string{done, dead} {
			got := f.get(id)
			if len(got.Payload)+len(got.Result)+len(got.Checkpoint) != 0 || got.PayloadBytes+got.ResultBytes != 0 || got.PayloadJSON || got.ErasedAt.IsZero() {
				f.Errorf("an erased job has %s", describe(got))
			}
			if got.Labels["l"] != "1" || got.Headers["h"] != "2" || got.Type != s.Type || len(got.Attempts) != 1 {
				f.Errorf("an erase took more: %s", describe(got))
			}
		}
		if p, err := f.notes.JobLogs(f.ctx, "acme", dead, 0, 0); err != nil || len(p.Lines) != 0 {
			f.Errorf("the log of an erased job: %+v, %v", p, err)
		}
		// Without its payload it cannot run.
		if got := f.change(queue.ChangeReplay, dead); got[0] != queue.ChangeSkipped {
			f.Errorf("replay of an erased job = %v", got)
		}
		if c := f.replay(queue.DeadFilter{IDs: []string{dead}}, "", 1); c.Skipped != 1 {
			f.Errorf("ReplayDead of an erased job = %+v", c)
		}
	}
}

func bulkTenant(f *fixture) {
	id := f.put("q", "a")
	for _, ids := range [][]string{{id}, {"nonsense"}, {""}} {
		got, err := f.bulk.ChangeJobs(f.ctx, "other", queue.Change{Action: queue.ChangeCancel}, ids)
		if err != nil || got[0] != queue.ChangeMissing {
			f.Errorf("cancel of %q by another tenant = %v, %v", ids, got, err)
		}
	}
	if got, err := f.bulk.ChangeJobs(f.ctx, "acme", queue.Change{Action: queue.ChangeCancel}, nil); err != nil || len(got) != 0 {
		f.Errorf("a change of no jobs = %v, %v", got, err)
	}
	f.wantState(id, queue.StateReady)
}

func bulkBad(f *fixture) {
	id := f.put("q", "a")
	many := make([]string, queue.ChangeMax+1)
	for i := range many {
		many[i] = fmt.Sprint(i)
	}
	for what, c := range map[string]struct {
		tenant string
		change queue.Change
		ids    []string
	}{
		"no tenant":         {"", queue.Change{Action: queue.ChangePurge}, []string{id}},
		"no action":         {"acme", queue.Change{}, []string{id}},
		"an unknown action": {"acme", queue.Change{Action: "drop"}, []string{id}},
		"a stray queue":     {"acme", queue.Change{Action: queue.ChangePurge, ToQueue: "low"}, []string{id}},
		"a bad queue":       {"acme", queue.Change{Action: queue.ChangeReplay, ToQueue: "a b"}, []string{id}},
		"too many jobs":     {"acme", queue.Change{Action: queue.ChangePurge}, many},
		"a job twice":       {"acme", queue.Change{Action: queue.ChangePurge}, []string{id, id}},
	} {
		_, err := f.bulk.ChangeJobs(f.ctx, c.tenant, c.change, c.ids)
		f.wantInvalid("ChangeJobs with "+what, err)
	}
	f.wantState(id, queue.StateReady)
}

func bulkMany(f *fixture) {
	var even []string
	for i := range 200 {
		id := f.put("q", fmt.Sprint(i))
		if i%2 == 0 {
			even = append(even, id)
		}
	}
	f.changed(queue.ChangeCancel, even...)
	if info := f.info("q"); info.Ready != 100 {
		f.Errorf("%d jobs are ready, want 100", info.Ready)
	}
	for i := 1; i < 200; i += 2 {
		if j := f.takeOne(); string(j.Payload) != fmt.Sprint(i) {
			f.Fatalf("%s came, want %d", j.Payload, i)
		}
	}
}

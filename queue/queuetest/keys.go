package queuetest

import (
	"errors"
	"time"

	"github.com/taskhost/taskhost/queue"
)

func idempotencyCases() []testCase {
	return []testCase{
		{name: "the same request returns the first job", run: idempotencyDuplicate},
		{name: "another request is a mismatch", run: idempotencyMismatch},
		{name: "the key outlives the job until its time is over", run: idempotencyTTL},
		{name: "keys belong to a tenant", run: idempotencyTenant},
		{name: "delete forgets the key", run: idempotencyDelete},
		{name: "what was refused is not remembered", run: idempotencyRefused},
	}
}

func (f *fixture) wantDuplicate(o queue.EnqueueOutcome, id string) {
	f.Helper()
	if o.Status != queue.EnqueueDuplicate || o.ID != id || o.Err != nil {
		f.Fatalf("outcome = %+v, want duplicate of %s", o, id)
	}
}

func idempotencyDuplicate(f *fixture) {
	s := spec("q", "a", idempotent("k"), priority(3))
	s.Labels = map[string]string{"x": "1", "y": "2"}
	id := f.created(f.try(s))
	f.wantDuplicate(f.try(s), id)
	f.ack(f.takeOne())
	f.wantDuplicate(f.try(s), id) // also when it is finished
	if r := f.books(); r.Enqueued != 1 {
		f.Errorf("%d jobs for one key", r.Enqueued)
	}
	f.wantOrder("")
}

func idempotencyMismatch(f *fixture) {
	id := f.put("q", "a", idempotent("k"))
	for what, change := range map[string]edit{
		"payload":  func(s *queue.JobSpec) { s.Payload = []byte("b") },
		"queue":    func(s *queue.JobSpec) { s.Queue = "other" },
		"type":     func(s *queue.JobSpec) { s.Type = "other" },
		"priority": priority(0), // asked for, not the default
		"delay":    delay(time.Second),
		"label":    func(s *queue.JobSpec) { s.Labels = map[string]string{"a": ""} },
		"header":   func(s *queue.JobSpec) { s.Headers = map[string]string{"a": ""} },
		"unique":   unique(queue.Unique{Key: "u"}),
		"attempts": maxAttempts(4),
		"timeout":  func(s *queue.JobSpec) { s.Timeout = time.Second },
		"backoff":  func(s *queue.JobSpec) { s.Backoff.Base = time.Minute },
	} {
		o := f.try(spec("q", "a", idempotent("k"), change))
		var mismatch *queue.IdempotencyMismatchError
		if o.Status != queue.EnqueueRejected || !errors.As(o.Err, &mismatch) || !errors.Is(o.Err, queue.ErrConflict) {
			f.Errorf("another %s with the same key = %+v, want a mismatch", what, o)
			continue
		}
		if mismatch.JobID != id || mismatch.Key != "k" {
			f.Errorf("mismatch = %+v, want key k of %s", mismatch, id)
		}
	}
	f.wantOrder("a")
}

func idempotencyTTL(f *fixture) {
	f.configure(queue.Scheduling{Retention: queue.Retention{Succeeded: -1}})
	s := spec("q", "a", idempotent("k"))
	id := f.created(f.try(s))
	f.ack(f.takeOne())
	f.wantGone(id)
	f.pass(f.Limits.IdempotencyTTL - time.Second)
	f.wantDuplicate(f.try(s), id)
	f.Advance(time.Second) // whether or not anybody swept it
	if again := f.created(f.try(s)); again == id {
		f.Errorf("the new job has the old id %s", id)
	}
}

func idempotencyTenant(f *fixture) {
	a := f.put("q", "a", idempotent("k"))
	b := f.put("q", "a", idempotent("k"), tenant("other"))
	if a == b {
		f.Errorf("two tenants share a job")
	}
}

func idempotencyDelete(f *fixture) {
	id := f.put("q", "a", idempotent("k"))
	if err := f.jobs.DeleteJob(f.ctx, "acme", id); err != nil {
		f.Fatalf("DeleteJob: %v", err)
	}
	f.put("q", "another", idempotent("k"))
}

func idempotencyRefused(f *fixture) {
	f.put("q", "holder", unique(queue.Unique{Key: "u"}))
	refused := spec("q", "a", idempotent("k"), unique(queue.Unique{Key: "u"}))
	if o := f.try(refused); o.Status != queue.EnqueueRejected {
		f.Fatalf("outcome = %+v, want rejected", o)
	}
	if o := f.try(spec("q", "bad", idempotent("k"), priority(9999))); o.Status != queue.EnqueueRejected {
		f.Fatalf("outcome = %+v, want rejected", o)
	}
	f.ack(f.takeOne())
	f.created(f.try(refused))
}

func uniqueCases() []testCase {
	return []testCase{
		{name: "a held key is refused and names its holder", run: uniqueReject},
		{name: "or answers the holder", run: uniqueExisting},
		{name: "case 022: a dead or deleted job holds nothing", run: uniqueFreed},
		{name: "until started", run: uniqueStarted},
		{name: "a retry holds on", run: uniqueRetry},
		{name: "keys belong to a tenant", run: uniqueTenant},
		{name: "for a window", run: uniqueWindow},
		{name: "a window and the other kinds share the keys", run: uniqueWindowShared},
		{name: "a window outlives its job, but not its deletion", run: uniqueWindowGone},
		{name: "replay has nothing to do with windows", run: uniqueWindowReplay},
		{name: "replay takes no key that a window holds", run: uniqueWindowHeld},
		{name: "bad windows are refused", run: uniqueWindowBad},
	}
}

func (f *fixture) wantHeld(o queue.EnqueueOutcome, id string, state queue.State) {
	f.Helper()
	var held *queue.UniqueHeldError
	if o.Status != queue.EnqueueRejected || !errors.As(o.Err, &held) || !errors.Is(o.Err, queue.ErrConflict) || o.ID != "" {
		f.Fatalf("outcome = %+v, want rejected because the key is held", o)
	}
	if held.JobID != id || held.State != state {
		f.Fatalf("held by %s (%s), want %s (%s)", held.JobID, held.State, id, state)
	}
}

func uniqueReject(f *fixture) {
	key := unique(queue.Unique{Key: "u"})
	id := f.put("q", "a", key, delay(time.Second))
	f.wantHeld(f.try(spec("other", "b", key)), id, queue.StateScheduled)
	f.pass(time.Second)
	f.wantHeld(f.try(spec("q", "b", key)), id, queue.StateReady)
	j := f.takeOne()
	f.wantHeld(f.try(spec("q", "b", key)), id, queue.StateRunning)
	f.ack(j)
	f.put("q", "b", key)
	f.put("q", "c", unique(queue.Unique{Key: "another"}))
}

func uniqueExisting(f *fixture) {
	id := f.put("q", "a", unique(queue.Unique{Key: "u"}))
	f.wantDuplicate(f.try(spec("q", "different", unique(queue.Unique{Key: "u", OnConflict: queue.UniqueExisting}))), id)
	f.wantOrder("a")
}

func uniqueFreed(f *fixture) {
	key := unique(queue.Unique{Key: "u"})
	f.bury(f.put("q", "dead", key))
	deleted := f.put("q", "deleted", key)
	if err := f.jobs.DeleteJob(f.ctx, "acme", deleted); err != nil {
		f.Fatalf("DeleteJob: %v", err)
	}
	cancelled := f.put("q", "cancelled", key)
	if _, err := f.jobs.CancelJob(f.ctx, "acme", cancelled); err != nil {
		f.Fatalf("CancelJob: %v", err)
	}
	f.put("q", "expired", key, expires(time.Second))
	f.pass(time.Second)
	f.put("q", "last", key)
	f.wantOrder("last")
}

func uniqueStarted(f *fixture) {
	key := unique(queue.Unique{Key: "u", Until: queue.UniqueUntilStarted})
	a := f.put("q", "a", key)
	f.wantHeld(f.try(spec("q", "b", key)), a, queue.StateReady)
	j := f.takeOne()
	b := f.put("q", "b", key)
	f.settle(settlement(j, queue.VerbRelease), queue.StateReady) // waits again, but has started
	f.wantHeld(f.try(spec("q", "c", key)), b, queue.StateReady)
	f.ack(f.takeOne()) // a: its end must not free the key of b
	f.wantHeld(f.try(spec("q", "c", key)), b, queue.StateReady)
	f.ack(f.takeOne())
	f.put("q", "c", key)
}

func uniqueRetry(f *fixture) {
	key := unique(queue.Unique{Key: "u"})
	id := f.put("q", "a", key)
	s := settlement(f.takeOne(), queue.VerbNack)
	s.Delay = time.Second
	f.settle(s, queue.StateScheduled)
	f.wantHeld(f.try(spec("q", "b", key)), id, queue.StateScheduled)
	f.pass(time.Second)
	f.takeOne()
	f.pass(lease) // reaped
	f.wantHeld(f.try(spec("q", "b", key)), id, queue.StateReady)
}

func uniqueTenant(f *fixture) {
	f.put("q", "a", unique(queue.Unique{Key: "u"}))
	f.put("q", "b", unique(queue.Unique{Key: "u"}), tenant("other"))
}

// windowed holds key u for a minute.
func windowed() edit {
	return unique(queue.Unique{Key: "u", Until: queue.UniqueUntilWindow, Window: time.Minute})
}

func uniqueWindow(f *fixture) {
	id := f.put("q", "a", windowed())
	if got := f.get(id); got.Unique.Window != time.Minute || got.Unique.Until != queue.UniqueUntilWindow {
		f.Errorf("the job has %+v", got.Unique)
	}
	f.wantHeld(f.try(spec("q", "b", windowed())), id, queue.StateReady)
	j := f.takeOne()
	f.wantHeld(f.try(spec("q", "b", windowed())), id, queue.StateRunning)
	f.ack(j)
	f.wantHeld(f.try(spec("q", "b", windowed())), id, queue.StateSucceeded) // it is finished, the minute is not over
	f.wantDuplicate(f.try(spec("q", "b", unique(queue.Unique{Key: "u", Until: queue.UniqueUntilWindow, Window: time.Hour, OnConflict: queue.UniqueExisting}))), id)
	f.put("q", "other", unique(queue.Unique{Key: "other", Until: queue.UniqueUntilWindow, Window: time.Minute}))
	f.put("q", "foreign", windowed(), tenant("other"))
	f.pass(time.Minute - time.Millisecond)
	f.wantHeld(f.try(spec("q", "b", windowed())), id, queue.StateSucceeded)
	f.pass(time.Millisecond)
	second := f.put("q", "b", windowed())
	f.pass(time.Second)
	f.wantHeld(f.try(spec("q", "c", windowed())), second, queue.StateReady) // a window of its own
	f.pass(time.Minute)
	f.put("q", "c", windowed()) // though the job still waits
}

func uniqueWindowShared(f *fixture) {
	plain := unique(queue.Unique{Key: "u"})
	id := f.put("q", "a", windowed())
	f.wantHeld(f.try(spec("q", "b", plain)), id, queue.StateReady)
	f.ack(f.takeOne())
	f.pass(time.Minute)
	id = f.put("q", "b", plain)
	f.wantHeld(f.try(spec("q", "c", windowed())), id, queue.StateReady)
	f.ack(f.takeOne())
	f.put("q", "c", windowed())
}

func uniqueWindowGone(f *fixture) {
	f.configure(queue.Scheduling{Retention: queue.Retention{Succeeded: -1}})
	id := f.put("q", "a", windowed())
	f.ack(f.takeOne())
	f.wantGone(id)
	f.wantHeld(f.try(spec("q", "b", windowed())), id, "")
	f.pass(time.Minute)
	id = f.put("q", "b", windowed())
	f.bury(id)
	f.wantHeld(f.try(spec("q", "c", windowed())), id, queue.StateDead)
	if err := f.jobs.DeleteJob(f.ctx, "acme", id); err != nil {
		f.Fatalf("DeleteJob: %v", err)
	}
	f.put("q", "c", windowed())
}

func uniqueWindowReplay(f *fixture) {
	id := f.put("q", "a", windowed())
	f.bury(id)
	if c := f.replay(queue.DeadFilter{}, "", 1); c.Changed != 1 {
		f.Fatalf("replay inside the window = %+v", c)
	}
	f.bury(id)
	f.pass(time.Minute)
	other := f.put("q", "b", windowed())
	if c := f.replay(queue.DeadFilter{}, "", 1); c.Changed != 1 {
		f.Fatalf("replay beside another window = %+v", c)
	}
	f.wantHeld(f.try(spec("q", "c", windowed())), other, queue.StateReady) // the replay took nothing
	f.takeOne()
	f.takeOne()
	f.pass(time.Minute)
	f.put("q", "c", windowed())
}

func uniqueWindowHeld(f *fixture) {
	f.bury(f.put("q", "a", unique(queue.Unique{Key: "u"})))
	f.put("q", "b", windowed())
	f.ack(f.takeOne())
	if c := f.replay(queue.DeadFilter{}, "", 1); c.Skipped != 1 {
		f.Fatalf("replay inside the window of another job = %+v, want skipped", c)
	}
	f.pass(time.Minute)
	if c := f.replay(queue.DeadFilter{}, "", 1); c.Changed != 1 {
		f.Fatalf("replay after the window of another job = %+v, want changed", c)
	}
}

func uniqueWindowBad(f *fixture) {
	for what, u := range map[string]queue.Unique{
		"no window":              {Key: "u", Until: queue.UniqueUntilWindow},
		"a negative window":      {Key: "u", Until: queue.UniqueUntilWindow, Window: -1},
		"a window too long":      {Key: "u", Until: queue.UniqueUntilWindow, Window: queue.DelayMax + 1},
		"a window with finished": {Key: "u", Window: time.Minute},
	} {
		o := f.try(spec("q", "a", unique(u)))
		if o.Status != queue.EnqueueRejected {
			f.Fatalf("%s = %+v, want rejected", what, o)
		}
		f.wantInvalid(what, o.Err)
	}
}

package queuetest

import (
	"time"

	"github.com/taskhost/taskhost/queue"
)

func reapCases() []testCase {
	return []testCase{
		{name: "an ended lease goes to the front as a crash", run: reapFront},
		{name: "a reaped batch keeps its order", run: reapOrder},
		{name: "nothing is reaped early", run: reapEarly},
		{name: "case 034: a poison pill ends in the dead letters", run: reapPoisonPill},
		{name: "case 033: a late reaper takes nothing that was settled or renewed", run: reapLate},
		{name: "case 029: a crash does not use up an attempt", run: reapKeepsAttempts},
	}
}

func reapFront(f *fixture) {
	id := f.putAll("q", "a b")[0]
	j := f.takeOne()
	if r := f.pass(lease); r.Reaped != 1 {
		f.Fatalf("Maintain at the end of the lease reaped %d, want 1", r.Reaped)
	}
	got := f.wantState(id, queue.StateReady)
	if got.Crashes != 1 || got.Attempt != 0 || got.Worker != "" || !got.LeaseUntil.IsZero() {
		f.Errorf("a reaped job = %+v, want one crash, no attempt counted, no lease", got)
	}
	want := queue.Attempt{Run: 1, Attempt: 1, Outcome: queue.AttemptCrashed, StartedAt: j.StartedAt, DurationMS: lease.Milliseconds(), Worker: "w1"}
	if len(got.Attempts) != 1 {
		f.Fatalf("attempts = %+v, want one", got.Attempts)
	}
	a := got.Attempts[0]
	if a.Error == nil || *a.Error != *queue.LeaseRanOut() || got.LastError == nil || *got.LastError != *a.Error {
		f.Errorf("errors: attempt %+v, job %+v, want %+v", a.Error, got.LastError, queue.LeaseRanOut())
	}
	a.Error = nil
	if a != want {
		f.Errorf("record = %+v, want %+v", a, want)
	}
	f.wantOrder("a b")
}

func reapOrder(f *fixture) {
	f.putAll("q", "a b c d e f")
	f.take(2)
	f.take(2)
	f.take(1)
	if r := f.pass(lease); r.Reaped != 5 {
		f.Fatalf("reaped %d, want 5", r.Reaped)
	}
	f.wantOrder("a b c d e f")
}

func reapEarly(f *fixture) {
	f.put("q", "a")
	f.takeOne()
	if r := f.pass(lease - time.Millisecond); r.Reaped != 0 {
		f.Fatalf("reaped %d leases 1 ms early", r.Reaped)
	}
}

// reapPoisonPill: a job that kills its worker each time ends in the dead letters, and says so.
func reapPoisonPill(f *fixture) {
	id := f.put("q", "poison", maxAttempts(1))
	f.put("q", "healthy")
	for i := range queue.MaxCrashesDefault {
		if j := f.takeOne(); j.ID != id || j.Crashes != i || j.Attempt != 1 {
			f.Fatalf("delivery %d = %s with %d crashes, attempt %d", i, j.Payload, j.Crashes, j.Attempt)
		}
		f.pass(lease)
	}
	got := f.wantState(id, queue.StateDead)
	want := queue.CrashBudgetSpent(queue.MaxCrashesDefault, queue.LeaseRanOut())
	if got.Crashes != queue.MaxCrashesDefault || got.Attempt != 0 || got.LastError == nil || *got.LastError != *want || len(got.Attempts) != 3 {
		f.Errorf("the poison pill = %+v, last error %+v, want %+v", got, got.LastError, want)
	}
	f.wantOrder("healthy")
}

// reapLate: what was settled or renewed in time is not taken away by a reaper that comes late.
func reapLate(f *fixture) {
	done, renewed := f.put("q", "done"), f.put("q", "renewed")
	a, b := f.takeOne(), f.takeOne()
	f.Advance(lease + time.Second)
	f.ack(a)
	f.extend(b, lease)
	if r := f.maintain(); r.Reaped != 0 {
		f.Errorf("reaped %d", r.Reaped)
	}
	f.wantState(done, queue.StateSucceeded)
	f.wantState(renewed, queue.StateRunning)
	f.ack(b)
}

// reapKeepsAttempts: with one attempt a job that lost its worker still gets that attempt.
func reapKeepsAttempts(f *fixture) {
	id := f.put("q", "a", maxAttempts(1))
	f.takeOne()
	f.pass(lease)
	f.settle(settlement(f.takeOne(), queue.VerbNack), queue.StateDead)
	if got := f.get(id); got.Attempt != 1 || got.Crashes != 1 {
		f.Errorf("job = %+v, want one attempt and one crash", got)
	}
}

package queuetest

import (
	"bytes"
	"fmt"
	"time"

	"github.com/taskhost/taskhost/queue"
)

func settleCases() []testCase {
	return []testCase{
		{name: "ack", run: settleAck},
		{name: "nack waits for its delay, then the tail", run: settleNack},
		{name: "nack without delay re-enters at the tail at once", run: settleNackNow},
		{name: "nack with attempts spent is dead", run: settleNackSpent},
		{name: "no maximum of attempts counts as one", run: settleNoMaximum},
		{name: "dead", run: settleDead},
		{name: "defer counts nothing", run: settleDefer},
		{name: "yield goes to the tail and counts nothing", run: settleYield},
		{name: "release goes to the front and counts nothing", run: settleRelease},
		{name: "a released batch keeps its order", run: settleReleaseOrder},
		{name: "crash goes to the front and counts a crash", run: settleCrash},
		{name: "malformed settlements are rejected one by one", run: settleMalformed},
		{name: "outcomes of one call are independent", run: settleIndependent},
		{name: "every attempt has a record", run: settleRecords},
		{name: "attempt records are capped, counters exact", run: settleCap},
	}
}

func settleAck(f *fixture) {
	id := f.put("q", "a")
	j := f.takeOne()
	f.Advance(time.Second)
	s := settlement(j, queue.VerbAck)
	s.Result = []byte("\x00result\xff")
	s.Duration, s.Fuel, s.PeakMemoryBytes = 1234*time.Millisecond, 99, 1<<20
	s.Handler = queue.Handler{Runtime: "wasm", Version: 3}
	f.settle(s, queue.StateSucceeded)
	got := f.wantState(id, queue.StateSucceeded)
	if !bytes.Equal(got.Result, s.Result) || got.ResultBytes != len(s.Result) || got.FinishedAt.Before(j.StartedAt.Add(time.Second)) ||
		got.Attempt != 1 || got.Worker != "" || !got.LeaseUntil.IsZero() || got.Handler != s.Handler {
		f.Errorf("an acked job = %+v, want its result, one attempt, an end and no lease", got)
	}
	want := queue.Attempt{Run: 1, Attempt: 1, Outcome: queue.AttemptSucceeded, StartedAt: j.StartedAt, DurationMS: 1234, Fuel: 99,
		PeakMemoryBytes: 1 << 20, Worker: "w1", Handler: s.Handler}
	if len(got.Attempts) != 1 || got.Attempts[0] != want {
		f.Errorf("attempts = %+v, want %+v", got.Attempts, want)
	}
	f.wantOrder("")
}

func settleNack(f *fixture) {
	id := f.put("q", "a")
	j := f.takeOne()
	f.put("q", "b")
	s := settlement(j, queue.VerbNack)
	s.Delay = 10 * time.Second
	f.settle(s, queue.StateScheduled)
	got := f.wantState(id, queue.StateScheduled)
	if got.Reason != queue.ReasonRetry || got.Attempt != 1 || got.LastError == nil || got.LastError.Message != "nack" || !got.LastError.Retryable {
		f.Errorf("a nacked job = %+v (last error %+v), want a retry after attempt 1", got, got.LastError)
	}
	if want := f.now().Add(10 * time.Second); got.NextRunAt.After(want) || got.NextRunAt.Before(want.Add(-5*time.Second)) {
		f.Errorf("next run at %s, want about %s", got.NextRunAt, want)
	}
	f.put("q", "c")
	f.pass(10 * time.Second)
	f.put("q", "d")
	f.wantOrder("b c a d")
	if got := f.get(id); got.Attempt != 2 || got.Crashes != 0 || got.Interruptions != 0 {
		f.Errorf("the second attempt has %d attempts, %d crashes, %d interruptions", got.Attempt, got.Crashes, got.Interruptions)
	}
}

func settleNackNow(f *fixture) {
	f.put("q", "a")
	j := f.takeOne()
	f.put("q", "b")
	f.settle(settlement(j, queue.VerbNack), queue.StateReady)
	f.wantOrder("b a")
}

func settleNackSpent(f *fixture) {
	id := f.put("q", "a", maxAttempts(2))
	f.settle(settlement(f.takeOne(), queue.VerbNack), queue.StateReady)
	s := settlement(f.takeOne(), queue.VerbNack)
	s.Delay = time.Hour
	f.settle(s, queue.StateDead)
	got := f.wantState(id, queue.StateDead)
	if got.Attempt != 2 || got.FinishedAt.IsZero() || got.LastError == nil || len(got.Attempts) != 2 || !got.NextRunAt.IsZero() {
		f.Errorf("a job out of attempts = %+v, want dead with both attempts and the last error", got)
	}
	f.pass(2 * time.Hour)
	f.wantOrder("")
}

func settleNoMaximum(f *fixture) {
	f.put("q", "a", maxAttempts(0))
	f.settle(settlement(f.takeOne(), queue.VerbNack), queue.StateDead)
}

func settleDead(f *fixture) {
	id := f.put("q", "a", maxAttempts(10))
	s := settlement(f.takeOne(), queue.VerbDead)
	s.Error = &queue.JobError{Kind: "permanent", Message: "bad width 0"}
	f.settle(s, queue.StateDead)
	got := f.wantState(id, queue.StateDead)
	if got.Attempt != 1 || got.LastError == nil || *got.LastError != *s.Error || got.FinishedAt.IsZero() {
		f.Errorf("a job declared dead = %+v, last error %+v", got, got.LastError)
	}
	if info := f.info("q"); info.Dead != 1 {
		f.Errorf("queue = %+v, want one dead", info)
	}
}

func settleDefer(f *fixture) {
	id := f.put("q", "a", maxAttempts(1))
	for range 5 { // more often than there are attempts
		s := settlement(f.takeOne(), queue.VerbDefer)
		s.Delay = time.Minute
		f.settle(s, queue.StateScheduled)
		got := f.wantState(id, queue.StateScheduled)
		if got.Reason != queue.ReasonDefer || got.Attempt != 0 || got.Crashes != 0 || got.Interruptions != 0 {
			f.Fatalf("a deferred job = %+v, want nothing counted", got)
		}
		f.put("q", "other")
		f.pass(time.Minute)
		first := f.takeOne()
		if string(first.Payload) != "other" {
			f.Fatalf("after a defer %q is first, want the other: due jobs enter at the tail", first.Payload)
		}
		f.ack(first)
	}
	f.wantOrder("a")
}

func settleYield(f *fixture) {
	id := f.putAll("q", "a b")[0]
	f.settle(settlement(f.takeOne(), queue.VerbYield), queue.StateReady)
	if got := f.get(id); got.Attempt != 0 || got.Interruptions != 0 || got.Crashes != 0 {
		f.Errorf("a yielded job = %+v, want nothing counted", got)
	}
	f.wantOrder("b a")
}

func settleRelease(f *fixture) {
	id := f.putAll("q", "a b")[0]
	f.settle(settlement(f.takeOne(), queue.VerbRelease), queue.StateReady)
	if got := f.get(id); got.Attempt != 0 || got.Interruptions != 1 || got.Crashes != 0 || got.LastError != nil {
		f.Errorf("a released job = %+v, want an interruption and nothing else counted", got)
	}
	f.wantOrder("a b")
}

func settleReleaseOrder(f *fixture) {
	f.putAll("q", "a b c d e")
	jobs := append(f.take(2), f.take(2)...)
	var all []queue.Settlement
	for _, i := range []int{2, 0, 3, 1} { // whatever the order of the arguments
		all = append(all, settlement(jobs[i], queue.VerbRelease))
	}
	for _, o := range f.settleAll(all...) {
		if o.Status != queue.SettleOK || o.State != queue.StateReady {
			f.Fatalf("release = %+v", o)
		}
	}
	f.wantOrder("a b c d e")
}

func settleCrash(f *fixture) {
	f.configure(queue.Scheduling{MaxCrashes: 2})
	id := f.putAll("q", "a b", maxAttempts(1))[0]
	f.settle(settlement(f.takeOne(), queue.VerbCrash), queue.StateReady)
	if got := f.get(id); got.Attempt != 0 || got.Crashes != 1 || got.LastError == nil || got.LastError.Message != "crash" {
		f.Errorf("a crashed job = %+v, want one crash, no attempt counted, and the error", got)
	}
	j := f.takeOne()
	if j.ID != id {
		f.Fatalf("after a crash %s is first, want the crashed job in front", j.Payload)
	}
	f.settle(settlement(j, queue.VerbCrash), queue.StateDead)
	got := f.wantState(id, queue.StateDead)
	if got.Crashes != 2 || got.Attempt != 0 || got.LastError == nil || *got.LastError != *queue.CrashBudgetSpent(2, failure("crash")) {
		f.Errorf("a job out of crashes = %+v, last error %+v", got, got.LastError)
	}
	f.wantOrder("b")
}

func settleMalformed(f *fixture) {
	ids := f.putAll("q", "a b c d e f")
	jobs := f.take(6)
	tooLong := settlement(jobs[0], queue.VerbAck)
	tooLong.Result = make([]byte, f.Limits.ResultBytes+1)
	unknown := settlement(jobs[1], "explode")
	early := settlement(jobs[2], queue.VerbNack)
	early.Delay = -time.Second
	late := settlement(jobs[3], queue.VerbDefer)
	late.Delay = queue.DelayMax + 1
	silent := settlement(jobs[4], queue.VerbNack)
	silent.Error = nil
	outcomes := f.settleAll(tooLong, unknown, early, late, silent, settlement(jobs[5], queue.VerbAck))
	for i, o := range outcomes[:5] {
		if o.Status != queue.SettleRejected {
			f.Errorf("malformed settlement %d = %+v, want rejected", i, o)
		}
		f.wantInvalid(fmt.Sprintf("settlement %d", i), o.Err)
		f.wantState(ids[i], queue.StateRunning) // and still its holder's
	}
	if outcomes[5].Status != queue.SettleOK {
		f.Errorf("the good settlement beside them = %+v", outcomes[5])
	}
	f.ack(jobs[:5]...)
}

func settleIndependent(f *fixture) {
	f.putAll("q", "a b c d")
	jobs := f.take(4)
	stale := settlement(jobs[1], queue.VerbAck)
	stale.Token += "0"
	outcomes := f.settleAll(settlement(jobs[0], queue.VerbAck), stale, settlement(jobs[2], queue.VerbYield),
		settlement(jobs[0], queue.VerbNack), settlement(jobs[3], queue.VerbRelease))
	want := []queue.SettleOutcome{
		{Status: queue.SettleOK, State: queue.StateSucceeded}, {Status: queue.SettleLeaseLost},
		{Status: queue.SettleOK, State: queue.StateReady}, {Status: queue.SettleLeaseLost},
		{Status: queue.SettleOK, State: queue.StateReady},
	}
	for i := range want {
		if outcomes[i] != want[i] {
			f.Errorf("outcome %d = %+v, want %+v", i, outcomes[i], want[i])
		}
	}
	f.wantOrder("d c")
	f.ack(jobs[1]) // a part-settled batch leaves the rest as it was
}

func settleRecords(f *fixture) {
	f.configure(queue.Scheduling{MaxCrashes: 10})
	id := f.put("q", "a", maxAttempts(10))
	steps := []struct {
		verb    queue.Verb
		attempt int
		outcome queue.AttemptOutcome
	}{
		{queue.VerbYield, 1, queue.AttemptDeferred}, {queue.VerbNack, 1, queue.AttemptFailed}, {queue.VerbRelease, 2, queue.AttemptInterrupted},
		{queue.VerbCrash, 2, queue.AttemptCrashed}, {queue.VerbDefer, 2, queue.AttemptDeferred}, {queue.VerbAck, 2, queue.AttemptSucceeded},
	}
	for _, s := range steps {
		j := f.takeOne()
		if j.Attempt != s.attempt {
			f.Errorf("before %s the running attempt is %d, want %d", s.verb, j.Attempt, s.attempt)
		}
		f.settleAll(settlement(j, s.verb))
	}
	got := f.get(id)
	if len(got.Attempts) != len(steps) {
		f.Fatalf("%d attempt records, want %d: %+v", len(got.Attempts), len(steps), got.Attempts)
	}
	for i, s := range steps {
		a := got.Attempts[i]
		failed := s.verb == queue.VerbNack || s.verb == queue.VerbCrash
		if a.Run != 1 || a.Attempt != s.attempt || a.Outcome != s.outcome || (a.Error != nil) != failed || a.Worker != "w1" {
			f.Errorf("record %d = %+v, want attempt %d %s", i, a, s.attempt, s.outcome)
		}
	}
	if got.LastError == nil || got.LastError.Message != "crash" {
		f.Errorf("last error = %+v, want that of the crash", got.LastError)
	}
}

func settleCap(f *fixture) {
	id := f.put("q", "a", maxAttempts(queue.MaxAttemptsMax))
	n := queue.AttemptsKept + 7
	for range n {
		f.settle(settlement(f.takeOne(), queue.VerbNack), queue.StateReady)
	}
	got := f.get(id)
	if got.Attempt != n || len(got.Attempts) != queue.AttemptsKept || got.Attempts[0].Attempt != 8 || got.Attempts[queue.AttemptsKept-1].Attempt != n {
		f.Errorf("after %d attempts: attempt %d with %d records from %d, want the last %d", n, got.Attempt, len(got.Attempts),
			got.Attempts[0].Attempt, queue.AttemptsKept)
	}
}

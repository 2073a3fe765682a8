package queuetest

import (
	"time"

	"github.com/taskhost/taskhost/queue"
)

func delayCases() []testCase {
	return []testCase{
		{name: "a delayed job is scheduled until it is due", run: delayWaits},
		{name: "due jobs enter at the tail by due time", run: delayOrder},
		{name: "a due job is promoted by Maintain", run: delayPromotion},
		{name: "case 038: a delay beyond many leases runs once", run: delayBeyondLeases},
		{name: "a part of a millisecond is rounded up", run: delayRounds},
	}
}

func delayWaits(f *fixture) {
	id := f.put("q", "later", delay(10*time.Second))
	j := f.wantState(id, queue.StateScheduled)
	if j.Reason != queue.ReasonDelay || !j.NextRunAt.Equal(j.CreatedAt.Add(10*time.Second)) {
		f.Errorf("a delayed job has reason %q and next run %s, want delay and %s", j.Reason, j.NextRunAt, j.CreatedAt.Add(10*time.Second))
	}
	f.wantOrder("")
	if r := f.pass(9999 * time.Millisecond); r.Promoted != 0 {
		f.Errorf("Maintain 1 ms early promoted %d", r.Promoted)
	}
	f.wantOrder("")
	if r := f.pass(time.Millisecond); r.Promoted != 1 {
		f.Errorf("Maintain on time promoted %d, want 1", r.Promoted)
	}
	j = f.wantState(id, queue.StateReady)
	if j.Reason != queue.ReasonNone || !j.NextRunAt.IsZero() {
		f.Errorf("a ready job has reason %q and next run %s", j.Reason, j.NextRunAt)
	}
	f.wantOrder("later")
}

func delayOrder(f *fixture) {
	f.put("q", "third", delay(3*time.Second))
	f.put("q", "first", delay(time.Second))
	f.put("q", "second-a", delay(2*time.Second))
	f.put("q", "second-b", delay(2*time.Second))
	f.put("q", "now")
	f.pass(5 * time.Second)
	f.put("q", "new")
	f.wantOrder("now first second-a second-b third new")
}

func delayPromotion(f *fixture) {
	f.put("q", "a", delay(time.Second))
	f.put("q", "b")
	f.Advance(time.Hour)
	f.wantOrder("b") // Reserve does not promote
	f.maintain()
	f.wantOrder("a")
}

func delayRounds(f *fixture) {
	id := f.put("q", "a", delay(1500*time.Microsecond))
	if j := f.get(id); !j.NextRunAt.Equal(j.CreatedAt.Add(2 * time.Millisecond)) {
		f.Errorf("1.5 ms of delay are due %s after creation, want 2ms", j.NextRunAt.Sub(j.CreatedAt))
	}
}

func delayBeyondLeases(f *fixture) {
	id := f.put("q", "a", delay(6*time.Hour))
	for range 6*60 - 1 { // two leases each
		f.pass(2 * lease)
		if jobs := f.take(1); len(jobs) != 0 {
			f.Fatalf("delivered %s before it was due", f.now().Sub(jobs[0].CreatedAt))
		}
	}
	f.pass(2 * lease)
	j := f.takeOne()
	f.ack(j)
	f.pass(10 * lease)
	f.wantOrder("")
	if got := f.get(id); got.Attempt != 1 || len(got.Attempts) != 1 || got.Crashes != 0 {
		f.Errorf("job = %+v, want one attempt", got)
	}
}

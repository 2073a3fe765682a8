package queuetest

import (
	"time"

	"github.com/taskhost/taskhost/queue"
)

func expiryCases() []testCase {
	return []testCase{
		{name: "swept by Maintain", run: expirySwept},
		{name: "dropped at the front without charge", run: expiryDropped},
		{name: "a started job does not expire", run: expiryStarted},
		{name: "a scheduled job expires rather than becoming due", run: expiryScheduled},
	}
}

func expirySwept(f *fixture) {
	id := f.put("q", "a", expires(time.Minute))
	if r := f.pass(time.Minute - time.Millisecond); r.Expired != 0 {
		f.Fatalf("expired %d jobs 1 ms early", r.Expired)
	}
	if r := f.pass(time.Millisecond); r.Expired != 1 {
		f.Fatalf("expired %d jobs, want 1", r.Expired)
	}
	got := f.wantState(id, queue.StateExpired)
	if got.FinishedAt.IsZero() || got.Attempt != 0 || len(got.Attempts) != 0 || got.LastError != nil {
		f.Errorf("an expired job = %+v, want an end and no attempt", got)
	}
	f.wantOrder("")
	if n := f.countDead(queue.DeadFilter{}); n != 0 {
		f.Errorf("%d dead: expired jobs are not dead letters", n)
	}
}

func expiryDropped(f *fixture) {
	for range 10 {
		f.put("a", "stale", expires(time.Second))
	}
	f.putN(30, "a")
	f.putN(30, "b")
	f.Advance(time.Minute)
	// The ten expired ones cost queue a nothing: shares are equal from the first pick on.
	got := f.picks(20)
	if count(got, "a") != 10 {
		f.Fatalf("a got %d of 20, want 10: dropped jobs are not charged (%v)", count(got, "a"), got)
	}
	r := f.books()
	if r.Counts[queue.StateExpired] != 10 || r.Counts[queue.StateRunning] != 20 {
		f.Errorf("counts = %v, want 10 expired by the picks and 20 running", r.Counts)
	}
	if info := f.info("a"); info.Served != 10 {
		f.Errorf("served of a = %d, want 10", info.Served)
	}
	if r := f.maintain(); r.Expired != 0 {
		f.Errorf("Maintain expired %d more", r.Expired)
	}
	// A queue of nothing but expired jobs gives nothing.
	f.put("c", "stale", expires(time.Second))
	f.Advance(time.Minute)
	if got := f.takeFrom(queue.View{Queues: []string{"c"}}, 5); len(got) != 0 {
		f.Errorf("an expired job was reserved: %+v", got[0])
	}
}

func expiryStarted(f *fixture) {
	id := f.put("q", "a", expires(time.Minute))
	j := f.takeOne()
	f.Advance(time.Second)
	s := settlement(j, queue.VerbNack)
	s.Delay = time.Hour
	f.settle(s, queue.StateScheduled)
	if r := f.pass(time.Hour); r.Expired != 0 || r.Promoted != 1 {
		f.Errorf("Maintain = %+v, want the retry promoted: the job had started in time", r)
	}
	f.wantState(id, queue.StateReady)
	f.wantOrder("a")
}

func expiryScheduled(f *fixture) {
	id := f.put("q", "a", expires(time.Second), delay(time.Second))
	if r := f.pass(time.Second); r.Expired != 1 || r.Promoted != 0 {
		f.Errorf("Maintain = %+v, want it expired", r)
	}
	if got := f.wantState(id, queue.StateExpired); !got.NextRunAt.IsZero() || got.Reason != queue.ReasonNone {
		f.Errorf("an expired job still has next run %s, reason %q", got.NextRunAt, got.Reason)
	}
}

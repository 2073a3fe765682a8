package queuetest

import (
	"bytes"
	"testing"
	"time"

	"github.com/taskhost/taskhost/queue"
)

func durabilityCases() []testCase {
	needs := queue.LimitationDurability
	return []testCase{
		{name: "everything survives a clean restart", run: durabilityReopen, needs: needs},
		{name: "what was acknowledged survives a crash", run: durabilityCrash, needs: needs},
		{name: "what ran in a crash comes back in front, counted", run: durabilityRunning, needs: needs},
		{name: "a crash loop ends in the dead letters", run: durabilityCrashLoop, needs: needs},
		{name: "released jobs count no crash", run: durabilityReleased, needs: needs},
		{name: "tokens of before the restart are stale", run: durabilityTokens, needs: needs},
	}
}

// restart brings the store back by one of the ways the backend has.
func (f *fixture) restart(how func(t *testing.T) queue.Queue) {
	f.Helper()
	if how == nil {
		f.Fatalf("%s promises durability, but its test cannot reopen it", f.Queue.Capabilities().Name)
	}
	f.use(how(f.T))
}

func durabilityReopen(f *fixture) {
	f.configure(queue.Scheduling{Retention: queue.Retention{Logs: queue.LogsOfAll}})
	done := f.put("q", "done")
	j := f.takeOne()
	f.log(j, "line")
	s := settlement(j, queue.VerbAck)
	s.Result = []byte("result\x00\xff")
	f.settle(s, queue.StateSucceeded)
	dead := f.put("q", "dead")
	f.bury(dead)
	ready := f.put("q", "ready", priority(3), idempotent("k"), unique(queue.Unique{Key: "u"}), func(s *queue.JobSpec) {
		s.Labels = map[string]string{"a": "b"}
		s.Headers = map[string]string{"c": "d"}
	})
	later := f.put("q", "later", delay(time.Hour))
	f.setQueue("acme", "q", weight(5))
	f.setQueue("acme", "held", paused(true))
	f.putRecord("k", "a", "value", 0)
	before := map[string]*queue.Job{}
	for _, id := range []string{done, dead, ready, later} {
		before[id] = f.get(id)
	}
	info := f.info("q")

	f.restart(f.Reopen)

	for id, want := range before {
		got := f.get(id)
		if g, w := describe(got), describe(want); g != w {
			f.Errorf("after the restart\n%s\nwant\n%s", g, w)
		}
	}
	if got := messages(f.logs(done, 0, 0)); got != "line" {
		f.Errorf("log after the restart = %q", got)
	}
	if got := f.info("q"); got.Weight != 5 || got.Ready != info.Ready || got.Scheduled != info.Scheduled || got.Dead != info.Dead || got.Served != info.Served {
		f.Errorf("queue after the restart = %+v, want %+v", got, info)
	}
	if got := f.info("held"); !got.Paused {
		f.Errorf("the pause of a queue was lost")
	}
	if r, err := f.records.GetRecord(f.ctx, "k", "a"); err != nil || !bytes.Equal(r.Value, []byte("value")) {
		f.Errorf("record after the restart = %+v, %v", r, err)
	}
	again := spec("q", "ready", priority(3), idempotent("k"), unique(queue.Unique{Key: "u"}), func(s *queue.JobSpec) {
		s.Labels = map[string]string{"a": "b"}
		s.Headers = map[string]string{"c": "d"}
	})
	f.wantDuplicate(f.try(again), ready)
	f.wantHeld(f.try(spec("q", "x", unique(queue.Unique{Key: "u"}))), ready, queue.StateReady)
	f.pass(time.Hour)
	f.wantOrder("ready later")
}

func durabilityCrash(f *fixture) {
	ids := f.putAll("q", "a b c d e")
	f.ack(f.takeOne())
	f.settle(settlement(f.takeOne(), queue.VerbDead), queue.StateDead)
	s := settlement(f.takeOne(), queue.VerbNack)
	s.Delay = time.Minute
	f.settle(s, queue.StateScheduled)
	f.restart(f.Crash)
	f.wantState(ids[0], queue.StateSucceeded)
	f.wantState(ids[1], queue.StateDead)
	f.wantState(ids[2], queue.StateScheduled)
	if r := f.books(); r.Enqueued != 5 {
		f.Errorf("audit = %+v, want 5 enqueued", r)
	}
	f.wantOrder("d e")
	f.pass(time.Minute) // also ends the two leases
	f.wantOrder("d e c")
}

func durabilityRunning(f *fixture) {
	ids := f.putAll("q", "a b c d")
	f.take(2)
	f.books() // an engine may write reservations late; a crash right now is the harder case for the count below
	f.restart(f.Crash)
	for _, id := range ids {
		f.wantState(id, queue.StateReady)
	}
	f.wantOrder("a b c d")
}

func durabilityCrashLoop(f *fixture) {
	id := f.put("q", "poison")
	for range queue.MaxCrashesDefault {
		f.pass(0)
		// From its queue alone: a store that keeps its fairness owes the other tenant a turn.
		if jobs := f.takeFrom(queue.View{Queues: []string{"q"}}, 1); len(jobs) != 1 || jobs[0].ID != id {
			f.Fatalf("reserved %s", labels(jobs))
		}
		f.put("elsewhere", "flush", tenant("other")) // a durable write after the reservation: it must not be lost before it
		f.restart(f.Crash)
	}
	got := f.wantState(id, queue.StateDead)
	if got.Crashes != queue.MaxCrashesDefault || got.LastError == nil || len(got.Attempts) != queue.MaxCrashesDefault {
		f.Errorf("the poison pill = %+v, want dead after %d crashes", got, queue.MaxCrashesDefault)
	}
}

func durabilityReleased(f *fixture) {
	ids := f.putAll("q", "a b")
	for _, j := range f.take(2) {
		f.settle(settlement(j, queue.VerbRelease), queue.StateReady)
	}
	f.restart(f.Reopen)
	for _, id := range ids {
		if got := f.get(id); got.Crashes != 0 || got.Interruptions != 1 || got.Attempt != 0 {
			f.Errorf("a released job after the restart = %+v, want one interruption only", got)
		}
	}
}

func durabilityTokens(f *fixture) {
	f.put("q", "a")
	old := f.takeOne()
	f.restart(f.Crash)
	f.wantLost(settlement(old, queue.VerbAck))
	if o := f.extend(old, lease); o.Status != queue.ExtendLost {
		f.Errorf("Extend with a token of before the restart = %+v, want lost", o)
	}
	j := f.takeOne()
	if j.Token == old.Token {
		f.Errorf("the token %q came back after the restart", j.Token)
	}
	f.ack(j)
}

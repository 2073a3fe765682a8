package queuetest

import (
	"time"

	"github.com/taskhost/taskhost/queue"
)

func retentionCases() []testCase {
	return []testCase{
		{name: "finished jobs go when their time is over", run: retentionAges},
		{name: "a negative age keeps none", run: retentionNone},
		{name: "dead jobs may be kept for ever", run: retentionDeadForever},
		{name: "the defaults", run: retentionDefaults},
		{name: "at most a number of them", run: retentionCount},
		{name: "a bound applies to what is there", run: retentionCountLater},
	}
}

// endings makes one job of each terminal state.
func (f *fixture) endings() map[queue.State]string {
	f.Helper()
	ids := map[queue.State]string{}
	ids[queue.StateSucceeded] = f.put("q", "succeeded")
	f.ack(f.takeOne())
	ids[queue.StateDead] = f.put("q", "dead")
	f.settle(settlement(f.takeOne(), queue.VerbDead), queue.StateDead)
	ids[queue.StateCancelled] = f.put("q", "cancelled")
	f.cancel(ids[queue.StateCancelled])
	ids[queue.StateExpired] = f.put("q", "expired", expires(time.Millisecond))
	f.Advance(time.Millisecond)
	f.wantOrder("") // dropped at the front
	return ids
}

func retentionAges(f *fixture) {
	f.configure(queue.Scheduling{Retention: queue.Retention{Succeeded: time.Minute, Dead: time.Hour}})
	ids := f.endings()
	if r := f.pass(50 * time.Second); r.Retained != 0 {
		f.Fatalf("retention removed %d jobs early", r.Retained)
	}
	if r := f.pass(10 * time.Second); r.Retained != 3 {
		f.Fatalf("retention removed %d jobs, want 3", r.Retained)
	}
	f.wantState(ids[queue.StateDead], queue.StateDead)
	for _, s := range []queue.State{queue.StateSucceeded, queue.StateCancelled, queue.StateExpired} {
		f.wantGone(ids[s])
	}
	if r := f.pass(time.Hour); r.Retained != 1 {
		f.Fatalf("retention removed %d jobs, want the dead one", r.Retained)
	}
	f.wantGone(ids[queue.StateDead])
	if r := f.books(); r.Removed != 4 || r.Enqueued != 4 {
		f.Errorf("audit = %+v, want 4 removed of 4", r)
	}
}

func retentionNone(f *fixture) {
	f.configure(queue.Scheduling{Retention: queue.Retention{Succeeded: -1}})
	ids := f.endings()
	f.wantState(ids[queue.StateDead], queue.StateDead)
	for _, s := range []queue.State{queue.StateSucceeded, queue.StateCancelled, queue.StateExpired} {
		f.wantGone(ids[s])
	}
	if r := f.maintain(); r.Retained != 0 {
		f.Errorf("Maintain removed %d jobs that should have gone at once", r.Retained)
	}
	if r := f.books(); r.Removed != 3 {
		f.Errorf("audit = %+v, want 3 removed", r)
	}
	if page := f.list(queue.JobFilter{}); len(page.Jobs) != 1 {
		f.Errorf("%d jobs listed, want the dead one", len(page.Jobs))
	}
}

func retentionDeadForever(f *fixture) {
	f.configure(queue.Scheduling{Retention: queue.Retention{Dead: -1}})
	id := f.put("q", "a")
	f.bury(id)
	f.pass(10 * queue.RetentionDeadDefault)
	f.wantState(id, queue.StateDead)
	f.configure(queue.Scheduling{Retention: queue.Retention{Dead: time.Hour}}) // applies to what is there
	if r := f.maintain(); r.Retained != 1 {
		f.Errorf("retention removed %d, want 1", r.Retained)
	}
}

func retentionDefaults(f *fixture) {
	done := f.put("q", "done")
	f.ack(f.takeOne())
	dead := f.put("q", "dead")
	f.bury(dead)
	f.pass(queue.RetentionSucceededDefault - time.Second)
	f.wantState(done, queue.StateSucceeded)
	f.pass(time.Second)
	f.wantGone(done)
	f.pass(queue.RetentionDeadDefault - queue.RetentionSucceededDefault - time.Second)
	f.wantState(dead, queue.StateDead)
	f.pass(time.Second)
	f.wantGone(dead)
}

func retentionCount(f *fixture) {
	f.configure(queue.Scheduling{Retention: queue.Retention{Count: 3}})
	var dead, done []string
	for i := range 3 {
		dead = append(dead, f.put("q", "dead"))
		f.bury(dead[i])
	}
	for range 5 {
		f.Advance(time.Second)
		done = append(done, f.put("q", "done"))
		f.ack(f.takeOne())
	}
	f.Advance(time.Second)
	cancelled := f.put("q", "cancelled")
	f.cancel(cancelled)
	if r := f.maintain(); r.Retained != 3 || r.Evicted != 3 {
		f.Errorf("maintenance = %+v, want the first 3 of 6 evicted", r)
	}
	for i, id := range done {
		if i < 3 {
			f.wantGone(id)
		} else {
			f.wantState(id, queue.StateSucceeded)
		}
	}
	f.wantState(cancelled, queue.StateCancelled)
	for _, id := range dead { // by age only, unless it is asked for
		f.wantState(id, queue.StateDead)
	}
	if r := f.maintain(); r.Retained != 0 {
		f.Errorf("maintenance = %+v, want nothing more to do", r)
	}
	// What leaves in another way makes room.
	if err := f.jobs.DeleteJob(f.ctx, "acme", cancelled); err != nil {
		f.Fatalf("DeleteJob: %v", err)
	}
	f.ack(f.takeNew("a"))
	if r := f.maintain(); r.Retained != 0 {
		f.Errorf("maintenance = %+v, want none: there are 3 again", r)
	}
	f.ack(f.takeNew("b"))
	if r := f.maintain(); r.Evicted != 1 {
		f.Errorf("maintenance = %+v, want one evicted", r)
	}
}

// takeNew makes a job and takes it.
func (f *fixture) takeNew(payload string) *queue.Job {
	f.Helper()
	f.Advance(time.Second)
	f.put("q", payload)
	return f.takeOne()
}

func retentionCountLater(f *fixture) {
	var dead []string
	for i := range 4 {
		f.Advance(time.Second)
		dead = append(dead, f.put("q", "dead"))
		f.bury(dead[i])
		f.ack(f.takeNew("done"))
	}
	f.replay(queue.DeadFilter{IDs: dead[:1]}, "other", 1)
	f.configure(queue.Scheduling{Retention: queue.Retention{DeadCount: 2, Count: 4}})
	if r := f.maintain(); r.Evicted != 1 {
		f.Errorf("maintenance = %+v, want the first of 3 dead jobs evicted", r)
	}
	f.wantGone(dead[1])
	f.wantState(dead[2], queue.StateDead)
	if n := f.info("q").Dead; n != 2 {
		f.Errorf("the queue has %d dead jobs, want 2", n)
	}
	f.configure(queue.Scheduling{})
	f.bury(dead[0])
	if r := f.maintain(); r.Retained != 0 {
		f.Errorf("maintenance = %+v without a bound", r)
	}
	err := f.configured.Configure(f.ctx, queue.Scheduling{Retention: queue.Retention{Count: -1}})
	f.wantInvalid("Configure with a negative count", err)
}

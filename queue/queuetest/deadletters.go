package queuetest

import (
	"bytes"
	"fmt"
	"time"

	"github.com/taskhost/taskhost/queue"
)

func deadCases() []testCase {
	return []testCase{
		{name: "case 066: a dead job is listed with all its attempts", run: deadListed},
		{name: "replay starts a new run at the tail", run: deadReplay},
		{name: "replay to another queue", run: deadReplayToQueue},
		{name: "replay in chunks, oldest first", run: deadReplayChunks},
		{name: "filters", run: deadFilters},
		{name: "purge", run: deadPurge},
		{name: "a job never started again by another tenant", run: deadTenant},
		{name: "replay skips a job whose unique key is held", run: deadUnique},
		{name: "a replayed job is not expired", run: deadExpiry},
		{name: "bad arguments are refused", run: deadBad},
	}
}

func (f *fixture) replay(d queue.DeadFilter, toQueue string, limit int) queue.DeadChunk {
	f.Helper()
	d.Tenant = "acme"
	c, err := f.dead.ReplayDead(f.ctx, d, toQueue, limit)
	if err != nil {
		f.Fatalf("ReplayDead: %v", err)
	}
	return c
}

func (f *fixture) purge(d queue.DeadFilter, limit int) queue.DeadChunk {
	f.Helper()
	d.Tenant = "acme"
	c, err := f.dead.PurgeDead(f.ctx, d, limit)
	if err != nil {
		f.Fatalf("PurgeDead: %v", err)
	}
	return c
}

func (f *fixture) countDead(d queue.DeadFilter) int {
	f.Helper()
	d.Tenant = "acme"
	n, err := f.dead.CountDead(f.ctx, d)
	if err != nil {
		f.Fatalf("CountDead: %v", err)
	}
	return n
}

func deadListed(f *fixture) {
	id := f.put("q", "a", maxAttempts(2))
	f.settle(settlement(f.takeOne(), queue.VerbNack), queue.StateReady)
	f.settle(settlement(f.takeOne(), queue.VerbNack), queue.StateDead)
	page, err := f.jobs.ListJobs(f.ctx, queue.JobFilter{Tenant: "acme", States: []queue.State{queue.StateDead}})
	if err != nil || len(page.Jobs) != 1 || page.Jobs[0].ID != id || page.Jobs[0].LastError == nil {
		f.Fatalf("dead jobs = %+v, %v, want %s with its last error", page.Jobs, err, id)
	}
	if got := f.get(id); len(got.Attempts) != 2 || got.Attempts[0].Error == nil || got.Attempts[1].Error == nil {
		f.Errorf("attempts = %+v, want both with their errors", got.Attempts)
	}
	if r := f.books(); r.Counts[queue.StateDead] != 1 || r.Enqueued != 1 {
		f.Errorf("audit = %+v, want one enqueued and dead", r)
	}
}

func deadReplay(f *fixture) {
	f.configure(queue.Scheduling{MaxCrashes: 5})
	s := spec("q", "", priority(2), maxAttempts(1))
	s.Payload = []byte("\x00exact\xff")
	id := f.created(f.try(s))
	j := f.takeOne()
	f.settle(settlement(j, queue.VerbCrash), queue.StateReady)
	f.settle(settlement(f.takeOne(), queue.VerbRelease), queue.StateReady)
	j = f.takeOne()
	if err := f.notes.PutCheckpoint(f.ctx, ref(j), []byte("half")); err != nil {
		f.Fatalf("PutCheckpoint: %v", err)
	}
	f.settle(settlement(j, queue.VerbNack), queue.StateDead)
	f.put("q", "other", priority(2))
	if c := f.replay(queue.DeadFilter{IDs: []string{id}}, "", 10); c.Changed != 1 || c.Skipped != 0 || !c.Done || c.Last != id {
		f.Fatalf("replay = %+v, want one changed, done, last %s", c, id)
	}
	got := f.wantState(id, queue.StateReady)
	if got.Run != 2 || got.Attempt != 0 || got.Crashes != 0 || got.Interruptions != 0 || !got.FinishedAt.IsZero() ||
		got.Priority != 2 || len(got.Attempts) != 3 || got.Checkpoint != nil || got.LastError == nil {
		f.Errorf("a replayed job = %+v, want a fresh run 2 with its history", got)
	}
	first := f.takeOne()
	if string(first.Payload) != "other" {
		f.Errorf("%q is first after a replay, want the other: the tail", first.Payload)
	}
	again := f.takeOne()
	if again.ID != id || again.Run != 2 || again.Attempt != 1 || !bytes.Equal(again.Payload, s.Payload) {
		f.Errorf("redelivered %+v, want run 2, attempt 1, the same payload", again)
	}
	f.wantLost(settlement(j, queue.VerbAck)) // a token of the old run
	f.settle(settlement(again, queue.VerbNack), queue.StateDead)
	if got := f.get(id); got.Attempts[3].Run != 2 || got.Attempts[3].Attempt != 1 {
		f.Errorf("record of the new run = %+v", got.Attempts[3])
	}
}

func deadReplayToQueue(f *fixture) {
	id := f.put("q", "a")
	f.bury(id)
	if c := f.replay(queue.DeadFilter{}, "low", 10); c.Changed != 1 {
		f.Fatalf("replay = %+v", c)
	}
	if got := f.get(id); got.Queue != "low" || got.ID != id {
		f.Errorf("the job is in queue %q, want low", got.Queue)
	}
	if got := f.takeFrom(queue.View{Queues: []string{"q"}}, 1); len(got) != 0 {
		f.Errorf("the old queue still gave it")
	}
	got := f.takeFrom(queue.View{Queues: []string{"low"}}, 1)
	if len(got) != 1 || got[0].ID != id {
		f.Fatalf("the new queue gave %v", got)
	}
	f.ack(got[0])
	if low, q := f.info("low"), f.info("q"); low.Served != 1 || q.Served != 1 || q.Dead != 0 {
		f.Errorf("queues = %+v and %+v, want one served in each and none dead", low, q)
	}
}

func deadReplayChunks(f *fixture) {
	ids := f.putAll("q", "a b c d e")
	jobs := f.take(5)
	for i := range jobs { // buried in the opposite order: age is that of the job
		f.settle(settlement(jobs[len(jobs)-1-i], queue.VerbDead), queue.StateDead)
		f.Advance(time.Second)
	}
	if n := f.countDead(queue.DeadFilter{}); n != 5 {
		f.Fatalf("CountDead = %d, want 5", n)
	}
	c := f.replay(queue.DeadFilter{}, "", 2)
	if c.Changed != 2 || c.Done || c.Last != ids[1] {
		f.Fatalf("first chunk = %+v, want two up to %s and more left", c, ids[1])
	}
	c = f.replay(queue.DeadFilter{After: c.Last}, "", 3)
	if c.Changed != 3 || !c.Done || c.Last != ids[4] {
		f.Fatalf("second chunk = %+v, want three up to %s and done", c, ids[4])
	}
	if c = f.replay(queue.DeadFilter{After: c.Last}, "", 3); c.Changed != 0 || !c.Done || c.Last != ids[4] {
		f.Fatalf("an empty chunk = %+v, want done with the same last id", c)
	}
	f.wantOrder("a b c d e")
}

func deadFilters(f *fixture) {
	var ids []string
	for i, s := range []struct{ queue, kind, message string }{
		{"q1", "resize", "bad width 1"}, {"q1", "mail", "bad width 22"}, {"q2", "resize", "refused"},
	} {
		job := spec(s.queue, fmt.Sprint(i))
		job.Type = s.kind
		ids = append(ids, f.created(f.try(job)))
		st := settlement(f.takeOne(), queue.VerbDead)
		st.Error = failure(s.message)
		f.settle(st, queue.StateDead)
		f.Advance(time.Minute)
	}
	f.put("q1", "alive")
	width := queue.ErrorFingerprint(failure("bad width 7"))
	cases := []struct {
		filter queue.DeadFilter
		want   int
	}{
		{queue.DeadFilter{}, 3},
		{queue.DeadFilter{Queue: "q1"}, 2},
		{queue.DeadFilter{Type: "resize"}, 2},
		{queue.DeadFilter{Queue: "q1", Type: "resize"}, 1},
		{queue.DeadFilter{ErrorFingerprint: width}, 2},
		{queue.DeadFilter{ErrorFingerprint: "00000000"}, 0},
		{queue.DeadFilter{IDs: []string{ids[2], ids[0], "job_unknown"}}, 2},
		{queue.DeadFilter{IDs: []string{ids[2]}, Queue: "q1"}, 0},
		{queue.DeadFilter{DeadBefore: f.get(ids[1]).FinishedAt}, 1},
		{queue.DeadFilter{DeadBefore: f.get(ids[1]).FinishedAt.Add(time.Millisecond)}, 2},
		{queue.DeadFilter{After: ids[0]}, 2},
		{queue.DeadFilter{Queue: "never"}, 0},
	}
	for _, c := range cases {
		if got := f.countDead(c.filter); got != c.want {
			f.Errorf("CountDead(%+v) = %d, want %d", c.filter, got, c.want)
		}
	}
	if c := f.purge(queue.DeadFilter{ErrorFingerprint: width, Queue: "q1", Type: "mail"}, 10); c.Changed != 1 {
		f.Errorf("purge by filter = %+v, want one", c)
	}
	f.wantGone(ids[1])
	f.wantState(ids[0], queue.StateDead)
}

func deadPurge(f *fixture) {
	ids := f.putAll("q", "a b c d")
	for _, id := range ids[:3] {
		f.bury(id)
	}
	if c := f.purge(queue.DeadFilter{}, 2); c.Changed != 2 || c.Done || c.Last != ids[1] {
		f.Fatalf("first chunk = %+v", c)
	}
	if c := f.purge(queue.DeadFilter{}, 2); c.Changed != 1 || !c.Done {
		f.Fatalf("second chunk = %+v", c)
	}
	for _, id := range ids[:3] {
		f.wantGone(id)
	}
	f.wantState(ids[3], queue.StateReady)
	if r := f.books(); r.Removed != 3 || r.Enqueued != 4 {
		f.Errorf("audit = %+v, want 3 removed of 4", r)
	}
}

func deadTenant(f *fixture) {
	id := f.put("q", "a")
	f.bury(id)
	other := queue.DeadFilter{Tenant: "other", IDs: []string{id}}
	if n, err := f.dead.CountDead(f.ctx, other); n != 0 || err != nil {
		f.Errorf("CountDead of another tenant = %d, %v", n, err)
	}
	if c, err := f.dead.ReplayDead(f.ctx, other, "", 10); c.Changed != 0 || !c.Done || err != nil {
		f.Errorf("ReplayDead of another tenant = %+v, %v", c, err)
	}
	if c, err := f.dead.PurgeDead(f.ctx, other, 10); c.Changed != 0 || err != nil {
		f.Errorf("PurgeDead of another tenant = %+v, %v", c, err)
	}
	f.wantState(id, queue.StateDead)
}

func deadUnique(f *fixture) {
	key := unique(queue.Unique{Key: "u"})
	id := f.put("q", "a", key)
	f.bury(id)
	holder := f.put("q", "b", key) // a dead job does not hold its key
	if c := f.replay(queue.DeadFilter{}, "", 10); c.Changed != 0 || c.Skipped != 1 || !c.Done || c.Last != id {
		f.Fatalf("replay beside a holder = %+v, want it skipped", c)
	}
	f.wantState(id, queue.StateDead)
	f.ack(f.takeOne())
	f.wantState(holder, queue.StateSucceeded)
	if c := f.replay(queue.DeadFilter{}, "", 10); c.Changed != 1 {
		f.Fatalf("replay when the key is free = %+v", c)
	}
	if o := f.try(spec("q", "c", key)); o.Status != queue.EnqueueRejected {
		f.Errorf("enqueue beside the replayed job = %+v, want rejected: replay takes the key again", o)
	}
}

func deadExpiry(f *fixture) {
	id := f.put("q", "a", expires(time.Minute))
	f.bury(id)
	f.pass(time.Hour)
	f.replay(queue.DeadFilter{}, "", 1)
	if r := f.maintain(); r.Expired != 0 {
		f.Errorf("Maintain expired the replayed job: it had started in time")
	}
	f.wantOrder("a")
}

func deadBad(f *fixture) {
	_, err := f.dead.CountDead(f.ctx, queue.DeadFilter{})
	f.wantInvalid("CountDead without tenant", err)
	_, err = f.dead.ReplayDead(f.ctx, queue.DeadFilter{Tenant: "acme"}, "", 0)
	f.wantInvalid("ReplayDead with limit 0", err)
	_, err = f.dead.ReplayDead(f.ctx, queue.DeadFilter{Tenant: "acme"}, "a b", 1)
	f.wantInvalid("ReplayDead to a bad queue", err)
	_, err = f.dead.PurgeDead(f.ctx, queue.DeadFilter{Tenant: "acme"}, -1)
	f.wantInvalid("PurgeDead with limit -1", err)
	_, err = f.dead.PurgeDead(f.ctx, queue.DeadFilter{Tenant: "acme", After: "x"}, 1)
	f.wantInvalid("PurgeDead after nonsense", err)
}

package queuetest

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/taskhost/taskhost/queue"
)

// patience is how long a case waits for an event that must come.
const patience = 10 * time.Second

var errGaveUp = errors.New("gave up")

func waitingCases() []testCase {
	return []testCase{
		{name: "wait returns at once when something is ready", run: waitReady},
		{name: "what makes a job ready wakes", run: waitWakes},
		{name: "nothing to take does not wake", run: waitSleeps},
		{name: "wait ends with the context's cause", run: waitCause},
		{name: "due work wakes its waiter", run: waitDue},
		{name: "the passing of time wakes its waiter", run: waitDueTime},
		{name: "close ends every wait and call", run: waitClose},
		{name: "a context that has ended ends every call", run: waitEndedContext},
	}
}

// probe is a context that tells when somebody asks how it ends: a call that is about to block has to.
type probe struct {
	context.Context
	asked chan struct{}
	once  sync.Once
}

func (p *probe) Done() <-chan struct{} {
	p.once.Do(func() { close(p.asked) })
	return p.Context.Done()
}

// start runs a blocking call and returns once it has looked at the store and is about to block, or has returned. (A store
// that asks for the end of its context before it looks is held to less: what follows then may come before its look.)
func (f *fixture) start(ctx context.Context, run func(context.Context) error) <-chan error {
	f.Helper()
	done, returned := make(chan error, 1), make(chan struct{})
	p := &probe{Context: ctx, asked: make(chan struct{})}
	go func() {
		done <- run(p)
		close(returned)
	}()
	select {
	case <-p.asked:
	case <-returned:
	case <-time.After(patience):
		f.Fatalf("a call neither returns nor watches its context")
	}
	return done
}

func (f *fixture) wait(v queue.View) <-chan error {
	f.Helper()
	return f.start(f.ctx, func(ctx context.Context) error { return f.Queue.Wait(ctx, v) })
}

func (f *fixture) waitDue() <-chan error {
	f.Helper()
	return f.start(f.ctx, f.Queue.WaitDue)
}

// ended waits for a call that must end, and compares its error.
func (f *fixture) ended(what string, done <-chan error, want error) {
	f.Helper()
	select {
	case err := <-done:
		if !errors.Is(err, want) {
			f.Fatalf("%s returned %v, want %v", what, err, want)
		}
	case <-time.After(patience):
		f.Fatalf("%s still blocks after %s", what, patience)
	}
}

func waitReady(f *fixture) {
	f.put("q", "a")
	for _, v := range []queue.View{{}, {Queues: []string{"q"}}, {Queues: []string{"x", "q"}}} {
		f.ended("Wait", f.wait(v), nil)
	}
}

func waitWakes(f *fixture) {
	var j *queue.Job
	take := func() { j = f.takeOne() }
	steps := []struct {
		name string
		do   func()
	}{
		{"enqueue", func() { f.put("q", "a", maxAttempts(50)) }},
		{"release", func() { f.settle(settlement(j, queue.VerbRelease), queue.StateReady) }},
		{"yield", func() { f.settle(settlement(j, queue.VerbYield), queue.StateReady) }},
		{"nack", func() { f.settle(settlement(j, queue.VerbNack), queue.StateReady) }},
		{"crash", func() { f.settle(settlement(j, queue.VerbCrash), queue.StateReady) }},
		{"reap", func() { f.pass(lease) }},
		{"promotion", func() {
			s := settlement(j, queue.VerbDefer)
			s.Delay = time.Second
			f.settle(s, queue.StateScheduled)
			f.pass(time.Second)
		}},
		{"replay", func() {
			f.settle(settlement(j, queue.VerbDead), queue.StateDead)
			f.replay(queue.DeadFilter{}, "", 1)
		}},
		{"resume", func() {
			f.setQueue("acme", "q", paused(true))
			f.settle(settlement(j, queue.VerbRelease), queue.StateReady)
			f.setQueue("acme", "q", paused(false))
		}},
		{"configure", func() {
			f.configure(queue.Scheduling{Queues: map[string]queue.QueueSettings{"q": {Paused: ptr(true)}}})
			f.settle(settlement(j, queue.VerbRelease), queue.StateReady)
			f.configure(queue.Scheduling{})
		}},
	}
	for _, s := range steps {
		all := f.wait(queue.View{})
		named := f.wait(queue.View{Queues: []string{"q", "r"}})
		s.do()
		f.ended("Wait after "+s.name, all, nil)
		f.ended("Wait on a named view after "+s.name, named, nil)
		take()
	}
}

func waitSleeps(f *fixture) {
	f.setQueue("acme", "held", paused(true))
	ctx, cancel := context.WithCancelCause(f.ctx)
	done := f.start(ctx, func(ctx context.Context) error { return f.Queue.Wait(ctx, queue.View{Queues: []string{"q", "held"}}) })
	f.put("elsewhere", "a")
	f.put("held", "b")
	f.put("q", "c", delay(time.Hour))
	f.takeOne()
	f.maintain()
	cancel(errGaveUp)
	f.ended("Wait on a view without work", done, errGaveUp)
}

func waitCause(f *fixture) {
	for what, run := range map[string]func(context.Context) error{
		"Wait":    func(ctx context.Context) error { return f.Queue.Wait(ctx, queue.View{}) },
		"WaitDue": f.Queue.WaitDue,
	} {
		ctx, cancel := context.WithCancelCause(f.ctx)
		done := f.start(ctx, run)
		cancel(errGaveUp)
		f.ended(what, done, errGaveUp)
	}
}

func waitDue(f *fixture) {
	f.put("q", "a", delay(time.Second))
	f.Advance(time.Second)
	f.ended("WaitDue with a due job", f.waitDue(), nil)
	f.maintain()
	f.takeOne()
	f.Advance(lease)
	f.ended("WaitDue with an ended lease", f.waitDue(), nil)
}

func waitDueTime(f *fixture) {
	wake := func(what string, d time.Duration) queue.MaintainReport {
		f.Helper()
		done := f.waitDue()
		f.Advance(d)
		f.ended("WaitDue for "+what, done, nil)
		return f.maintain()
	}
	f.configure(queue.Scheduling{Retention: queue.Retention{Succeeded: time.Minute}})
	f.put("q", "later", delay(10*time.Second))
	f.put("q", "sooner", delay(2*time.Second))
	if r := wake("the first due job", 2*time.Second); r.Promoted != 1 {
		f.Fatalf("Maintain = %+v, want the sooner job promoted", r)
	}
	f.takeOne()
	if r := wake("the second due job", 8*time.Second); r.Promoted != 1 {
		f.Fatalf("Maintain = %+v, want the later job promoted", r)
	}
	j := f.takeOne()
	if r := wake("the end of a lease", lease-8*time.Second); r.Reaped != 1 {
		f.Fatalf("Maintain = %+v, want a lease reaped", r)
	}
	f.ack(j, f.takeOne())
	f.put("q", "expires", expires(5*time.Second))
	if r := wake("an expiry", 5*time.Second); r.Expired != 1 {
		f.Fatalf("Maintain = %+v, want a job expired", r)
	}
	if r := wake("retention", time.Minute); r.Retained != 3 {
		f.Fatalf("Maintain = %+v, want three finished jobs removed", r)
	}
}

func waitClose(f *fixture) {
	id := f.put("q", "a")
	w, err := f.jobs.WatchJob(f.ctx, "acme", id)
	if err != nil {
		f.Fatalf("WatchJob: %v", err)
	}
	j := f.takeOne()
	wait := f.wait(queue.View{})
	due := f.waitDue()
	if err := f.Queue.Close(); err != nil {
		f.Fatalf("Close: %v", err)
	}
	if err := f.Queue.Close(); err != nil {
		f.Fatalf("the second Close: %v", err)
	}
	f.ended("Wait", wait, queue.ErrClosed)
	f.ended("WaitDue", due, queue.ErrClosed)
	deadline := time.After(patience)
	for open := true; open; {
		select {
		case _, open = <-w.C:
		case <-deadline:
			f.Fatalf("the watch is still open after Close")
		}
	}
	w.Stop()
	f.everyCall(f.ctx, j, queue.ErrClosed)
}

func waitEndedContext(f *fixture) {
	f.put("q", "a", maxAttempts(9))
	j := f.takeOne()
	ctx, cancel := context.WithCancelCause(f.ctx)
	cancel(errGaveUp)
	f.everyCall(ctx, j, errGaveUp)
	f.wantState(j.ID, queue.StateRunning)
	if r := f.books(); r.Enqueued != 1 {
		f.Errorf("%d jobs were enqueued, want 1", r.Enqueued)
	}
}

// everyCall makes each call once and compares its error.
func (f *fixture) everyCall(ctx context.Context, j *queue.Job, want error) {
	f.Helper()
	q := f.Queue
	filter := queue.DeadFilter{Tenant: "acme"}
	second := func(_ any, err error) error { return err }
	for what, err := range map[string]error{
		"Enqueue":       second(q.Enqueue(ctx, []queue.JobSpec{spec("q", "b")})),
		"Reserve":       second(q.Reserve(ctx, queue.ReserveParams{Max: 1, Lease: lease})),
		"Wait":          q.Wait(ctx, queue.View{}),
		"Settle":        second(q.Settle(ctx, []queue.Settlement{settlement(j, queue.VerbAck)})),
		"Extend":        second(q.Extend(ctx, []queue.Ref{ref(j)}, lease)),
		"Maintain":      second(q.Maintain(ctx)),
		"WaitDue":       q.WaitDue(ctx),
		"Now":           second(q.Now(ctx)),
		"GetJob":        second(f.jobs.GetJob(ctx, "acme", j.ID)),
		"ListJobs":      second(f.jobs.ListJobs(ctx, queue.JobFilter{Tenant: "acme"})),
		"CancelJob":     second(f.jobs.CancelJob(ctx, "acme", j.ID)),
		"DeleteJob":     f.jobs.DeleteJob(ctx, "acme", j.ID),
		"WatchJob":      second(f.jobs.WatchJob(ctx, "acme", j.ID)),
		"SetProgress":   f.notes.SetProgress(ctx, ref(j), queue.Progress{}),
		"AppendLogs":    f.notes.AppendLogs(ctx, ref(j), nil),
		"PutCheckpoint": f.notes.PutCheckpoint(ctx, ref(j), nil),
		"JobLogs":       second(f.notes.JobLogs(ctx, "acme", j.ID, 0, 0)),
		"ListQueues":    second(f.queues.ListQueues(ctx, "acme")),
		"GetQueue":      second(f.queues.GetQueue(ctx, "acme", "q")),
		"SetQueue":      second(f.queues.SetQueue(ctx, "acme", "q", weight(1))),
		"Configure":     f.configured.Configure(ctx, queue.Scheduling{}),
		"CountDead":     second(f.dead.CountDead(ctx, filter)),
		"ReplayDead":    second(f.dead.ReplayDead(ctx, filter, "", 1)),
		"PurgeDead":     second(f.dead.PurgeDead(ctx, filter, 1)),
		"AcquireLease":  second(f.leaser.AcquireLease(ctx, "n", "h", lease)),
		"ReleaseLease":  f.leaser.ReleaseLease(ctx, "n", "h"),
		"GetRecord":     second(f.records.GetRecord(ctx, "k", "a")),
		"PutRecord":     second(f.records.PutRecord(ctx, "k", "a", nil, 0)),
		"DeleteRecord":  f.records.DeleteRecord(ctx, "k", "a"),
		"ListRecords":   second(f.records.ListRecords(ctx, "k", "", "", 0)),
		"Audit":         second(f.auditor.Audit(ctx)),
	} {
		if !errors.Is(err, want) {
			f.Errorf("%s returned %v, want %v", what, err, want)
		}
	}
}

package queuetest

import (
	"regexp"
	"time"

	"github.com/taskhost/taskhost/queue"
)

func leaseCases() []testCase {
	return []testCase{
		{name: "a reserved job is running under a lease", run: leaseFields},
		{name: "one token per batch, unguessable", run: leaseTokens},
		{name: "a running job is not given twice", run: leaseOnce},
		{name: "case 037: extend renews from now", run: leaseExtend},
		{name: "extend with a stale token is lost", run: leaseExtendLost},
		{name: "an ended lease is its holder's until the reaper acts", run: leaseEnded},
		{name: "case 036: a stale token changes nothing", run: leaseFencing},
		{name: "a token of another job of the batch does not fit a stranger", run: leaseForeignToken},
		{name: "bad leases are refused", run: leaseBad},
	}
}

func leaseFields(f *fixture) {
	id := f.put("q", "a")
	now := f.now()
	jobs, err := f.Queue.Reserve(f.ctx, queue.ReserveParams{Worker: "host-7", Max: 1, Lease: time.Minute})
	if err != nil || len(jobs) != 1 {
		f.Fatalf("Reserve = %v, %v", jobs, err)
	}
	j := f.wantState(id, queue.StateRunning)
	for what, got := range map[string]*queue.Job{"Reserve": jobs[0], "GetJob": j} {
		if got.State != queue.StateRunning || got.Attempt != 1 || got.Worker != "host-7" || got.StartedAt.Before(now) ||
			!got.LeaseUntil.Equal(got.StartedAt.Add(time.Minute)) {
			f.Errorf("%s: %+v, want attempt 1 of host-7 under a lease of 1m", what, got)
		}
	}
	if j.Token != "" || jobs[0].Token == "" {
		f.Errorf("token is %q in GetJob and %q in Reserve: it belongs only to whom reserved", j.Token, jobs[0].Token)
	}
	if info := f.info("q"); info.Running != 1 || info.Ready != 0 || info.Served != 1 {
		f.Errorf("queue = %+v, want one running, served 1", info)
	}
}

func leaseTokens(f *fixture) {
	f.putN(6, "q")
	first, second := f.take(3), f.take(3)
	form := regexp.MustCompile(`^[0-9]+-[0-9a-f]{32}$`)
	for _, batch := range [][]*queue.Job{first, second} {
		for _, j := range batch {
			if j.Token != batch[0].Token || !form.MatchString(string(j.Token)) {
				f.Errorf("token %q in a batch of %q, want one per batch: an epoch and 128 bits in hex", j.Token, batch[0].Token)
			}
		}
	}
	if first[0].Token == second[0].Token {
		f.Errorf("two batches share the token %q", first[0].Token)
	}
}

func leaseOnce(f *fixture) {
	f.putN(3, "q")
	f.take(3)
	f.wantOrder("")
	f.pass(lease - time.Millisecond)
	f.wantOrder("")
}

func leaseExtend(f *fixture) {
	id := f.put("q", "a")
	j := f.takeOne()
	for range 10 { // ten times the lease, always in time
		f.pass(lease / 2)
		o := f.extend(j, lease)
		if want := f.get(id).LeaseUntil; o.Status != queue.ExtendOK || !o.Until.Equal(want) || want.Before(f.now().Add(lease-time.Second)) {
			f.Fatalf("Extend = %+v, want ok until %s, a lease from now %s", o, want, f.now())
		}
	}
	if r := f.pass(lease - time.Second); r.Reaped != 0 {
		f.Fatalf("%d extended leases were reaped", r.Reaped)
	}
	if got := f.get(id); got.Attempt != 1 || got.Crashes != 0 {
		f.Errorf("job = %+v, want one attempt and no crash", got)
	}
	f.ack(j)
}

func leaseExtendLost(f *fixture) {
	f.put("q", "a")
	j := f.takeOne()
	wrong := *j
	wrong.Token = "1-00000000000000000000000000000000"
	if o := f.extend(&wrong, lease); o.Status != queue.ExtendLost || !o.Until.IsZero() {
		f.Errorf("Extend with a wrong token = %+v, want lost", o)
	}
	f.ack(j)
	if o := f.extend(j, lease); o.Status != queue.ExtendLost {
		f.Errorf("Extend after settle = %+v, want lost", o)
	}
	outcomes, err := f.Queue.Extend(f.ctx, []queue.Ref{{ID: "job_nonsense", Token: j.Token}, {}}, lease)
	if err != nil || outcomes[0].Status != queue.ExtendLost || outcomes[1].Status != queue.ExtendLost {
		f.Errorf("Extend of unknown jobs = %+v, %v, want lost", outcomes, err)
	}
}

func leaseEnded(f *fixture) {
	f.putAll("q", "a b")
	jobs := f.take(2)
	f.Advance(2 * lease)
	if o := f.extend(jobs[0], lease); o.Status != queue.ExtendOK {
		f.Errorf("Extend of an ended, unreaped lease = %+v, want ok: nobody else has the job", o)
	}
	f.ack(jobs[1])
	if r := f.maintain(); r.Reaped != 0 {
		f.Errorf("%d leases reaped, want 0: one was renewed, one settled", r.Reaped)
	}
	f.ack(jobs[0])
}

func leaseFencing(f *fixture) {
	id := f.put("q", "a", maxAttempts(10))
	old := f.takeOne()
	f.pass(lease)
	current := f.takeOne()
	if current.ID != id || current.Token == old.Token {
		f.Fatalf("redelivered %s with token %q (before: %q)", current.ID, current.Token, old.Token)
	}
	before := f.get(id)
	for _, v := range []queue.Verb{queue.VerbAck, queue.VerbNack, queue.VerbDead, queue.VerbDefer, queue.VerbYield, queue.VerbRelease, queue.VerbCrash} {
		f.wantLost(settlement(old, v))
	}
	if o := f.extend(old, time.Hour); o.Status != queue.ExtendLost {
		f.Errorf("Extend with the old token = %+v", o)
	}
	after := f.get(id)
	if after.State != queue.StateRunning || after.Attempt != before.Attempt || after.Crashes != before.Crashes ||
		len(after.Attempts) != len(before.Attempts) || !after.LeaseUntil.Equal(before.LeaseUntil) {
		f.Errorf("stale calls changed the job from %+v to %+v", before, after)
	}
	f.ack(current)
	f.wantLost(settlement(current, queue.VerbAck)) // the second of the same
	f.wantLost(settlement(old, queue.VerbNack))
	f.wantState(id, queue.StateSucceeded)
}

func leaseForeignToken(f *fixture) {
	f.putAll("q", "a b")
	a, b := f.takeOne(), f.takeOne()
	crossed := settlement(a, queue.VerbAck)
	crossed.Token = b.Token
	f.wantLost(crossed)
	crossed.Token = ""
	f.wantLost(crossed)
	f.wantState(a.ID, queue.StateRunning)
	waiting := f.put("q", "c")
	f.wantLost(queue.Settlement{Ref: queue.Ref{ID: waiting}, Verb: queue.VerbAck})
	f.wantLost(queue.Settlement{Ref: queue.Ref{ID: "job_01kb0000000000000000000000", Token: a.Token}, Verb: queue.VerbAck})
}

func leaseBad(f *fixture) {
	f.put("q", "a")
	j := f.takeOne()
	for _, d := range []time.Duration{0, -time.Second, 9 * time.Millisecond, queue.LeaseMax + 1} {
		_, err := f.Queue.Extend(f.ctx, []queue.Ref{ref(j)}, d)
		f.wantInvalid("Extend by "+d.String(), err)
	}
}

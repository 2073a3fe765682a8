package queuetest

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"time"

	"github.com/taskhost/taskhost/queue"
)

func limitsCases() []testCase {
	return []testCase{
		{name: "case 023: a cap on the slow queue leaves room for the urgent one", run: limitsRoom},
		{name: "case 026: a cap of a tenant is never exceeded and is reached", run: limitsNever},
		{name: "case 026: caps hold after a crash", run: limitsCrash, needs: queue.LimitationDurability},
		{name: "a queue's cap holds in one batch and over all views", run: limitsQueueCap},
		{name: "what ends a run frees its place", run: limitsFreed},
		{name: "a cap that changes applies at once", run: limitsCapChange},
		{name: "a tenant's cap holds over its queues", run: limitsTenantCap},
		{name: "a capped queue gets no credit", run: limitsNoCredit},
		{name: "a capped tenant gets no credit", run: limitsTenantNoCredit},
		{name: "a rate lets through what it says", run: limitsRate},
		{name: "a rate in a batch, whatever becomes of the jobs", run: limitsRateBatch},
		{name: "a rate that changes begins anew", run: limitsRateChange},
		{name: "a rate wakes who waits at its time", run: limitsRateWakes},
		{name: "what is held back does not wake", run: limitsSleep},
		{name: "what frees a place wakes", run: limitsWake},
		{name: "why a queue is held back", run: limitsWhy},
		{name: "settings of limits", run: limitsSettings},
		{name: "bad limits are refused and change nothing", run: limitsBad},
		{name: "limits survive a restart", run: limitsReopen, needs: queue.LimitationDurability},
	}
}

func maxRunning(n int) queue.QueueChange {
	return queue.QueueChange{Set: queue.QueueSettings{MaxRunning: &n}}
}

func rate(text string) queue.QueueChange {
	r, err := queue.ParseRate(text)
	if err != nil {
		panic(err)
	}
	return queue.QueueChange{Set: queue.QueueSettings{Rate: &r}}
}

// wantTaken reserves up to n jobs and compares how many there were.
func (f *fixture) wantTaken(n, want int) []*queue.Job {
	f.Helper()
	jobs := f.take(n)
	if len(jobs) != want {
		f.Fatalf("Reserve of %d jobs returned %d (%s), want %d", n, len(jobs), labels(jobs), want)
	}
	return jobs
}

func limitsRoom(f *fixture) {
	const concurrency = 10
	f.setQueue("acme", "low", maxRunning(7))
	f.putN(20, "low")
	slow := f.wantTaken(concurrency, 7)
	f.putN(100, "critical", priority(5))
	urgent := f.wantTaken(concurrency-len(slow), 3)
	for _, j := range urgent {
		if j.Queue != "critical" {
			f.Fatalf("the free places went to %s, want critical", j.Queue)
		}
	}
	f.ack(urgent...)
	f.wantTaken(3, 3)
}

func limitsNever(f *fixture) {
	const limit, workers, rounds, perRound = 2, 20, 4, 60
	f.configure(queue.Scheduling{Tenants: map[string]queue.TenantSettings{"acme": {MaxRunning: ptr(limit)}}})
	for i := range 4 {
		f.putN(rounds*perRound, fmt.Sprintf("q%d", i), maxAttempts(50))
	}
	for range rounds { // a cold start of all workers in each
		var live, most, acked atomic.Int64
		ctx, stop := context.WithCancel(f.ctx)
		group(workers, func(w int) {
			for f.Queue.Wait(ctx, queue.View{}) == nil {
				got, err := f.Queue.Reserve(f.ctx, queue.ReserveParams{Worker: fmt.Sprint(w), Max: 1 + w%3, Lease: lease})
				if err != nil {
					f.Errorf("Reserve: %v", err)
					return
				}
				now := live.Add(int64(len(got)))
				for had := most.Load(); now > had && !most.CompareAndSwap(had, now); had = most.Load() {
				}
				for i, j := range got {
					verb := queue.VerbAck
					if i%2 == 1 {
						verb = queue.VerbRelease
					}
					live.Add(-1) // before the store knows, so that this count is never above the store's
					outcomes, err := f.Queue.Settle(f.ctx, []queue.Settlement{settlement(j, verb)})
					if err != nil || outcomes[0].Status != queue.SettleOK {
						f.Errorf("Settle = %+v, %v", outcomes, err)
						return
					}
					if verb == queue.VerbAck && acked.Add(1) >= perRound {
						stop()
					}
				}
			}
		})
		stop()
		if most.Load() > limit {
			f.Errorf("%d jobs ran at once, want at most %d", most.Load(), limit)
		}
		// As many are reached, whatever the machine does. They are a worker's that dies: it keeps its places until its leases end.
		f.wantTaken(5, limit)
		f.wantTaken(5, 0)
		if r := f.pass(lease); r.Reaped != limit {
			f.Errorf("Maintain = %+v, want %d reaped", r, limit)
		}
	}
}

func limitsCrash(f *fixture) {
	f.configure(queue.Scheduling{Tenants: map[string]queue.TenantSettings{"acme": {MaxRunning: ptr(3)}}})
	f.setQueue("acme", "q", maxRunning(2))
	f.putAll("q", "a b c d")
	f.putAll("r", "x y z")
	f.wantTaken(9, 3)

	f.restart(f.Crash)

	f.take(9) // what ran before may have come back already, or wait for its lease to end
	for range 2 {
		running := map[string]int{}
		page, err := f.jobs.ListJobs(f.ctx, queue.JobFilter{Tenant: "acme", States: []queue.State{queue.StateRunning}})
		if err != nil {
			f.Fatalf("ListJobs: %v", err)
		}
		for _, j := range page.Jobs {
			running[j.Queue]++
		}
		if running["q"] > 2 || running["q"]+running["r"] != 3 {
			f.Fatalf("%v run after the crash, want 3 of which at most 2 of q", running)
		}
		f.pass(lease)
		f.take(9)
	}
}

func limitsQueueCap(f *fixture) {
	f.setQueue("acme", "q", maxRunning(2))
	f.putN(10, "q")
	f.putN(5, "q", priority(3))
	f.putN(5, "q", tenant("other")) // its own
	f.putN(5, "free")
	n := map[string]int{}
	for _, j := range f.take(20) {
		n[j.Tenant+"/"+j.Queue]++
	}
	if n["acme/q"] != 2 || n["acme/free"] != 5 || n["other/q"] != 5 {
		f.Fatalf("one batch took %v, want 2 of the capped queue and all others", n)
	}
	for _, v := range []queue.View{{}, {Queues: []string{"q"}}, {Queues: []string{"free", "q"}}} {
		if got := f.takeFrom(v, 5); len(got) != 0 {
			f.Fatalf("view %v took %d more", v.Queues, len(got))
		}
	}
}

func limitsFreed(f *fixture) {
	f.setQueue("acme", "q", maxRunning(1))
	f.putN(30, "q", maxAttempts(50))
	for _, verb := range []queue.Verb{queue.VerbAck, queue.VerbNack, queue.VerbDead, queue.VerbDefer, queue.VerbYield, queue.VerbRelease, queue.VerbCrash} {
		j := f.wantTaken(5, 1)[0]
		if got := f.take(5); len(got) != 0 {
			f.Fatalf("%d jobs run beside the one that may", len(got)+1)
		}
		f.settleAll(settlement(j, verb))
	}
	j := f.wantTaken(5, 1)[0] // a cancel frees nothing until the job has stopped
	if _, err := f.jobs.CancelJob(f.ctx, "acme", j.ID); err != nil {
		f.Fatalf("CancelJob: %v", err)
	}
	f.wantTaken(5, 0)
	f.settle(settlement(j, queue.VerbNack), queue.StateCancelled)
	f.wantTaken(5, 1)
	f.Advance(lease) // nor does a lease that has ended, until it is reaped
	f.wantTaken(5, 0)
	f.maintain()
	f.wantTaken(5, 1)
}

func limitsCapChange(f *fixture) {
	f.putN(20, "q")
	first := f.wantTaken(4, 4)
	f.setQueue("acme", "q", maxRunning(2)) // below what runs: it waits
	f.wantTaken(5, 0)
	f.ack(first[:2]...)
	f.wantTaken(5, 0)
	f.ack(first[2])
	second := f.wantTaken(5, 1)
	f.setQueue("acme", "q", maxRunning(5))
	second = append(second, f.wantTaken(9, 3)...)
	f.wantTaken(9, 0)
	f.setQueue("acme", "q", queue.QueueChange{ClearMaxRunning: true})
	f.wantTaken(5, 5)
	f.configure(queue.Scheduling{Queues: map[string]queue.QueueSettings{"q": {MaxRunning: ptr(1)}}})
	f.wantTaken(5, 0)
	f.ack(second...)
	f.configure(queue.Scheduling{})
	f.wantTaken(2, 2)
}

func limitsTenantCap(f *fixture) {
	f.configure(queue.Scheduling{Tenants: map[string]queue.TenantSettings{"acme": {MaxRunning: ptr(3)}}})
	f.putN(10, "q")
	f.putN(10, "r", priority(2))
	f.putN(4, "q", tenant("other"))
	n := map[string]int{}
	mine := []*queue.Job{}
	for _, j := range f.take(20) {
		n[j.Tenant]++
		if j.Tenant == "acme" {
			mine = append(mine, j)
		}
	}
	if n["acme"] != 3 || n["other"] != 4 {
		f.Fatalf("one batch took %v, want 3 of acme and all 4 others", n)
	}
	f.ack(mine[0])
	f.wantTaken(5, 1)
	f.configure(queue.Scheduling{Tenants: map[string]queue.TenantSettings{"acme": {MaxRunning: ptr(5)}}})
	f.wantTaken(5, 2)
	f.configure(queue.Scheduling{})
	f.wantTaken(5, 5)
}

func limitsNoCredit(f *fixture) {
	f.setQueue("acme", "capped", maxRunning(1))
	f.putN(60, "capped")
	f.putN(200, "free")
	held := f.take(2) // one each
	f.picks(50)
	for _, j := range held {
		if j.Queue == "capped" {
			f.ack(j)
		}
	}
	f.setQueue("acme", "capped", queue.QueueChange{ClearMaxRunning: true})
	if got := f.picks(20); count(got, "capped") < 10 || count(got, "capped") > 11 {
		f.Fatalf("the queue that was capped gets %d of 20 after that, want 10 (+1): %v", count(got, "capped"), got)
	}
}

func limitsTenantNoCredit(f *fixture) {
	capped := queue.Scheduling{Tenants: map[string]queue.TenantSettings{"acme": {MaxRunning: ptr(2)}}}
	f.configure(capped)
	f.setQueue("acme", "b", weight(3))
	f.putN(60, "a")
	f.putN(60, "b")
	f.putN(200, "q", tenant("free"))
	f.picks(4)
	for range 50 {
		if j := f.takeOne(); j.Tenant != "free" {
			f.Fatalf("a job of %s beside the two that may run", j.Tenant)
		}
	}
	f.configure(queue.Scheduling{})
	n := map[string]int{}
	for range 40 {
		j := f.takeOne()
		n[j.Tenant]++
		n[j.Queue]++
	}
	if n["acme"] < 20 || n["acme"] > 21 || n["b"] < 14 || n["b"] > 16 {
		f.Fatalf("40 picks after the cap = %v, want 20 (+1) of acme, of which b three quarters", n)
	}
}

func limitsRate(f *fixture) {
	f.setQueue("acme", "q", rate("10/s"))
	f.putN(40, "q")
	f.putN(5, "q", tenant("other")) // its own, without a rate
	if got := f.take(40); len(got) != 7 {
		f.Fatalf("took %d at once at 10/s, want a burst of 2 and 5 of the tenant without a rate", len(got))
	}
	start, taken := f.now(), 2
	for range 12 {
		f.Advance(100 * time.Millisecond)
		taken += len(f.take(5))
		passed := f.now().Sub(start)
		most := int((passed+queue.RateSlack)/(100*time.Millisecond)) + 1
		if taken > most || taken < most-2 {
			f.Fatalf("%d jobs in %s at 10/s, want %d", taken, passed, most)
		}
	}
	f.Advance(10 * time.Second) // a pause saves no more than the burst
	f.wantTaken(9, 2)
}

func limitsRateBatch(f *fixture) {
	f.setQueue("acme", "q", rate("3/1h"))
	f.putN(9, "q", maxAttempts(9))
	f.putN(2, "q", expires(time.Millisecond), priority(1))
	f.Advance(2 * time.Millisecond)
	j := f.wantTaken(5, 1)[0] // the expired ones cost nothing
	f.settle(settlement(j, queue.VerbRelease), queue.StateReady)
	f.wantTaken(5, 0) // what was started counts, also when it was given back
	f.Advance(20 * time.Minute)
	f.wantTaken(5, 1) // … and again when it is started again
	f.Advance(20 * time.Minute)
	f.wantTaken(5, 1)
}

func limitsRateChange(f *fixture) {
	f.setQueue("acme", "q", rate("1/h"))
	f.putN(50, "q")
	f.wantTaken(5, 1)
	f.setQueue("acme", "q", rate("1/h")) // no change
	f.wantTaken(5, 0)
	f.setQueue("acme", "q", rate("20/m")) // at once, not in an hour
	f.wantTaken(5, 1)
	f.setQueue("acme", "q", rate("100/s"))
	f.wantTaken(20, 11)
	f.setQueue("acme", "q", queue.QueueChange{ClearRate: true})
	f.wantTaken(20, 20)
	f.configure(queue.Scheduling{Queues: map[string]queue.QueueSettings{"q": {Rate: &queue.Rate{Count: 1, Per: time.Hour}}}})
	f.wantTaken(5, 1)
}

func limitsRateWakes(f *fixture) {
	f.setQueue("acme", "q", rate("2/s"))
	f.putN(9, "q")
	f.wantTaken(5, 1)
	all := f.wait(queue.View{})
	named := f.wait(queue.View{Queues: []string{"q", "r"}})
	f.Advance(400 * time.Millisecond) // half a second, less the slack
	f.ended("Wait for a rate", all, nil)
	f.ended("Wait on a named view for a rate", named, nil)
	f.wantTaken(5, 1)

	// Who waits already learns of a rate that another one used up.
	f.setQueue("acme", "r", rate("1/s"))
	blocked := f.wait(queue.View{Queues: []string{"r"}})
	f.put("r", "a")
	f.ended("Wait", blocked, nil)
	blocked = f.wait(queue.View{Queues: []string{"none", "r"}})
	f.ended("Wait", blocked, nil)
	f.takeFrom(queue.View{Queues: []string{"r"}}, 1)
	blocked = f.wait(queue.View{Queues: []string{"r"}})
	f.put("r", "b")
	f.Advance(time.Second)
	f.ended("Wait for a rate with a job that came meanwhile", blocked, nil)
}

func limitsSleep(f *fixture) {
	f.configure(queue.Scheduling{Tenants: map[string]queue.TenantSettings{"small": {MaxRunning: ptr(1)}}})
	f.setQueue("acme", "capped", maxRunning(1))
	f.setQueue("acme", "slow", rate("1/h"))
	f.putN(3, "capped")
	f.putN(3, "slow")
	f.putN(3, "q", tenant("small"))
	f.putN(3, "keyed", keyed("k"))
	f.wantTaken(20, 4)
	ctx, cancel := context.WithCancelCause(f.ctx)
	done := f.start(ctx, func(ctx context.Context) error { return f.Queue.Wait(ctx, queue.View{}) })
	f.putN(1, "capped", priority(9))
	f.putN(1, "slow")
	f.putN(1, "other", tenant("small"))
	f.maintain()
	f.Advance(time.Minute)
	cancel(errGaveUp)
	f.ended("Wait while everything is held back", done, errGaveUp)
}

func limitsWake(f *fixture) {
	f.putN(3, "q", keyed("k"), maxAttempts(50))
	tenants := map[string]queue.TenantSettings{"acme": {MaxRunning: ptr(1)}}
	one := queue.Scheduling{Tenants: tenants, Queues: map[string]queue.QueueSettings{"q": {MaxRunning: ptr(1)}}}
	f.configure(one)
	j := f.takeOne()
	for _, step := range []struct {
		name string
		do   func()
	}{
		{"settle", func() { f.settle(settlement(j, queue.VerbYield), queue.StateReady) }},
		{"reap", func() { f.pass(lease) }},
		{"a limit that goes", func() {
			f.configure(queue.Scheduling{Queues: map[string]queue.QueueSettings{"q": {MaxPerKey: ptr(2)}}})
		}},
	} {
		f.wantTaken(5, 0)
		done := f.wait(queue.View{})
		step.do()
		f.ended("Wait after "+step.name, done, nil)
		j = f.wantTaken(1, 1)[0]
	}
}

func (f *fixture) why(tenant, id string) string {
	f.Helper()
	list, err := f.explainer.WaitingOn(f.ctx, tenant, id)
	if err != nil {
		f.Fatalf("WaitingOn(%s): %v", id, err)
	}
	return waits(list)
}

func limitsWhy(f *fixture) {
	want := func(id, want string) {
		f.Helper()
		if got := f.why("acme", id); got != want {
			f.Errorf("WaitingOn = %q, want %q", got, want)
		}
	}
	held := func(q string, want queue.WaitCode) {
		f.Helper()
		if got := f.info(q).Waiting; got != want {
			f.Errorf("queue %s is held back by %q, want %q", q, got, want)
		}
	}
	for _, id := range []string{unknownID, "", "job"} {
		if _, err := f.explainer.WaitingOn(f.ctx, "acme", id); !errors.Is(err, queue.ErrNotFound) {
			f.Errorf("WaitingOn(%q) = %v, want ErrNotFound", id, err)
		}
	}
	a := f.put("q", "a", keyed("k"))
	if _, err := f.explainer.WaitingOn(f.ctx, "other", a); !errors.Is(err, queue.ErrNotFound) {
		f.Errorf("WaitingOn of another tenant's job = %v, want ErrNotFound", err)
	}
	want(a, "")
	held("q", "")
	b := f.put("q", "b", keyed("k"))
	c := f.put("q", "c", priority(-1))
	want(b, "waits ahead 1") // at most: it may be the first
	want(c, "waits ahead 2")
	f.takeOne()
	want(a, "") // it runs
	want(b, "waits concurrency_key 1 of 1 k")
	want(c, "waits ahead 1")
	f.wantTaken(1, 1) // c, while b stepped aside
	want(b, "waits concurrency_key 1 of 1 k")
	z := f.put("q", "z")
	want(z, "waits ahead 1")
	if err := f.jobs.DeleteJob(f.ctx, "acme", z); err != nil {
		f.Fatalf("DeleteJob: %v", err)
	}
	f.setQueue("acme", "q", maxRunning(2))
	held("q", queue.WaitMaxRunning)
	f.configure(queue.Scheduling{Tenants: map[string]queue.TenantSettings{"acme": {MaxRunning: ptr(1)}}})
	want(b, "waits max_running 2 of 2, waits tenant_max_running 2 of 1, waits concurrency_key 1 of 1 k")
	f.setQueue("acme", "q", queue.QueueChange{ClearMaxRunning: true, Set: queue.QueueSettings{Paused: ptr(true)}})
	held("q", queue.WaitPaused)
	want(b, "waits paused, waits tenant_max_running 2 of 1, waits concurrency_key 1 of 1 k")
	f.put("other", "x")
	held("other", queue.WaitTenantMaxRunning)
	f.configure(queue.Scheduling{})
	held("other", "")
	f.setQueue("acme", "other", rate("1/h"))
	f.wantTaken(5, 1)
	d := f.put("other", "y")
	held("other", queue.WaitRate)
	list, err := f.explainer.WaitingOn(f.ctx, "acme", d)
	if err != nil || len(list) != 1 || list[0].Code != queue.WaitRate || list[0].Until.Sub(f.now()) > time.Hour || list[0].Until.Sub(f.now()) < 59*time.Minute {
		f.Errorf("WaitingOn = %+v, %v, want the rate until in about an hour", list, err)
	}
	e := f.put("q", "later", delay(time.Hour))
	if list, err := f.explainer.WaitingOn(f.ctx, "acme", e); err != nil || len(list) != 1 || list[0].Code != queue.WaitDelay || !list[0].Until.Equal(f.get(e).NextRunAt) {
		f.Errorf("WaitingOn of a scheduled job = %+v, %v, want its due time alone", list, err)
	}
}

func limitsSettings(f *fixture) {
	r := queue.Rate{Count: 5, Per: time.Minute}
	f.configure(queue.Scheduling{Queues: map[string]queue.QueueSettings{"q": {MaxRunning: ptr(7), MaxPerKey: ptr(3), Rate: &r}}})
	if got := f.info("q"); got.MaxRunning != 7 || got.MaxPerKey != 3 || got.Rate != r || !got.Override.Empty() {
		f.Errorf("configured: %+v", got)
	}
	faster := queue.Rate{Count: 9, Per: time.Second}
	got := f.setQueue("acme", "q", queue.QueueChange{Set: queue.QueueSettings{MaxRunning: ptr(2), Rate: &faster}})
	if got.MaxRunning != 2 || got.MaxPerKey != 3 || got.Rate != faster || got.Override.MaxPerKey != nil || *got.Override.MaxRunning != 2 || *got.Override.Rate != faster {
		f.Errorf("after set: %+v", got)
	}
	*got.Override.Rate = r // the caller's own copy
	if again := f.info("q"); again.Rate != faster || *again.Override.Rate != faster {
		f.Errorf("a caller changed the store: %+v", again)
	}
	got = f.setQueue("acme", "q", queue.QueueChange{Set: queue.QueueSettings{MaxPerKey: ptr(4)}, ClearMaxRunning: true, ClearRate: true})
	if got.MaxRunning != 7 || got.MaxPerKey != 4 || got.Rate != r || got.Override.MaxRunning != nil || got.Override.Rate != nil {
		f.Errorf("after a partial change: %+v", got)
	}
	if got = f.setQueue("acme", "q", queue.QueueChange{ClearMaxPerKey: true}); got.MaxPerKey != 3 || !got.Override.Empty() {
		f.Errorf("after clear: %+v", got)
	}
	f.configure(queue.Scheduling{Queues: map[string]queue.QueueSettings{"q": {}}})
	if got = f.info("q"); got.MaxRunning != 0 || got.MaxPerKey != 1 || !got.Rate.IsZero() {
		f.Errorf("defaults: %+v", got)
	}
}

func limitsBad(f *fixture) {
	for what, s := range map[string]queue.QueueSettings{
		"max_running 0":        {MaxRunning: ptr(0)},
		"max_running -1":       {MaxRunning: ptr(-1)},
		"max_running too high": {MaxRunning: ptr(queue.RunningCapMax + 1)},
		"max_per_key 0":        {MaxPerKey: ptr(0)},
		"no rate":              {Rate: &queue.Rate{}},
		"a rate per 1 ms":      {Rate: &queue.Rate{Count: 1, Per: time.Millisecond}},
		"a rate per 1.5 µs":    {Rate: &queue.Rate{Count: 1, Per: time.Second + 1500*time.Nanosecond}},
		"a rate too high":      {Rate: &queue.Rate{Count: queue.RateCountMax + 1, Per: time.Second}},
	} {
		_, err := f.queues.SetQueue(f.ctx, "acme", "q", queue.QueueChange{Set: s})
		f.wantInvalid("SetQueue with "+what, err)
		f.wantInvalid("Configure with "+what, f.configured.Configure(f.ctx, queue.Scheduling{Queues: map[string]queue.QueueSettings{"q": s}}))
	}
	f.wantInvalid("Configure with a bad cap of a tenant",
		f.configured.Configure(f.ctx, queue.Scheduling{Tenants: map[string]queue.TenantSettings{"t": {MaxRunning: ptr(0)}}}))
	_, err := f.queues.SetQueue(f.ctx, "acme", "q", queue.QueueChange{Set: queue.QueueSettings{MaxRunning: ptr(1)}, ClearMaxRunning: true})
	f.wantInvalid("SetQueue with a cap set and cleared", err)
	o := f.try(spec("q", "a", keyed(strings.Repeat("k", queue.KeyMax+1))))
	if o.Status != queue.EnqueueRejected || !errors.Is(o.Err, queue.ErrInvalid) {
		f.Errorf("enqueue with a key too long = %+v, want rejected", o)
	}
	if got := f.queueNames("acme"); got != "" {
		f.Errorf("queues = %q after refused changes", got)
	}
}

func limitsReopen(f *fixture) {
	f.setQueue("acme", "q", queue.QueueChange{Set: queue.QueueSettings{MaxRunning: ptr(2), MaxPerKey: ptr(3), Rate: &queue.Rate{Count: 7, Per: 90 * time.Second}}})
	f.configure(queue.Scheduling{Tenants: map[string]queue.TenantSettings{"acme": {MaxRunning: ptr(5)}}})
	ids := f.putAll("k", "a b c", keyed("k"))
	f.put("k", "d")
	j := f.takeOne()
	if got := labels(f.take(5)); got != "d" { // b and c step aside
		f.Fatalf("reserved %q beside a, want d", got)
	}
	f.settle(settlement(j, queue.VerbRelease), queue.StateReady)
	info := f.info("q")

	f.restart(f.Reopen)

	if got := f.info("q"); got.MaxRunning != info.MaxRunning || got.MaxPerKey != info.MaxPerKey || got.Rate != info.Rate || *got.Override.Rate != *info.Override.Rate ||
		*got.Override.MaxRunning != 2 || *got.Override.MaxPerKey != 3 {
		f.Errorf("queue after the restart = %+v, want %+v", got, info)
	}
	if got := f.get(ids[1]).ConcurrencyKey; got != "k" {
		f.Errorf("concurrency key after the restart = %q, want k", got)
	}
	for _, want := range []string{"a", "b", "c"} {
		var next *queue.Job
		for _, j := range f.take(5) { // d comes back some time: its process ended under it
			if string(j.Payload) != "d" {
				if next != nil {
					f.Fatalf("%s and %s of one key run at once", next.Payload, j.Payload)
				}
				next = j
			}
		}
		if next == nil || string(next.Payload) != want {
			f.Fatalf("reserved %+v, want %s: the order is kept", next, want)
		}
		f.ack(next)
	}
}

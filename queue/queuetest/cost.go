package queuetest

import (
	"strings"
	"time"

	"github.com/taskhost/taskhost/queue"
)

func costCases() []testCase {
	return []testCase{
		{name: "ten times as long is a tenth of the starts", run: costTenth},
		{name: "weights are shares of time", run: costWeights},
		{name: "a tenant pays for the time of all its queues", run: costTenants},
		{name: "off, the time says nothing", run: costOff},
		{name: "before anything is measured a job costs the unit", run: costFirst},
		{name: "many at once replace what was known", run: costMany},
		{name: "what was charged too much is no credit", run: costNoCredit},
		{name: "a queue that has left pays what it owes", run: costParked},
		{name: "released and crashed runs are charged, reaped ones stay as estimated", run: costVerbs},
		{name: "switching on and off changes the backlog, and nothing jumps", run: costSwitch},
		{name: "bad units are refused", run: costBad},
	}
}

func chargeBy(d time.Duration) queue.Scheduling { return queue.Scheduling{ChargeByTime: d} }

// ran settles a job that ran for d.
func (f *fixture) ran(j *queue.Job, v queue.Verb, d time.Duration) {
	f.Helper()
	s := settlement(j, v)
	s.Duration = d
	if o := f.settleAll(s)[0]; o.Status != queue.SettleOK {
		f.Fatalf("Settle %s after %s = %+v, want ok", v, d, o)
	}
}

// runs takes n jobs one by one, each of which runs as long as its queue (or its tenant and queue) says, and returns what was taken,
// by queue.
func (f *fixture) runs(n int, lasts map[string]time.Duration) []string {
	f.Helper()
	var got []string
	for range n {
		j := f.takeOne()
		f.ran(j, queue.VerbAck, lasts[j.Tenant+"/"+j.Queue])
		got = append(got, j.Queue)
	}
	return got
}

func costTenth(f *fixture) {
	f.configure(chargeBy(100 * time.Millisecond))
	f.putN(30, "long")
	f.putN(250, "short")
	lasts := map[string]time.Duration{"acme/long": time.Second, "acme/short": 100 * time.Millisecond}
	f.runs(22, lasts)
	got := f.runs(220, lasts)
	if n := count(got, "long"); n < 19 || n > 21 {
		f.Fatalf("the queue whose jobs take ten times as long got %d of 220 starts, want 20 (±1)", n)
	}
	for i := 0; i+22 <= len(got); i += 22 {
		if n := count(got[i:i+22], "long"); n < 1 || n > 3 {
			f.Fatalf("starts %d to %d have %d of long, want 2 (±1): %v", i, i+22, n, got[i:i+22])
		}
	}
}

func costWeights(f *fixture) {
	f.configure(chargeBy(10 * time.Millisecond))
	f.setQueue("acme", "a", weight(3))
	f.putN(200, "a")
	f.putN(200, "b")
	lasts := map[string]time.Duration{"acme/a": 60 * time.Millisecond, "acme/b": 20 * time.Millisecond}
	f.runs(10, lasts)
	if n := count(f.runs(100, lasts), "a"); n < 49 || n > 51 { // 3 × the time at 3 × the length
		f.Fatalf("a, of weight 3 and jobs 3 times as long, got %d of 100 starts, want 50 (±1)", n)
	}
}

func costTenants(f *fixture) {
	f.configure(chargeBy(time.Millisecond))
	for _, q := range []string{"a", "b", "c"} {
		f.putN(100, q, tenant("slow"))
	}
	f.putN(300, "fast", tenant("quick"))
	lasts := map[string]time.Duration{"slow/a": 90 * time.Millisecond, "slow/b": 90 * time.Millisecond, "slow/c": 90 * time.Millisecond, "quick/fast": 30 * time.Millisecond}
	f.runs(12, lasts)
	if n := count(f.runs(120, lasts), "fast"); n < 88 || n > 92 {
		f.Fatalf("the tenant whose jobs take a third of the time got %d of 120 starts, want 90 (±2)", n)
	}
}

func costOff(f *fixture) {
	f.setQueue("acme", "b", weight(3))
	f.putN(100, "a")
	f.putN(100, "b")
	got := f.runs(40, map[string]time.Duration{"acme/a": time.Hour})
	if want := strings.Repeat("a b b b ", 10); strings.Join(got, " ")+" " != want {
		f.Fatalf("served %v, want %s: nobody asked to charge time", got, want)
	}
}

func costFirst(f *fixture) {
	f.configure(chargeBy(50 * time.Millisecond))
	f.setQueue("acme", "b", weight(3))
	f.putN(20, "a")
	f.putN(20, "b")
	if got, want := strings.Join(f.picks(8), " "), "a b b b a b b b"; got != want {
		f.Fatalf("picks = %s, want %s: nothing was measured yet", got, want)
	}
	f.putN(1, "known", tenant("other"))
	f.ran(f.bring("known"), queue.VerbAck, 25*time.Millisecond)
	f.putN(40, "known", tenant("other"))
	f.putN(40, "new", tenant("other"))
	n := map[string]int{}
	for n["new"]+n["known"] < 30 {
		n[f.takeOne().Queue]++
	}
	if n["new"] < 9 || n["new"] > 11 {
		f.Fatalf("a queue of which nothing is known got %d of 30 starts beside one whose jobs take half a unit, want 10 (±1)", n["new"])
	}
}

// bring takes jobs until one is of the queue.
func (f *fixture) bring(q string) *queue.Job {
	f.Helper()
	for {
		if j := f.takeOne(); j.Queue == q {
			return j
		}
	}
}

func costMany(f *fixture) {
	f.configure(chargeBy(100 * time.Millisecond))
	f.putN(100, "a")
	f.ran(f.takeOne(), queue.VerbAck, time.Second)
	var all []queue.Settlement
	for _, j := range f.take(20) {
		s := settlement(j, queue.VerbAck)
		s.Duration = 100 * time.Millisecond
		all = append(all, s)
	}
	f.settleAll(all...)
	f.putN(100, "b")
	f.runs(30, map[string]time.Duration{"acme/a": 100 * time.Millisecond, "acme/b": 100 * time.Millisecond})
	if n := count(f.picks(40), "a"); n < 19 || n > 21 {
		f.Fatalf("after 20 jobs at once of the length of b's, a got %d of 40 starts, want 20 (±1)", n)
	}
}

func costNoCredit(f *fixture) {
	f.configure(chargeBy(100 * time.Millisecond))
	f.putN(200, "a")
	f.putN(200, "b")
	lasts := map[string]time.Duration{"acme/a": time.Second, "acme/b": 100 * time.Millisecond}
	f.runs(99, lasts) // a costs a second by now
	var running []*queue.Job
	for len(running) < 4 {
		if j := f.takeOne(); j.Queue == "a" {
			running = append(running, j)
		} else {
			f.ran(j, queue.VerbAck, lasts["acme/b"])
		}
	}
	all := make([]queue.Settlement, len(running))
	for i, j := range running {
		all[i] = settlement(j, queue.VerbAck)
	}
	f.settleAll(all...) // they took no time: almost 4 s come back, a job of a is taken to cost half a second now
	got := f.runs(12, map[string]time.Duration{"acme/a": 500 * time.Millisecond, "acme/b": 100 * time.Millisecond})
	if n := count(got, "a"); n > 3 {
		f.Fatalf("after the correction a got %d of 12 starts, want 3 at most: %v", n, got)
	}
	if n := count(got, "a"); n < 2 {
		f.Fatalf("after the correction a got %d of 12 starts, want 2 at least: it still owes what came back: %v", n, got)
	}
}

func costParked(f *fixture) {
	f.configure(chargeBy(100 * time.Millisecond))
	f.putN(1, "a")
	f.putN(100, "b")
	f.ran(f.takeOne(), queue.VerbAck, time.Second) // the only job of a, which has left: 900 ms more than it was charged
	f.putN(1, "a")
	lasts := map[string]time.Duration{"acme/a": 100 * time.Millisecond, "acme/b": 100 * time.Millisecond}
	if got := f.runs(10, lasts); count(got, "a") != 0 {
		f.Fatalf("picks = %v: a has left and come back without the time that it owes", got)
	}
	if got := f.runs(2, lasts); count(got, "a") != 1 {
		f.Fatalf("picks = %v, want a when b has caught up", got)
	}

	f.putN(2, "q", tenant("a-debtor"))
	f.putN(100, "q", tenant("peer"))
	f.ran(f.bring("q"), queue.VerbAck, time.Second)
	n := 0
	for j := f.takeOne(); j.Tenant != "a-debtor"; j = f.takeOne() {
		n++
		f.ran(j, queue.VerbAck, 100*time.Millisecond)
	}
	if n < 10 {
		f.Fatalf("others got %d starts before the tenant that owes 900 ms, want 10 at least", n)
	}
}

func costVerbs(f *fixture) {
	// Each queue runs one job for a second, or leaves it to be reaped; then b, of the unit's length, catches up.
	for _, verb := range []queue.Verb{queue.VerbAck, queue.VerbNack, queue.VerbDead, queue.VerbDefer, queue.VerbYield, queue.VerbRelease, queue.VerbCrash, ""} {
		who := tenant("of-" + string(verb) + "x")
		f.configure(chargeBy(100 * time.Millisecond))
		f.putN(3, "a", who)
		f.putN(30, "b", who)
		j := f.takeOne()
		if j.Queue != "a" {
			f.Fatalf("%q: reserved %s first, want a", verb, j.Queue)
		}
		want := 10
		if verb == "" {
			f.pass(lease)
			want = 1
		} else {
			f.ran(j, verb, time.Second)
		}
		n := 0
		for range 30 {
			j := f.takeOne()
			if j.Queue == "a" {
				f.ran(j, queue.VerbDead, 0)
				break
			}
			n++
			f.ran(j, queue.VerbAck, 100*time.Millisecond)
		}
		if n != want {
			f.Fatalf("%q: b got %d starts before a got its second, want %d", verb, n, want)
		}
		for range 100 { // nothing is left for the next verb
			jobs := f.take(50)
			if len(jobs) == 0 {
				break
			}
			for _, j := range jobs {
				f.ran(j, queue.VerbDead, 0)
			}
		}
	}
}

func costSwitch(f *fixture) {
	f.putN(300, "a")
	f.putN(300, "b")
	lasts := map[string]time.Duration{"acme/a": 300 * time.Millisecond, "acme/b": 100 * time.Millisecond}
	if n := count(f.runs(40, lasts), "a"); n != 20 {
		f.Fatalf("before, a got %d of 40 starts, want 20", n)
	}
	before := f.takeOne() // charged as one job
	f.configure(chargeBy(100 * time.Millisecond))
	f.ran(before, queue.VerbAck, time.Hour)
	f.runs(12, lasts)
	if n := count(f.runs(80, lasts), "a"); n < 19 || n > 21 {
		f.Fatalf("charged by time, a got %d of 80 starts, want 20 (±1)", n)
	}
	f.configure(chargeBy(7 * time.Millisecond)) // another unit changes no share
	if n := count(f.runs(80, lasts), "a"); n < 19 || n > 21 {
		f.Fatalf("in another unit a got %d of 80 starts, want 20 (±1)", n)
	}
	during := f.takeOne()
	f.configure(queue.Scheduling{})
	f.ran(during, queue.VerbAck, time.Hour)
	f.runs(60, lasts)
	if n := count(f.runs(40, lasts), "a"); n < 19 || n > 21 {
		f.Fatalf("after, a got %d of 40 starts, want 20 (±1)", n)
	}
}

func costBad(f *fixture) {
	for _, d := range []time.Duration{-1, time.Microsecond, 1500 * time.Microsecond, queue.ChargeByTimeMax + time.Millisecond} {
		f.wantInvalid(d.String(), f.configured.Configure(f.ctx, chargeBy(d)))
	}
}

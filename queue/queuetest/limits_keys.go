package queuetest

import (
	"fmt"
	"strings"
	"time"

	"github.com/taskhost/taskhost/queue"
)

func concurrencyKeyCases() []testCase {
	return []testCase{
		{name: "one job per key, others pass", run: keysPass},
		{name: "jobs of a key keep their order", run: keysOrder},
		{name: "jobs that came back keep their order", run: keysBackOrder},
		{name: "a released job stays before its key's others", run: keysRelease},
		{name: "the cap per key changes at once", run: keysCap},
		{name: "a key belongs to its queue", run: keysQueue},
		{name: "the urgent job of a key comes back first", run: keysPriority},
		{name: "who came back and is cancelled makes room for the next", run: keysCancel},
		{name: "jobs aside can expire, be cancelled and be deleted", run: keysAsideEnds},
		{name: "stepping aside costs nothing", run: keysUncharged},
		{name: "the starvation guard does not count who steps aside", run: keysGuard, needs: queue.LimitationGlobalPriority},
		{name: "one reserve lets so many step aside", run: keysMany},
		{name: "with a cap of the queue", run: keysAndCap},
	}
}

func perKey(n int) queue.QueueChange {
	return queue.QueueChange{Set: queue.QueueSettings{MaxPerKey: &n}}
}

// wantLabels reserves up to n jobs and compares their labels.
func (f *fixture) wantLabels(n int, want string) []*queue.Job {
	f.Helper()
	jobs := f.take(n)
	if got := labels(jobs); got != want {
		f.Fatalf("reserved %q, want %q", got, want)
	}
	return jobs
}

func keysPass(f *fixture) {
	f.putAll("q", "a1 a2 a3", keyed("a"))
	f.putAll("q", "b1 b2", keyed("b"))
	f.putAll("q", "n1 n2")
	first := f.wantLabels(9, "a1 b1 n1 n2")
	if got := f.get(first[0].ID); got.ConcurrencyKey != "a" {
		f.Errorf("concurrency key = %q, want a", got.ConcurrencyKey)
	}
	f.wantLabels(9, "")
	if got := f.info("q"); got.Ready != 3 || got.Running != 4 {
		f.Errorf("queue = %+v, want 3 ready, of which all wait aside, and 4 running", got)
	}
	f.putAll("q", "a4", keyed("a"))
	f.wantLabels(9, "")
	f.ack(first[0])
	f.putAll("q", "n3")
	f.wantLabels(9, "a2 n3") // to the front
	f.ack(first[1])
	f.wantLabels(9, "b2")
}

func keysOrder(f *fixture) {
	var want []string
	for i := range 12 {
		want = append(want, fmt.Sprint(i))
	}
	f.putAll("q", strings.Join(want, " "), keyed("k"))
	var got []string
	for range want {
		jobs := f.wantTaken(3, 1)
		got = append(got, string(jobs[0].Payload))
		f.ack(jobs[0])
	}
	if strings.Join(got, " ") != strings.Join(want, " ") {
		f.Fatalf("the jobs of one key ran in the order %v, want %v", got, want)
	}
}

func keysBackOrder(f *fixture) {
	f.setQueue("acme", "q", perKey(2))
	f.putAll("q", "a b c d e", keyed("k"))
	first := f.wantLabels(9, "a b")
	f.putAll("q", "n")
	f.ack(first[0])
	f.ack(first[1]) // c and d come back one by one, with no pick between
	f.wantLabels(9, "c d n")
}

func keysRelease(f *fixture) {
	f.putAll("q", "a b c", keyed("k"), maxAttempts(9))
	j := f.wantLabels(9, "a")[0]
	f.settle(settlement(j, queue.VerbRelease), queue.StateReady)
	f.wantLabels(9, "a")
	f.pass(lease)
	j = f.wantLabels(9, "a")[0]
	f.settle(settlement(j, queue.VerbCrash), queue.StateReady)
	j = f.wantLabels(9, "a")[0]
	f.settle(settlement(j, queue.VerbYield), queue.StateReady) // to the tail
	f.ack(f.wantLabels(9, "b")...)
	f.ack(f.wantLabels(9, "c")...)
	f.wantLabels(9, "a")
}

func keysCap(f *fixture) {
	f.putAll("q", "a b c d e f", keyed("k"))
	first := f.wantLabels(9, "a")
	f.setQueue("acme", "q", perKey(3))
	first = append(first, f.wantLabels(9, "b c")...)
	f.setQueue("acme", "q", perKey(1))
	f.ack(first[:2]...)
	f.wantLabels(9, "")
	f.ack(first[2])
	f.wantLabels(9, "d")
	f.configure(queue.Scheduling{Queues: map[string]queue.QueueSettings{"q": {MaxPerKey: ptr(9)}}})
	f.wantLabels(9, "") // the override stands
	f.setQueue("acme", "q", queue.QueueChange{ClearMaxPerKey: true})
	f.wantLabels(9, "e f")
}

func keysQueue(f *fixture) {
	f.put("a", "1", keyed("k"))
	f.put("b", "2", keyed("k"))
	f.put("a", "3", keyed("k"), tenant("other"))
	f.wantTaken(9, 3)
}

func keysPriority(f *fixture) {
	f.putAll("q", "a b", keyed("k"))
	j := f.wantLabels(9, "a")[0]
	f.putAll("q", "low", keyed("k"), priority(-5))
	f.putAll("q", "high", keyed("k"), priority(5))
	f.wantLabels(9, "")
	for _, want := range []string{"high", "b", "low"} {
		f.ack(j)
		j = f.wantLabels(9, want)[0]
	}
}

func keysCancel(f *fixture) {
	ids := f.putAll("q", "a b c d", keyed("k"))
	j := f.wantLabels(9, "a")[0]
	f.ack(j) // b comes back
	if _, err := f.jobs.CancelJob(f.ctx, "acme", ids[1]); err != nil {
		f.Fatalf("CancelJob: %v", err)
	}
	j = f.wantLabels(9, "c")[0]
	f.ack(j)
	if err := f.jobs.DeleteJob(f.ctx, "acme", ids[3]); err != nil {
		f.Fatalf("DeleteJob: %v", err)
	}
	f.wantLabels(9, "")
	f.putAll("q", "e f", keyed("k"))
	f.wantLabels(9, "e")
}

func keysAsideEnds(f *fixture) {
	j := f.put("q", "a", keyed("k"))
	cancelled := f.put("q", "b", keyed("k"))
	deleted := f.put("q", "c", keyed("k"))
	expired := f.put("q", "d", keyed("k"), expires(time.Second))
	back := f.put("q", "e", keyed("k"), expires(2*time.Second))
	f.put("q", "f", keyed("k"))
	first := f.wantLabels(9, "a")[0]
	if first.ID != j {
		f.Fatalf("reserved %s, want %s", first.ID, j)
	}
	f.wantLabels(9, "")
	if _, err := f.jobs.CancelJob(f.ctx, "acme", cancelled); err != nil {
		f.Fatalf("CancelJob: %v", err)
	}
	if err := f.jobs.DeleteJob(f.ctx, "acme", deleted); err != nil {
		f.Fatalf("DeleteJob: %v", err)
	}
	if r := f.pass(time.Second); r.Expired != 1 {
		f.Fatalf("Maintain = %+v, want the job aside expired", r)
	}
	f.wantState(expired, queue.StateExpired)
	f.ack(first) // e comes back
	f.Advance(time.Second)
	f.wantLabels(9, "f") // e expired at the front, and made room
	f.wantState(back, queue.StateExpired)
}

func keysUncharged(f *fixture) {
	f.putN(1, "k", keyed("k"))
	f.putN(40, "free")
	j := f.takeOne()
	for j.Queue != "k" {
		j = f.takeOne()
	}
	f.putN(30, "k", keyed("k"))
	if got := f.picks(5); count(got, "free") != 5 {
		f.Fatalf("picks = %v, want free only", got)
	}
	if got := f.info("k"); got.Served != 1 || got.Ready != 30 {
		f.Errorf("queue k = %+v, want served 1, ready 30", got)
	}
	f.setQueue("acme", "k", perKey(30))
	if got := f.picks(10); count(got, "k") < 5 || count(got, "k") > 6 {
		f.Fatalf("picks = %v, want k 5 (+1): neither charged nor credited", got)
	}
}

func keysGuard(f *fixture) {
	f.configure(queue.Scheduling{MaxConsecutiveHigh: 2})
	f.putAll("q", "k1 k2 k3 k4", keyed("k"), priority(1))
	f.putAll("q", "h1 h2 h3", priority(1))
	f.putAll("q", "l1 l2")
	f.wantLabels(9, "k1 h1 l1 h2 h3 l2") // who steps aside is no favour to its band
}

func keysMany(f *fixture) {
	const more = 5
	f.put("q", "first", keyed("k"))
	f.takeOne()
	for n := queue.AsideMax + more; n > 0; n -= min(n, 500) {
		f.putN(min(n, 500), "q", keyed("k"))
	}
	f.put("q", "other")
	f.wantLabels(2, "")                        // so many stepped aside
	f.ended("Wait", f.wait(queue.View{}), nil) // and there is more to look at
	f.wantLabels(2, "other")                   // behind the rest of them
	if got := f.info("q"); got.Ready != queue.AsideMax+more {
		f.Errorf("queue = %+v, want %d ready", got, queue.AsideMax+more)
	}
}

func keysAndCap(f *fixture) {
	f.setQueue("acme", "q", maxRunning(2))
	f.putAll("q", "a1 a2", keyed("a"))
	f.putAll("q", "b1", keyed("b"))
	f.putAll("q", "n1")
	first := f.wantLabels(9, "a1 b1")
	f.ack(first[1])
	second := f.wantLabels(9, "n1")
	f.ack(first[0])
	f.wantLabels(9, "a2")
	f.ack(second...)
}

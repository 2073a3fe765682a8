package queuetest

import (
	"maps"
	"time"

	"github.com/taskhost/taskhost/queue"
)

func conservationCases() []testCase {
	return []testCase{
		{name: "every state is counted once", run: conservationStates},
		{name: "a long mixed life loses nothing", run: conservationMixed},
	}
}

func conservationStates(f *fixture) {
	f.endings()
	f.put("q", "running")
	f.takeOne()
	f.put("q", "ready")
	f.put("q", "scheduled", delay(time.Hour))
	gone := f.put("q", "deleted")
	if err := f.jobs.DeleteJob(f.ctx, "acme", gone); err != nil {
		f.Fatalf("DeleteJob: %v", err)
	}
	r := f.books()
	want := map[queue.State]int64{}
	for _, s := range queue.States() {
		want[s] = 1
	}
	maps.DeleteFunc(r.Counts, func(_ queue.State, n int64) bool { return n == 0 })
	if !maps.Equal(r.Counts, want) || r.Enqueued != 8 || r.Removed != 1 {
		f.Errorf("audit = %+v, want one in each state, 8 enqueued, 1 removed", r)
	}
}

func conservationMixed(f *fixture) {
	verbs := []queue.Verb{queue.VerbAck, queue.VerbNack, queue.VerbYield, queue.VerbRelease, queue.VerbDefer, queue.VerbCrash, queue.VerbDead}
	const n = 60
	f.putN(n, "q", maxAttempts(2))
	step := 0
	for round := 0; ; round++ {
		jobs := f.take(7)
		if len(jobs) == 0 {
			if r := f.pass(lease); r.Promoted+r.Reaped == 0 {
				break
			}
			continue
		}
		for _, j := range jobs {
			step++
			verb := verbs[step%len(verbs)]
			if round > 40 {
				verb = queue.VerbAck // all things end
			}
			s := settlement(j, verb)
			if verb == queue.VerbDefer {
				s.Delay = time.Second
			}
			if step%11 == 0 {
				continue // its host dies
			}
			f.settleAll(s)
		}
		r := f.books()
		var sum int64
		for _, c := range r.Counts {
			sum += c
		}
		if sum != n || r.Enqueued != n || r.Removed != 0 {
			f.Fatalf("round %d: %v do not add up to %d", round, r.Counts, n)
		}
	}
	r := f.books()
	if r.Counts[queue.StateSucceeded]+r.Counts[queue.StateDead] != n {
		f.Errorf("at the end %v, want all succeeded or dead", r.Counts)
	}
}

package redisq_test

import (
	"context"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/taskhost/taskhost/queue"
	"github.com/taskhost/taskhost/queue/redisq"
)

const task = "task" // the queue that the notes call task:queue

// TestR2OneQueue is R2 §8.1: all workers listen to one queue.
func TestR2OneQueue(t *testing.T) { inBothModes(t, r2OneQueue) }

func r2OneQueue(t *testing.T, m mode) {
	for _, s := range []struct {
		section string
		play    func(k *crew)
	}{
		{"8.1.2 one job", oneJob},
		{"8.1.3 one job after another", jobsInARow},
		{"8.1.4 a batch", batchAtOnce},
		{"8.1.4 a batch, hints and reservations", batchOutOfOrder},
		{"8.1.5 back at the tail", backAtTheTail},
		{"8.1.5 first done, not first served", firstDone},
		{"8.1.6 more jobs than workers", moreJobs},
		{"8.1.7 more workers than jobs", moreWorkers},
		{"8.1.8 a worker joins, one is killed", joinAndKill},
		{"8.1.8 a worker stops", joinAndStop},
		{"8.1.8 a worker dies between wake and reservation", deadAfterWake},
		{"8.1.8 a process dies between wake and reservation", processDiesAfterWake},
		{"8.1.8 three workers die between wake and reservation", allDeadAfterWake},
		{"8.1.8 a worker gives up while it is woken", givenUp},
		{"8.1.9 time line, one queue", oneQueueTimeline},
	} {
		t.Run(s.section, func(t *testing.T) {
			t.Parallel()
			s.play(newCrew(t, m, queue.Scheduling{}))
		})
	}
}

// Ten wait, one job comes: exactly one wakes, the one that waited longest.
func oneJob(k *crew) {
	k.start(10, task)
	k.push(task, 6)
	k.takes("W1", 6)
	k.waiting(names(2, 10), 0, 0)
}

func jobsInARow(k *crew) {
	k.start(10, task)
	for i, label := range []int{6, 7, 8, 9, 10} {
		k.push(task, label)
		k.takes(names(i+1, i+1)[0], label)
		k.waiting(names(i+2, 10), 0, 0)
	}
	k.order(task, names(6, 10)...)
}

// Three jobs in one call wake the three that waited longest, each takes one, nobody else wakes.
func batchAtOnce(k *crew) {
	k.start(10, task)
	k.push(task, 6, 7, 8)
	k.take(names(1, 3), 6, 7, 8)
	k.waiting(names(4, 10), 0, 0)
	k.order(task, names(4, 10)...)
}

// Who gets which job of a batch is fixed in the notes: W1 6, W2 7, W3 8. A hint fixes who wakes; who gets which is decided by the order of
// the reservations: in the order of the wakes it is that of the notes, in any other the oldest job is still the first to go.
func batchOutOfOrder(k *crew) {
	for _, w := range names(1, 4) {
		k.startOne(w, true, task)
	}
	for _, order := range [][]string{{"W1", "W2", "W3"}, {"W3", "W1", "W2"}} {
		k.push(task, 6, 7, 8)
		woke := map[string]bool{}
		for range 3 {
			e := k.next()
			woke[e.worker] = e.what == woken
		}
		if len(woke) != 3 || !woke["W1"] || !woke["W2"] || !woke["W3"] {
			k.t.Fatalf("%v woke, want W1, W2 and W3", woke)
		}
		k.waiting([]string{"W4"}, 0, 3)
		for i, w := range order {
			k.release(w)
			k.takes(w, 6+i)
		}
		k.waiting([]string{"W4"}, 0, 0)
		// W4 has waited longest now: it steps behind the others for the second round.
		for _, w := range names(1, 3) {
			k.goesWaiting(w)
		}
		k.push(task, 9)
		k.sees("W4", woken)
		k.release("W4")
		k.takes("W4", 9)
		k.goesWaiting("W4")
	}
}

func backAtTheTail(k *crew) {
	k.start(10, task)
	k.push(task, 6)
	k.takes("W1", 6)
	k.goesWaiting("W1")
	k.waiting(names(1, 10), 0, 0)
	k.order(task, append(names(2, 10), "W1")...)
}

func firstDone(k *crew) {
	k.start(10, task)
	k.push(task, 6, 7, 8)
	k.take(names(1, 3), 6, 7, 8)
	k.goesWaiting("W1")
	k.push(task, 9)
	k.takes("W4", 9)
	k.goesWaiting("W3")
	k.goesWaiting("W2")
	k.order(task, append(names(5, 10), "W1", "W3", "W2")...)
}

// While jobs are queued nobody waits: who is done takes the next at once, in the order of the queue.
func moreJobs(k *crew) {
	k.start(10, task)
	all := make([]int, 100)
	for i := range all {
		all[i] = i + 1
	}
	k.push(task, all...)
	k.take(names(1, 10), all[:10]...)
	k.waiting(nil, 0, 90)
	k.finish("W1")
	k.takes("W1", 11)
	k.finish("W3")
	k.takes("W3", 12)
	k.waiting(nil, 0, 88)
	workers := names(1, 10)
	for i, label := range all[12:] {
		w := workers[i%10]
		k.finish(w)
		k.takes(w, label)
	}
	k.waiting(nil, 0, 0)
	// The hints that nobody waited for wake nobody later.
	for _, w := range workers {
		k.goesWaiting(w)
	}
	k.order(task, workers...)
}

func moreWorkers(k *crew) {
	k.start(10, task)
	k.push(task, 1, 2, 3)
	k.take(names(1, 3), 1, 2, 3)
	k.waiting(names(4, 10), 0, 0)
	k.goesWaiting("W1")
	k.goesWaiting("W3")
	k.order(task, append(names(4, 10), "W1", "W3")...)
}

// A new worker waits behind the others. One that is killed (kill -9) leaves with its connection and is skipped.
func joinAndKill(k *crew) {
	k.startOne("W1", false, task)
	k.startOne("W2", false, task)
	kill, _ := k.startProcess("W3")
	k.startOne("W4", false, task)
	k.startOne("W5", false, task)
	k.startOne("W6", false, task)
	k.push(task, 6)
	k.takes("W1", 6)
	kill()
	k.without("W3")
	k.order(task, "W2", "W4", "W5", "W6")
}

// One that stops in an orderly way is skipped as well.
func joinAndStop(k *crew) {
	k.start(5, task)
	k.startOne("W6", false, task)
	k.push(task, 6)
	k.takes("W1", 6)
	k.stop("W3")
	k.without("W3")
	k.order(task, "W2", "W4", "W5", "W6")
}

// In the notes an element that was handed to a worker dies with it. A hint may be lost in the same moment, the job is not: a second
// later the next worker is woken for it, and it is served before younger jobs.
func deadAfterWake(k *crew) {
	k.guardDelay = 50 * time.Millisecond
	k.startOne("W1", true, task)
	k.startOne("W2", false, task)
	k.startOne("W3", false, task)
	k.push(task, 6)
	k.sees("W1", woken)
	k.stop("W1")
	k.takes("W2", 6)
	k.waiting([]string{"W3"}, k.vain(), 0)
	k.push(task, 7)
	k.takes("W3", 7)
	k.finish("W2")
	k.waits("W2")
	k.order(task, "W2")
}

// The same with a process that ends, and with it its connections, the moment it is woken.
func processDiesAfterWake(k *crew) {
	k.guardDelay = 50 * time.Millisecond
	_, ended := k.startProcess("W1")
	k.startOne("W2", false, task)
	k.startOne("W3", false, task)
	k.push(task, 6)
	ended()
	k.takes("W2", 6)
	k.waiting([]string{"W3"}, 0, 0)
}

// All that were woken die: each of their jobs is served all the same.
func allDeadAfterWake(k *crew) {
	k.guardDelay = 50 * time.Millisecond
	for _, w := range names(1, 3) {
		k.startOne(w, true, task)
	}
	for _, w := range names(4, 6) {
		k.startOne(w, false, task)
	}
	k.push(task, 6, 7, 8)
	for range 3 {
		if e := k.next(); e.what != woken {
			k.t.Fatalf("%s: %s; want W1, W2 and W3 woken", e.worker, e.what)
		}
	}
	for _, w := range names(1, 3) {
		k.stop(w)
	}
	k.take(names(4, 6), 6, 7, 8)
}

// A worker that gives up while a hint is on its way to it passes that on.
func givenUp(k *crew) {
	for _, w := range names(1, 2) {
		k.startOne(w, false, task)
	}
	s := open(k.t, redisq.Options{URL: k.url})
	s.SetGuardDelay(never)
	for label := range 20 {
		ctx, cancel := context.WithCancel(k.t.Context())
		done := make(chan error, 1)
		go func() { done <- s.Wait(ctx, queue.View{Queues: []string{task}}) }()
		k.push(task, label)
		cancel()
		if err := <-done; err == nil { // it was woken before it could give up
			jobs, err := s.Reserve(k.t.Context(), queue.ReserveParams{Worker: "w", View: queue.View{Queues: []string{task}}, Max: 1, Lease: time.Minute})
			if err != nil {
				k.t.Fatal(err)
			}
			if len(jobs) == 0 { // another had been woken as well
				e := k.next()
				k.goesWaiting(e.worker)
				continue
			}
			if out, err := s.Settle(k.t.Context(), []queue.Settlement{{Ref: ref(jobs[0]), Verb: queue.VerbAck}}); err != nil || out[0].Status != queue.SettleOK {
				k.t.Fatalf("Settle = %+v, %v", out, err)
			}
			continue
		}
		e := k.next()
		if e.what != strconv.Itoa(label) {
			k.t.Fatalf("%s: %s; want job %d", e.worker, e.what, label)
		}
		k.finish(e.worker)
		k.waits(e.worker)
	}
}

func (k *crew) stop(name string) {
	k.t.Helper()
	if err := k.workers[name].store.Close(); err != nil {
		k.t.Fatal(err)
	}
}

func (k *crew) without(name string) {
	k.t.Helper()
	k.until("all but "+name, func(b []string) bool { return !slices.Contains(b, name) })
}

func oneQueueTimeline(k *crew) {
	k.start(3, task)
	k.push(task, 6) // 0.5 s
	k.takes("W1", 6)
	k.waiting(names(2, 3), 0, 0)
	k.push(task, 7)
	k.takes("W2", 7)
	k.waiting(names(3, 3), 0, 0)
	k.push(task, 8)
	k.takes("W3", 8)
	k.waiting(nil, 0, 0)
	for i, label := range []int{9, 10, 11} { // 0.8 s
		k.push(task, label)
		k.waiting(nil, 0, int64(i+1))
	}
	for i, w := range names(1, 3) { // 4.5 s
		k.finish(w)
		k.takes(w, 9+i)
		k.waiting(nil, 0, int64(2-i))
	}
	for i, w := range names(1, 3) { // 10.5 s
		k.goesWaiting(w)
		k.waiting(names(1, i+1), 0, 0)
	}
	k.order(task, names(1, 3)...)
}

package redisq_test

import (
	"fmt"
	"testing"

	"github.com/taskhost/taskhost/queue"
)

const vip, normal = "vip", "normal"

// vipFirst makes the jobs of the queue vip more urgent by default: what the order of the keys in BRPOP says in the notes.
func vipFirst(maxConsecutiveHigh int) queue.Scheduling {
	urgent := 10
	return queue.Scheduling{Queues: map[string]queue.QueueSettings{vip: {Priority: &urgent}}, MaxConsecutiveHigh: maxConsecutiveHigh}
}

// TestR2TwoQueues is R2 §8.2, and the other half of 8.1.9: workers listen to vip and normal.
func TestR2TwoQueues(t *testing.T) { inBothModes(t, r2TwoQueues) }

func r2TwoQueues(t *testing.T, m mode) {
	for _, s := range []struct {
		section string
		guard   int
		play    func(k *crew)
	}{
		{"8.1.9 time line, two queues", 0, twoQueuesTimeline},
		{"8.2.2 vip while all wait", 0, vipWhileAllWait},
		{"8.2.3 vip and normal mixed", 0, func(k *crew) { mixed(k) }},
		{"8.2.4 back to both queues", 0, backToBoth},
		{"8.2.5 both queued", 0, bothQueued},
		{"8.2.6 starvation", 0, starvation},
		{"8.2.6 at most three in a row", 3, threeInARow},
		{"8.2.6 the count is of the store", 3, countOfTheStore},
		{"8.2.6 the count begins when somebody is passed over", 3, countFromPassing},
		{"8.2.7 workers on different queues", 0, differentQueues},
		{"8.2.7 a worker of all queues beside one that names them", 0, allAndNamed},
		{"queues with odd names", 0, oddNames},
	} {
		t.Run(s.section, func(t *testing.T) {
			t.Parallel()
			s.play(newCrew(t, m, vipFirst(s.guard)))
		})
	}
}

// The time line's pushes at 4.0 s and 5.0 s repeat those of its 1.0 s row: they are made once.
func twoQueuesTimeline(k *crew) {
	k.start(3, vip, normal)
	k.push(vip, 101) // 0.5 s
	k.takes("W1", 101)
	k.waiting(names(2, 3), 0, 0)
	k.push(normal, 201)
	k.takes("W2", 201)
	k.waiting(names(3, 3), 0, 0)
	k.push(normal, 202)
	k.takes("W3", 202)
	k.waiting(nil, 0, 0)
	k.push(vip, 102) // 1.0 s
	k.push(normal, 203)
	k.waiting(nil, 0, 2)
	k.finish("W1") // 4.5 s
	k.takes("W1", 102)
	k.waiting(nil, 0, 1)
	k.finish("W2")
	k.takes("W2", 203)
	k.waiting(nil, 0, 0)
	k.push(vip, 103) // 7.0 s
	k.waiting(nil, 0, 1)
	k.finish("W1")
	k.takes("W1", 103)
	for i, w := range []string{"W3", "W2", "W1"} { // 10.5 s
		k.goesWaiting(w)
		k.waiting([]string{"W3", "W2", "W1"}[:i+1], 0, 0)
	}
	k.order(normal, "W3", "W2", "W1")
}

// Who was woken by one queue waits in none.
func vipWhileAllWait(k *crew) {
	k.start(3, vip, normal)
	k.push(vip, 101)
	k.takes("W1", 101)
	k.waiting(names(2, 3), 0, 0)
	k.order(normal, names(2, 3)...)
}

// While workers wait, the first job to come is the first to be served, whatever its queue.
func mixed(k *crew) {
	k.start(3, vip, normal)
	k.push(vip, 101)
	k.takes("W1", 101)
	k.waiting(names(2, 3), 0, 0)
	k.push(normal, 201)
	k.takes("W2", 201)
	k.waiting(names(3, 3), 0, 0)
	k.push(vip, 102)
	k.takes("W3", 102)
	k.waiting(nil, 0, 0)
	k.push(normal, 202)
	k.waiting(nil, 0, 1)
}

func backToBoth(k *crew) {
	mixed(k)
	k.finish("W1")
	k.takes("W1", 202)
	k.waiting(nil, 0, 0)
	k.goesWaiting("W2")
	k.waiting(names(2, 2), 0, 0)
	k.goesWaiting("W3")
	k.waiting(names(2, 3), 0, 0)
	k.order(vip, names(2, 3)...)
}

// busy gives every worker a job, so that what comes next is queued.
func (k *crew) busy(n int) {
	k.t.Helper()
	k.start(n, vip, normal)
	for i, w := range names(1, n) {
		k.push(normal, i)
		k.takes(w, i)
	}
}

func bothQueued(k *crew) {
	k.busy(3)
	for _, label := range []int{201, 202, 203, 204, 205, 206} {
		k.push(normal, label)
	}
	k.push(vip, 101, 102, 103)
	k.waiting(nil, 0, 9)
	workers := names(1, 3)
	for i, label := range []int{101, 102, 103, 201, 202, 203, 204, 205, 206} {
		k.finish(workers[i%3])
		k.takes(workers[i%3], label)
		k.waiting(nil, 0, int64(8-i))
	}
}

// Without a guard, the default, normal waits for as long as vip goes on coming.
func starvation(k *crew) {
	k.busy(1)
	k.push(normal, 201)
	for label := 101; label <= 125; label++ {
		k.push(vip, label)
		k.finish("W1")
		k.takes("W1", label)
		k.waiting(nil, 0, 1)
	}
	k.finish("W1")
	k.takes("W1", 201)
}

// served lets workers take turns while vip goes on coming, one new job each time, and returns the queues of the jobs they took.
func (k *crew) served(rounds int, workers ...string) string {
	k.t.Helper()
	var pattern []byte
	v, n := 101, 201
	for i := range rounds {
		k.push(vip, v+i)
		w := workers[i%len(workers)]
		k.finish(w)
		e := k.next()
		switch e {
		case seen{w, fmt.Sprint(v + count(pattern, 'V'))}:
			pattern = append(pattern, 'V')
		case seen{w, fmt.Sprint(n + count(pattern, 'n'))}:
			pattern = append(pattern, 'n')
		default:
			k.t.Fatalf("after %s, %s took %s; want the oldest of vip or of normal", pattern, e.worker, e.what)
		}
	}
	return string(pattern)
}

func count(pattern []byte, c byte) int {
	n := 0
	for _, p := range pattern {
		if p == c {
			n++
		}
	}
	return n
}

func threeInARow(k *crew) {
	k.busy(1)
	k.push(normal, 201, 202, 203)
	if got := k.served(8, "W1"); got != "VVVnVVVn" {
		k.t.Errorf("served %s, want VVVnVVVn", got)
	}
}

// In the notes each worker counts for itself: with three workers, nine of vip could be served before one of normal. The store counts
// for all.
func countOfTheStore(k *crew) {
	k.busy(3)
	k.push(normal, 201, 202, 203)
	if got := k.served(12, names(1, 3)...); got != "VVVnVVVnVVVn" {
		k.t.Errorf("served %s, want VVVnVVVnVVVn", got)
	}
}

// In the notes a worker counts also while nothing of normal is there, and then blocks a second on the empty queue. The store counts
// only what passes somebody over, and no worker idles while vip has jobs.
func countFromPassing(k *crew) {
	k.busy(1)
	if got := k.served(5, "W1"); got != "VVVVV" {
		k.t.Fatalf("served %s while normal is empty, want VVVVV", got)
	}
	k.push(normal, 201)
	for i, label := range []int{106, 107, 108, 201, 109} {
		k.push(vip, 106+i)
		k.finish("W1")
		k.takes("W1", label)
	}
}

// Workers that name different queues wait in one line per queue: a job wakes the one that has waited longest of all who name its queue.
func differentQueues(k *crew) {
	k.startOne("W1", true, vip)
	k.startOne("W2", true, normal)
	k.startOne("W3", true, vip, normal)
	for _, s := range []struct {
		queue string
		label int
		takes string
		left  []string // still waiting then
	}{
		{vip, 101, "W1", []string{"W2", "W3"}},
		{normal, 201, "W2", []string{"W3"}},
		{vip, 102, "W3", nil},
	} {
		k.push(s.queue, s.label)
		k.sees(s.takes, woken)
		k.waiting(s.left, 0, 1)
		k.release(s.takes)
		k.takes(s.takes, s.label)
		k.waiting(s.left, 0, 0)
	}
	// Nobody listens to a queue in vain, and who has waited longest is first in each.
	for _, w := range []string{"W3", "W1", "W2"} {
		k.goesWaiting(w)
	}
	k.push(normal, 202)
	k.sees("W3", woken)
	k.push(vip, 103)
	k.sees("W1", woken)
	k.waiting([]string{"W2"}, 0, 2)
	k.release("W1")
	k.takes("W1", 103)
	k.release("W3")
	k.takes("W3", 202)
	k.waiting([]string{"W2"}, 0, 0)
}

// A worker of all queues waits in a line of its own, for it need not know them: a job wakes it and one of those that name its queue. One
// of the two wakes in vain, and goes to the tail.
func allAndNamed(k *crew) {
	k.startOne("W1", true)
	k.startOne("W2", true, vip, normal)
	k.push(vip, 101)
	k.bothWoke("W1", "W2")
	k.release("W1")
	k.takes("W1", 101)
	k.release("W2")
	k.waits("W2")
	k.waiting([]string{"W2"}, 1, 0)
	k.push(normal, 201)
	k.sees("W2", woken)
	k.release("W2")
	k.takes("W2", 201)
	k.waiting(nil, 1, 0)
}

// Names that mean something elsewhere are queues like any other.
func oddNames(k *crew) {
	for i, q := range []string{"due", "guard", "timer", "0"} {
		w := fmt.Sprint("W", i+1)
		k.startOne(w, false, q)
		k.waiting([]string{w}, 0, int64(i))
		k.push("other", i)
		k.waiting([]string{w}, 0, int64(i+1))
		k.push(q, 100+i)
		k.takes(w, 100+i)
		k.waiting(nil, 0, int64(i+1))
	}
}

// bothWoke checks that two workers woke, in whatever order.
func (k *crew) bothWoke(a, b string) {
	k.t.Helper()
	x, y := k.next(), k.next()
	if x.what != woken || y.what != woken || x.worker == y.worker || x.worker != a && x.worker != b || y.worker != a && y.worker != b {
		k.t.Fatalf("%v and %v; want %s and %s woken", x, y, a, b)
	}
}

package redisq_test

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/taskhost/taskhost/queue"
	"github.com/taskhost/taskhost/queue/redisq"
)

// The tests named TestR2 play the scenarios of the notes on several workers (R2 §8), each under its section number. A worker is a
// Store of its own, hence has connections of its own, and loops over Reserve(1) and Wait. Time in the notes ("at 4 min W1 is done")
// only orders events: here the test says when a worker is done, and goes on when the event it caused has been seen.
//
// In the notes Redis hands the element itself to the worker that has waited longest. Here it hands it a hint, and the worker
// reserves. In between, another worker may take the job; the one that was woken then wakes in vain and goes to the tail. Where
// a scenario leaves room for that, the worker is "gated": it stops between its wake and its Reserve until the test lets it go on.

// patience bounds every wait for an event; none should come near it.
const patience = 30 * time.Second

// seen is one thing that a worker did: it took a job, or it was woken (gated workers only).
type seen struct{ worker, what string }

const woken = "woken"

// crew is several workers on one Redis.
type crew struct {
	t        *testing.T
	url      string
	id       string // what the names of the workers' connections begin with
	producer *redisq.Store
	admin    *redis.Client
	events   chan seen
	loops    sync.WaitGroup
	workers  map[string]*worker

	guardDelay time.Duration // of the workers started from now on
}

// worker reserves one job at a time, and waits while there is none.
type worker struct {
	name   string
	store  *redisq.Store
	view   queue.View
	gated  bool
	gate   chan struct{}
	finish chan struct{}
	vain   atomic.Int64 // wakes after which there was no job
}

func newCrew(t *testing.T, m mode, c queue.Scheduling) *crew {
	t.Helper()
	at := m.url(t)
	_, id, _ := strings.Cut(at, "prefix=")
	k := &crew{t: t, url: at, id: id, producer: open(t, redisq.Options{URL: at}), admin: client(t, shared.Server(t).Addr()),
		events: make(chan seen, 100), workers: map[string]*worker{}, guardDelay: never}
	if err := k.producer.Configure(t.Context(), c); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(k.loops.Wait)
	return k
}

// names is W<from> … W<to>.
func names(from, to int) []string {
	var all []string
	for i := from; i <= to; i++ {
		all = append(all, "W"+strconv.Itoa(i))
	}
	return all
}

func (k *crew) urlOf(name string) string {
	return k.url + "&client_name=" + url.QueryEscape(k.id+name)
}

// never is a delay that does not end in a test: a worker that takes its time between wake and Reserve is not taken for dead.
const never = time.Hour

// startOne starts a worker that listens to queues, and returns when it waits: the order of starts is the order of waiting.
func (k *crew) startOne(name string, gated bool, queues ...string) {
	k.t.Helper()
	w := &worker{name: name, store: open(k.t, redisq.Options{URL: k.urlOf(name)}), view: queue.View{Queues: queues}, gated: gated,
		gate: make(chan struct{}), finish: make(chan struct{})}
	w.store.SetGuardDelay(k.guardDelay)
	k.workers[name] = w
	k.loops.Go(func() {
		if err := k.work(k.t.Context(), w); err != nil && k.t.Context().Err() == nil && !errors.Is(err, queue.ErrClosed) {
			k.t.Errorf("%s: %v", name, err)
		}
	})
	k.waits(name)
}

// start starts W1 … W<n>.
func (k *crew) start(n int, queues ...string) {
	k.t.Helper()
	for _, name := range names(1, n) {
		k.startOne(name, false, queues...)
	}
}

func (k *crew) work(ctx context.Context, w *worker) error {
	wait := func(c <-chan struct{}) error {
		select {
		case <-c:
			return nil
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	for waited := false; ; {
		jobs, err := w.store.Reserve(ctx, queue.ReserveParams{Worker: w.name, View: w.view, Max: 1, Lease: time.Minute})
		if err != nil {
			return err
		}
		if len(jobs) == 1 {
			k.events <- seen{w.name, string(jobs[0].Payload)}
			if err := wait(w.finish); err != nil {
				return err
			}
			out, err := w.store.Settle(ctx, []queue.Settlement{{Ref: ref(jobs[0]), Verb: queue.VerbAck}})
			if err != nil || out[0].Status != queue.SettleOK {
				return fmt.Errorf("ack: %+v %w", out, err)
			}
			waited = false
			continue
		}
		if waited {
			w.vain.Add(1)
		}
		if err := w.store.Wait(ctx, w.view); err != nil {
			return err
		}
		waited = true
		if w.gated {
			k.events <- seen{w.name, woken}
			if err := wait(w.gate); err != nil {
				return err
			}
		}
	}
}

// push enqueues jobs in one call.
func (k *crew) push(q string, labels ...int) {
	k.t.Helper()
	specs := make([]queue.JobSpec, len(labels))
	for i, l := range labels {
		specs[i] = queue.JobSpec{Tenant: "default", Queue: q, Type: "send", Payload: []byte(strconv.Itoa(l)), MaxAttempts: 1}
	}
	put(k.t, k.producer, specs...)
}

func (k *crew) next() seen {
	k.t.Helper()
	select {
	case e := <-k.events:
		return e
	case <-time.After(patience):
		k.t.Fatal("no worker did anything")
	}
	return seen{}
}

// sees checks what happens next.
func (k *crew) sees(worker, what string) {
	k.t.Helper()
	if e := k.next(); e != (seen{worker, what}) {
		k.t.Fatalf("%s: %s; want %s: %s", e.worker, e.what, worker, what)
	}
}

// takes checks that the next thing to happen is a worker's taking a job.
func (k *crew) takes(worker string, label int) {
	k.t.Helper()
	k.sees(worker, strconv.Itoa(label))
}

// take checks that these workers, in whatever order, take these jobs, one each.
func (k *crew) take(workers []string, labels ...int) {
	k.t.Helper()
	var who, what, want []string
	for _, l := range labels {
		e := k.next()
		who, what, want = append(who, e.worker), append(what, e.what), append(want, strconv.Itoa(l))
	}
	for _, list := range [][]string{who, what, want} {
		slices.Sort(list)
	}
	if workers = slices.Sorted(slices.Values(workers)); !slices.Equal(who, workers) || !slices.Equal(what, want) {
		k.t.Fatalf("%v took %v; want %v, one of %v each", who, what, workers, want)
	}
}

// finish lets a worker be done with its job; it goes on looking for the next.
func (k *crew) finish(name string) {
	k.t.Helper()
	signal(k.t, name, k.workers[name].finish)
}

// release lets a gated worker that was woken reserve.
func (k *crew) release(name string) {
	k.t.Helper()
	signal(k.t, name, k.workers[name].gate)
}

func signal(t *testing.T, name string, c chan<- struct{}) {
	t.Helper()
	select {
	case c <- struct{}{}:
	case <-time.After(patience):
		t.Fatalf("%s is not there", name)
	}
}

// goesWaiting lets a worker be done and find nothing: it joins the waiting at the tail.
func (k *crew) goesWaiting(name string) {
	k.t.Helper()
	k.finish(name)
	k.waits(name)
}

const waiterEnv = "REDISQ_TEST_WAITER"

// runWaiter is the life of the process that startProcess starts: it waits for a job like every worker.
func runWaiter() {
	s, err := redisq.Open(context.Background(), redisq.Options{URL: os.Getenv(waiterEnv)})
	if err == nil {
		err = s.Wait(context.Background(), queue.View{Queues: []string{"task"}})
	}
	fmt.Fprintln(os.Stderr, "the wait ended:", err)
	os.Exit(1)
}

// startProcess starts a worker of the queue task in a process of its own, which ends as soon as it is woken. It returns what kills it as
// kill -9 does, and what waits for its end.
func (k *crew) startProcess(name string) (kill, ended func()) {
	k.t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), waiterEnv+"="+k.urlOf(name))
	cmd.Stderr = os.Stderr
	if err := cmd.Start(); err != nil {
		k.t.Fatal(err)
	}
	kill = sync.OnceFunc(func() {
		if err := cmd.Process.Kill(); err != nil {
			k.t.Errorf("%s: it had ended by itself: %v", name, err)
		}
		ended()
	})
	ended = sync.OnceFunc(func() { _ = cmd.Wait() }) // "exit status 1"
	k.t.Cleanup(func() {
		_ = cmd.Process.Kill() // it may have ended
		ended()
	})
	k.waits(name)
	return kill, ended
}

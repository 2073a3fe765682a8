package redisq_test

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/taskhost/taskhost/queue"
	"github.com/taskhost/taskhost/queue/redisq"
)

func capped(n int) queue.QueueChange {
	return queue.QueueChange{Set: queue.QueueSettings{MaxRunning: &n}}
}

func set(t *testing.T, s *redisq.Store, q string, c queue.QueueChange) {
	t.Helper()
	if _, err := s.SetQueue(t.Context(), "acme", q, c); err != nil {
		t.Fatal(err)
	}
}

// A count of what runs that is wrong is reported by the audit, and right after it.
func TestAuditCountsAnew(t *testing.T) {
	t.Parallel()
	server := own(t)
	s := open(t, redisq.Options{URL: server.URL("x:")})
	admin := client(t, server.Addr())
	set(t, s, "mail", capped(2))
	keyed := mail("k")
	keyed.ConcurrencyKey = "k"
	put(t, s, keyed, keyed, mail("a"), mail("b"))
	jobs := take(t, s, 2, time.Minute)
	for key, field := range map[string]string{"x:running": "q:acme/mail", "x:slots:acme/mail": "k"} {
		if n, err := admin.HExists(t.Context(), key, field).Result(); err != nil || !n {
			t.Fatalf("%s has no field %s (%v): the counts are not laid out as this test thinks", key, field, err)
		}
	}
	if err := admin.HSet(t.Context(), "x:running", "q:acme/mail", 7).Err(); err != nil {
		t.Fatal(err)
	}
	if err := admin.HSet(t.Context(), "x:slots:acme/mail", "k", "5 0 1").Err(); err != nil {
		t.Fatal(err)
	}
	r, err := s.Audit(t.Context())
	if err != nil || len(r.Faults) != 2 {
		t.Fatalf("audit of wrong counts = %+v, %v; want two faults", r, err)
	}
	books(t, s)
	settle(t, s, queue.VerbAck, jobs...)
	settle(t, s, queue.VerbAck, take(t, s, 2, time.Minute)...)
	books(t, s)
}

// Jobs that run already count from the moment a cap comes.
func TestCapOfWhatRuns(t *testing.T) {
	t.Parallel()
	s := open(t, redisq.Options{})
	put(t, s, mail("a"), mail("b"), mail("c"), mail("d"))
	running := take(t, s, 3, time.Minute)
	set(t, s, "mail", capped(3))
	books(t, s)
	if jobs, err := s.Reserve(t.Context(), queue.ReserveParams{Worker: "w", Max: 9, Lease: time.Minute}); err != nil || len(jobs) > 0 {
		t.Fatalf("reserved %d jobs beside as many as may run (%v)", len(jobs), err)
	}
	settle(t, s, queue.VerbAck, running[0])
	take(t, s, 1, time.Minute)
	set(t, s, "mail", queue.QueueChange{ClearMaxRunning: true})
	books(t, s)
	settle(t, s, queue.VerbAck, running[1:]...)
	books(t, s)
}

// A store without limits keeps nothing for them.
func TestNoLimitsNoKeys(t *testing.T) {
	t.Parallel()
	server := own(t)
	s := open(t, redisq.Options{URL: server.URL("x:")})
	for i := range 50 {
		put(t, s, mail(fmt.Sprint(i)))
	}
	settle(t, s, queue.VerbRelease, take(t, s, 20, time.Minute)...)
	settle(t, s, queue.VerbAck, take(t, s, 30, time.Minute)...)
	keys, err := client(t, server.Addr()).Keys(t.Context(), "x:*").Result()
	if err != nil {
		t.Fatal(err)
	}
	for _, k := range keys {
		for _, of := range []string{"limits", "running", "bucket", "park", "bands:", "slots:", "kwait:", "aside:", "asides:", "place:", "duty"} {
			if strings.HasPrefix(k, "x:"+of) {
				t.Errorf("there is a key %s", k)
			}
		}
	}
}

// Many hosts in real time: a cap is never exceeded, a rate and a key neither, and all jobs are done.
func TestLimitsOverHosts(t *testing.T) {
	t.Parallel()
	const hosts, jobs, limit = 4, 120, 3
	url := shared.URL(t)
	producer := open(t, redisq.Options{URL: url})
	set(t, producer, "mail", capped(limit))
	fast := queue.Rate{Count: 200, Per: time.Second}
	set(t, producer, "rated", queue.QueueChange{Set: queue.QueueSettings{Rate: &fast}})
	for i := range jobs {
		a, b, c := mail("a"), mail("b"), mail("c")
		b.Queue, c.Queue, c.ConcurrencyKey = "rated", "keyed", fmt.Sprint("k", i%2)
		put(t, producer, a, b, c)
	}
	started, err := producer.Now(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	live, most := map[string]*atomic.Int64{}, map[string]*atomic.Int64{}
	for _, of := range []string{"mail", "rated", "k0", "k1"} {
		live[of], most[of] = new(atomic.Int64), new(atomic.Int64)
	}
	of := func(j *queue.Job) string { return cmp.Or(j.ConcurrencyKey, j.Queue) }
	var left atomic.Int64
	left.Store(3 * jobs)
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	work := func(s *redisq.Store, p queue.ReserveParams) error {
		got, err := s.Reserve(t.Context(), p)
		if err != nil {
			return err
		}
		if len(got) == 0 {
			return s.Wait(ctx, queue.View{})
		}
		for _, j := range got {
			highest(most[of(j)], live[of(j)].Add(1))
		}
		for _, j := range got { // before the store knows, so that this count is never above the store's
			live[of(j)].Add(-1)
		}
		list := make([]queue.Settlement, len(got))
		for k, j := range got {
			list[k] = queue.Settlement{Ref: ref(j), Verb: queue.VerbAck}
		}
		if _, err := s.Settle(t.Context(), list); err != nil {
			return err
		}
		if left.Add(int64(-len(got))) <= 0 {
			stop()
		}
		return nil
	}
	var group sync.WaitGroup
	for i := range hosts {
		s := open(t, redisq.Options{URL: url})
		group.Go(func() {
			for left.Load() > 0 {
				if err := work(s, queue.ReserveParams{Worker: fmt.Sprint(i), Max: 1 + i, Lease: time.Minute}); err != nil && ctx.Err() == nil {
					t.Error(err)
					return
				}
			}
		})
	}
	group.Wait()
	for of, n := range most {
		if bound := map[string]int64{"mail": limit, "rated": jobs, "k0": 1, "k1": 1}[of]; n.Load() > bound {
			t.Errorf("%d jobs of %s ran at once, want at most %d", n.Load(), of, bound)
		}
	}
	ended, err := producer.Now(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if least := (jobs-1)*fast.Per/time.Duration(fast.Count) - queue.RateSlack; ended.Sub(started) < least {
		t.Errorf("%d jobs at %s took %s, want %s or more", jobs, fast, ended.Sub(started), least)
	}
	if r := books(t, producer); r.Counts[queue.StateSucceeded] != 3*jobs {
		t.Errorf("audit = %+v, want all done", r)
	}
}

func highest(most *atomic.Int64, n int64) {
	for had := most.Load(); n > had && !most.CompareAndSwap(had, n); had = most.Load() {
	}
}

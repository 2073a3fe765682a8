package redisq_test

import (
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/taskhost/taskhost/queue"
	"github.com/taskhost/taskhost/queue/redisq"
)

// A store has the mode of its first host. One of the other mode is refused when it opens, and, where the mode was changed under it, at
// its next call.
func TestOneModePerStore(t *testing.T) {
	t.Parallel()
	server := own(t)
	modes := []mode{redisq.ModeLua, redisq.ModeNoLua}
	refused := func(what string, err error) {
		t.Helper()
		if !errors.Is(err, queue.ErrInvalid) || !strings.Contains(err.Error(), "taskhost store mode") {
			t.Errorf("%s: %v, want a refusal that says what to do", what, err)
		}
	}
	for i, m := range modes {
		other := modes[1-i]
		s := open(t, redisq.Options{URL: m.of(server)})
		put(t, s, mail(string(m)))
		_, err := redisq.Open(t.Context(), redisq.Options{URL: other.of(server)})
		refused(string(other)+" opens a store of mode "+string(m), err)

		before, now, err := redisq.SetMode(t.Context(), redisq.Options{URL: other.of(server)})
		if err != nil || before != string(m) || now != string(other) {
			t.Fatalf("SetMode: %q to %q, %v", before, now, err)
		}
		_, err = s.Enqueue(t.Context(), []queue.JobSpec{mail("x")})
		refused("a host of mode "+string(m)+" that was left over", err)
		_, err = s.Reserve(t.Context(), queue.ReserveParams{Max: 1, Lease: time.Minute})
		refused("its reservation", err)
		// Nothing is lost by the change; what was enqueued before is there.
		next := open(t, redisq.Options{URL: other.of(server)})
		settle(t, next, queue.VerbAck, take(t, next, 1, time.Minute)...)
		if r := books(t, next); r.Enqueued != int64(i+1) || r.Counts[queue.StateSucceeded] != int64(i+1) {
			t.Errorf("books after %s: %+v", m, r)
		}
	}
	if _, _, err := redisq.SetMode(t.Context(), redisq.Options{URL: "redis://127.0.0.1:1"}); !errors.Is(err, queue.ErrUnavailable) {
		t.Errorf("nobody there: %v", err)
	}
	if _, _, err := redisq.SetMode(t.Context(), redisq.Options{URL: "redis://h?lua=2"}); !errors.Is(err, queue.ErrInvalid) {
		t.Errorf("no mode: %v", err)
	}
}

// With Lua, a Redis that does not run scripts for this user is told apart at the start.
func TestScriptsNotAllowed(t *testing.T) {
	t.Parallel()
	url := strings.Replace(shared.URLWithoutScripts(t), "lua=0&", "", 1)
	if _, err := redisq.Open(t.Context(), redisq.Options{URL: url}); !errors.Is(err, queue.ErrUnavailable) || !strings.Contains(err.Error(), "NOPERM") {
		t.Errorf("a user without scripts: %v", err)
	}
}

// Several hosts without Lua take every job once, whatever they do to each other.
func TestHostsWithoutLua(t *testing.T) {
	t.Parallel()
	const hosts, jobs = 4, 60
	url := shared.URLWithoutScripts(t)
	var mu sync.Mutex
	seen := map[string]int{}
	var wg sync.WaitGroup
	var stores []*redisq.Store
	for range hosts {
		stores = append(stores, open(t, redisq.Options{URL: url}))
	}
	for _, s := range stores {
		wg.Go(func() {
			for range jobs / hosts {
				out, err := s.Enqueue(t.Context(), []queue.JobSpec{mail("x")})
				if err != nil || out[0].Status != queue.EnqueueCreated {
					t.Errorf("enqueue: %+v %v", out, err)
					return
				}
				got, err := s.Reserve(t.Context(), queue.ReserveParams{Worker: "w", Max: 3, Lease: time.Minute})
				if err != nil {
					t.Errorf("reserve: %v", err)
					return
				}
				var list []queue.Settlement
				for _, j := range got {
					mu.Lock()
					seen[j.ID]++
					mu.Unlock()
					list = append(list, queue.Settlement{Ref: ref(j), Verb: queue.VerbAck})
				}
				settled, err := s.Settle(t.Context(), list)
				for _, o := range settled {
					if err != nil || o.Status != queue.SettleOK {
						t.Errorf("settle: %+v %v", o, err)
					}
				}
			}
		})
	}
	wg.Wait()
	left, err := stores[0].Reserve(t.Context(), queue.ReserveParams{Worker: "w", Max: jobs, Lease: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	for _, j := range left {
		seen[j.ID]++
	}
	for id, n := range seen {
		if n != 1 {
			t.Errorf("%s was taken %d times", id, n)
		}
	}
	if r := books(t, stores[0]); len(seen) != jobs || r.Enqueued != jobs || r.Counts[queue.StateRunning] != int64(len(left)) {
		t.Errorf("%d of %d jobs were taken, %d of them at the end; %+v", len(seen), jobs, len(left), r)
	}
}

// A full Redis takes nothing from hosts without Lua, not even the end of a job: transactions have no allow-oom. Nothing is lost or half
// done, and all goes on when there is room.
func TestFullRedisWithoutLua(t *testing.T) {
	t.Parallel()
	server := own(t, "--maxmemory", "12mb", "--maxmemory-policy", "noeviction")
	s := open(t, redisq.Options{URL: mode(redisq.ModeNoLua).of(server)})
	ids := put(t, s, mail("running"), mail("waiting"))
	running := take(t, s, 1, time.Minute)
	admin := client(t, server.Addr())
	if err := admin.ConfigSet(t.Context(), "maxmemory", "1").Err(); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Enqueue(t.Context(), []queue.JobSpec{mail("x")}); !errors.Is(err, queue.ErrUnavailable) || !strings.Contains(err.Error(), "maxmemory") {
		t.Errorf("enqueue: %v", err)
	}
	if _, err := s.Settle(t.Context(), []queue.Settlement{{Ref: ref(running[0]), Verb: queue.VerbAck}}); !errors.Is(err, queue.ErrUnavailable) {
		t.Errorf("settle: %v", err)
	}
	if j, err := s.GetJob(t.Context(), "acme", ids[1]); err != nil || j.State != queue.StateReady {
		t.Errorf("reading goes on: %+v %v", j, err)
	}
	if err := admin.ConfigSet(t.Context(), "maxmemory", "12mb").Err(); err != nil {
		t.Fatal(err)
	}
	settle(t, s, queue.VerbAck, running...)
	settle(t, s, queue.VerbAck, take(t, s, 1, time.Minute)...)
	if r := books(t, s); r.Enqueued != 2 || r.Counts[queue.StateSucceeded] != 2 {
		t.Errorf("books: %+v", r)
	}
}

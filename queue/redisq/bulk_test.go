package redisq_test

import (
	"context"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/taskhost/taskhost/queue"
	"github.com/taskhost/taskhost/queue/queuetest"
	"github.com/taskhost/taskhost/queue/redisq"
)

// beside runs work while it pings Redis every few milliseconds, and logs how long the pings took and which commands took Redis longer
// than 10 ms.
func beside(t *testing.T, admin *redis.Client, what string, work func()) {
	t.Helper()
	if err := admin.ConfigSet(t.Context(), "slowlog-log-slower-than", "10000").Err(); err != nil {
		t.Fatal(err)
	}
	if err := admin.Do(t.Context(), "slowlog", "reset").Err(); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	took := make(chan []time.Duration)
	go func() {
		var all []time.Duration
		tick := time.NewTicker(5 * time.Millisecond)
		defer tick.Stop()
		for {
			start := time.Now()
			if admin.Ping(ctx).Err() == nil {
				all = append(all, time.Since(start))
			}
			select {
			case <-tick.C:
			case <-ctx.Done():
				took <- all
				return
			}
		}
	}()
	start := time.Now()
	work()
	lasted := time.Since(start)
	cancel()
	pings := <-took
	slices.Sort(pings)
	slow, err := admin.SlowLogGet(t.Context(), 100).Result()
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, e := range slow {
		names = append(names, e.Duration.String()+" "+strings.Join(e.Args[:min(len(e.Args), 1)], " "))
	}
	if len(pings) > 0 {
		t.Logf("%s in %s: %d pings, median %s, p99 %s, longest %s; commands over 10 ms: %v", what, lasted.Round(time.Millisecond), len(pings),
			pings[len(pings)/2], pings[len(pings)*99/100], pings[len(pings)-1], names)
	}
}

// Work on a long dead-letter queue: pages, a replay and a purge in chunks; a million jobs with TASKHOST_TEST_LONG.
func TestManyDead(t *testing.T) {
	n := 20_000
	if os.Getenv("TASKHOST_TEST_LONG") != "" {
		n = 1_000_000
	}
	server := own(t)
	s := open(t, redisq.Options{URL: server.URL("x:")})
	admin := client(t, server.Addr())
	queuetest.FillDead(t, s, n)
	queuetest.DeadPages(t, s, n)
	f := queue.DeadFilter{Tenant: "acme"}
	inChunks := func(chunk func(f queue.DeadFilter) (queue.DeadChunk, error)) (changed int) {
		for {
			c, err := chunk(f)
			if err != nil {
				t.Fatal(err)
			}
			changed += c.Changed
			if f.After = c.Last; c.Done {
				f.After = ""
				return changed
			}
		}
	}
	const size = 500
	f.Queue = "q0"
	beside(t, admin, "replay of a tenth", func() {
		if got := inChunks(func(f queue.DeadFilter) (queue.DeadChunk, error) { return s.ReplayDead(t.Context(), f, "", size) }); got != n/10 {
			t.Errorf("%d of %d jobs were replayed", got, n/10)
		}
	})
	beside(t, admin, "cancel of what was replayed", func() {
		change(t, s, queue.ChangeCancel, queue.JobFilter{Tenant: "acme", States: []queue.State{queue.StateReady}, OldestFirst: true, Limit: queue.ListLimitMax}, n/10)
	})
	f.Queue = ""
	beside(t, admin, "purge of the rest", func() {
		if got := inChunks(func(f queue.DeadFilter) (queue.DeadChunk, error) { return s.PurgeDead(t.Context(), f, size) }); got != n-n/10 {
			t.Errorf("%d of %d jobs were purged", got, n-n/10)
		}
	})
}

// change applies a change to what a filter selects until it selects nothing.
func change(t *testing.T, s *redisq.Store, a queue.ChangeAction, f queue.JobFilter, want int) {
	t.Helper()
	changed := 0
	for f.Cursor = ""; ; {
		page, err := s.ListJobs(t.Context(), f)
		if err != nil {
			t.Fatal(err)
		}
		ids := make([]string, len(page.Jobs))
		for i, j := range page.Jobs {
			ids[i] = j.ID
		}
		out, err := s.ChangeJobs(t.Context(), "acme", queue.Change{Action: a}, ids)
		if err != nil {
			t.Fatal(err)
		}
		for _, o := range out {
			if o == queue.Changed {
				changed++
			}
		}
		f.Cursor = page.Next
		if page.Next == "" && len(page.Jobs) == 0 {
			break
		}
	}
	if changed != want {
		t.Errorf("%s changed %d jobs, want %d", a, changed, want)
	}
}

package sqliteq_test

import (
	"fmt"
	"os"
	"runtime"
	"testing"
	"time"

	"github.com/taskhost/taskhost/queue"
	"github.com/taskhost/taskhost/queue/sqliteq"
)

// A backlog is back after a restart, in its order, in little memory.
func TestRestartWithBacklog(t *testing.T) { // not parallel: it measures the heap
	n := 50_000
	if os.Getenv("TASKHOST_TEST_LONG") != "" {
		n = 1_000_000
	}
	dir := t.TempDir()
	s := open(t, sqliteq.Options{Dir: dir, CacheBytes: -1})
	const queues = 10
	for at := 0; at < n; at += 1000 {
		specs := make([]queue.JobSpec, 1000)
		for i := range specs {
			specs[i] = queue.JobSpec{Tenant: "acme", Queue: fmt.Sprint("q", (at+i)%queues), Type: "work", Payload: fmt.Appendf(nil, "%d", at+i), MaxAttempts: 3}
		}
		enqueue(t, s, specs...)
	}
	// Some have a past.
	jobs := reserve(t, s, 100)
	settle(t, s, queue.VerbRelease, jobs[:50]...)
	settle(t, s, queue.VerbYield, jobs[50:]...)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}

	runtime.GC()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	start := time.Now()
	s = open(t, sqliteq.Options{Dir: dir})
	took := time.Since(start)
	runtime.GC()
	runtime.ReadMemStats(&after)
	perJob := float64(int64(after.HeapAlloc)-int64(before.HeapAlloc)) / float64(n)
	t.Logf("%d jobs: opened in %s, %.1f bytes of heap per job", n, took.Round(time.Millisecond), perJob)
	if perJob > 100 {
		t.Errorf("%.1f bytes of heap per job, want at most 100", perJob)
	}
	if limit := 20 * time.Second; took > limit {
		t.Errorf("opened in %s, want at most %s", took, limit)
	}

	seen := make(map[string]bool, n)
	last := map[string]int{}
	yielded := map[string]bool{}
	for _, j := range jobs[50:] {
		yielded[j.ID] = true
	}
	first := true
	for len(seen) < n {
		batch := reserve(t, s, 1000)
		if len(batch) == 0 {
			t.Fatalf("%d of %d jobs came back", len(seen), n)
		}
		if first {
			first = false
			for i, j := range batch[:50] {
				if j.ID != jobs[i].ID {
					t.Fatalf("job %d after the restart is not the %d. of the released", i, i)
				}
			}
		}
		for _, j := range batch {
			if seen[j.ID] {
				t.Fatalf("%s came back twice", j.ID)
			}
			seen[j.ID] = true
			var number int
			if _, err := fmt.Sscan(string(j.Payload), &number); err != nil {
				t.Fatal(err)
			}
			if !yielded[j.ID] {
				if number < last[j.Queue] {
					t.Fatalf("job %d of %s came after %d", number, j.Queue, last[j.Queue])
				}
				last[j.Queue] = number
			} else if len(seen) <= n-queues*100 && n > 10_000 {
				t.Fatalf("yielded job %d came as number %d of %d", number, len(seen), n)
			}
		}
		settle(t, s, queue.VerbAck, batch...)
	}
	audit(t, s)
}

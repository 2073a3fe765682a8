package e2e

import (
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/taskhost/taskhost/queue/redisq/redistest"
)

// The store is away for several leases while 100 jobs run: they go on running, and each ends once, none counted as a crash and none
// in the dead-letter queue. In full (TASKHOST_TEST_LONG=1): jobs of five minutes, the default lease, 60 s away.
func TestOutageLongerThanALease(t *testing.T) {
	t.Parallel()
	const jobs = 100
	lease, away, work := 2*time.Second, 5*time.Second, 9*time.Second
	if os.Getenv("TASKHOST_TEST_LONG") != "" {
		lease, away, work = 15*time.Second, time.Minute, 5*time.Minute
	}
	redis, err := redistest.Start(t.Context(), t.TempDir(), "--appendonly", "yes", "--appendfsync", "always")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = redis.Kill() }) // it may be gone
	dir := t.TempDir()
	s := serve(t, dir, samplesConfig(t, dir)+fmt.Sprintf("store: %q\nworker: {concurrency: %d, lease: %s}\n"+
		"wasm: {runners: 2, slots: %d}\ndefaults: {memory: 4MiB, timeout: 10m}\n", redis.URL("outage:"), jobs, lease, jobs/2))
	ids := s.enqueue(jobs, fmt.Sprintf(`{"type":"sleep","payload":{"ms":%d}}`, work.Milliseconds()))
	s.running("default", jobs)

	if err := redis.Kill(); err != nil {
		t.Fatal(err)
	}
	<-time.After(away)
	if err := redis.Restart(); err != nil {
		t.Fatal(err)
	}
	s.running("default", jobs) // asks until the store answers again

	reruns := 0
	for _, id := range ids {
		j := s.wait(id)
		succeeded := 0
		for _, at := range j.Attempts {
			if at.Outcome == "succeeded" {
				succeeded++
			}
		}
		reruns += j.Interruptions
		if j.State != "succeeded" || succeeded != 1 || j.Crashes != 0 || j.Attempt != 1 {
			t.Errorf("%s is %s after %d crashes and %d attempts, %d of them succeeded; want one that succeeded", id, j.State, j.Crashes, j.Attempt, succeeded)
		}
	}
	t.Logf("%d jobs of %s, the store away for %s at a lease of %s: all succeeded once, %d interruptions", jobs, work, away, lease, reruns)
	if reruns > 0 {
		t.Errorf("%d jobs were run again although their host never went away", reruns)
	}
}

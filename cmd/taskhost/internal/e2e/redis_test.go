package e2e

import (
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/taskhost/taskhost/queue/redisq/redistest"
)

// redisServer starts a Redis of the test's own.
func redisServer(t *testing.T) *redistest.Server {
	t.Helper()
	r, err := redistest.Start(t.Context(), t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := r.Kill(); err != nil {
			t.Error(err)
		}
	})
	return r
}

// Two hosts on one Redis: jobs enqueued at one run on both; when one is killed, the other finishes everything, what the dead one
// was running within a lease and two seconds, and nothing is accepted twice.
func TestTwoHostsOnOneRedis(t *testing.T) {
	t.Parallel()
	const (
		jobs, slots = 120, 10
		lease       = 3 * time.Second
	)
	url := redisServer(t).URL("e2e:")
	start := func() *server {
		dir := t.TempDir()
		return serve(t, dir, samplesConfig(t, dir)+fmt.Sprintf("store: %q\nworker: {concurrency: %d, lease: %s}\nwasm: {runners: 1, slots: %d}\ndefaults: {memory: 4MiB}\n",
			url, slots, lease, slots))
	}
	a, b := start(), start()
	ids := a.enqueue(jobs, `{"type":"sleep","payload":{"ms":400}}`)
	b.running("default", 2*slots)
	a.kill()
	killed := time.Now()

	crashed, latest := 0, time.Duration(0)
	for _, id := range ids {
		j := b.wait(id)
		succeeded := 0
		for _, at := range j.Attempts {
			if at.Outcome == "succeeded" {
				succeeded++
			}
		}
		if j.State != "succeeded" || succeeded != 1 {
			t.Errorf("%s is %s with %d succeeded attempts, want succeeded with 1", id, j.State, succeeded)
		}
		if j.Crashes > 0 {
			crashed++
			latest = max(latest, j.StartedAt.Sub(killed))
		}
	}
	t.Logf("%d jobs succeeded once; the %d of the killed host ran again at most %s after its death (lease %s)", jobs, crashed, latest, lease)
	if crashed == 0 || crashed > slots {
		t.Errorf("%d jobs count a crash, want 1 to %d", crashed, slots)
	}
	if limit := lease + 4*time.Second; latest > limit { // the promise is a lease and 2 s; the rest is a busy machine's
		t.Errorf("redelivery took %s, want at most %s", latest, limit)
	}
	b.signal(os.Interrupt)
	if code, _ := b.waitExit(20 * time.Second); code != 0 {
		t.Errorf("exit code %d, want 0", code)
	}
}

// A host that starts before its Redis waits for it, and can be stopped while it does.
func TestRedisIsNotThereYet(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := launch(t, "serve", "--listen", "127.0.0.1:0", "--data-dir", dir, "--store", "redis://user:hunter2@127.0.0.1:1/0")
	if s.log.wait(regexp.MustCompile(`the store does not answer`), s.ended, time.Minute) == nil {
		t.Fatalf("it does not say that it waits:\n%s", s.log)
	}
	s.signal(os.Interrupt)
	if code, _ := s.waitExit(20 * time.Second); code != 0 {
		t.Errorf("exit code %d, want 0", code)
	}
	if text := s.log.String(); strings.Contains(text, "hunter2") {
		t.Errorf("the log shows the password:\n%s", text)
	}
}

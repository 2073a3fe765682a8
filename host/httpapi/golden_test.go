package httpapi_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/taskhost/taskhost/host/httpapi"
	"github.com/taskhost/taskhost/queue"
)

var update = flag.Bool("update", false, "write the golden files")

// golden jobs: one in each state, with everything a job can show.
func goldenJobs() map[string]*queue.Job {
	at := func(s int) time.Time { return time.Date(2026, 11, 30, 3, 0, s, 41_000_000, time.UTC) }
	failed := &queue.JobError{Kind: "trap", Message: "bad width 0", Retryable: true}
	attempt := queue.Attempt{Run: 1, Attempt: 1, Outcome: queue.AttemptFailed, Error: failed, StartedAt: at(1), DurationMS: 41, Fuel: 1204113,
		PeakMemoryBytes: 1363148, Worker: "w-7f2", Handler: queue.Handler{Runtime: "wasm", Version: 3}}
	base := func(state queue.State) *queue.Job {
		return &queue.Job{ID: "job_01kb6x3v9se5h9r3t7d4m1n8qa", Tenant: "acme", Queue: "default", Type: "image.resize", State: state,
			Payload: []byte(`{"w":200}`), PayloadJSON: true, PayloadBytes: 9, MaxAttempts: 5, Run: 1, CreatedAt: at(0),
			Labels: map[string]string{"order": "42"}, Headers: map[string]string{"traceparent": "00-<&>"}}
	}
	scheduled := base(queue.StateScheduled)
	scheduled.Reason, scheduled.NextRunAt, scheduled.Attempt, scheduled.StartedAt = queue.ReasonRetry, at(3), 1, at(1)
	scheduled.LastError, scheduled.Attempts, scheduled.Handler = failed, []queue.Attempt{attempt}, attempt.Handler
	ready := base(queue.StateReady)
	ready.ExpiresAt, ready.Priority, ready.IdempotencyKey, ready.Timeout = at(59), -7, "order-42", 30*time.Second
	ready.Unique = queue.Unique{Key: "u1"}
	ready.Backoff = queue.Backoff{Base: 2 * time.Second, Max: time.Minute, Jitter: queue.JitterNone}
	running := base(queue.StateRunning)
	running.Attempt, running.StartedAt, running.Worker, running.LeaseUntil, running.CancelRequested = 1, at(1), "w-7f2", at(16), true
	running.Progress = &queue.Progress{Done: 3, Total: 10, Message: "three of ten", At: at(2)}
	succeeded := base(queue.StateSucceeded)
	succeeded.Attempt, succeeded.StartedAt, succeeded.FinishedAt, succeeded.Handler = 1, at(1), at(2), attempt.Handler
	succeeded.Result, succeeded.ResultBytes = []byte(`{"n": 9007199254740993, "x": 1e400}`), 35
	ok := attempt
	ok.Outcome, ok.Error = queue.AttemptSucceeded, nil
	succeeded.Attempts = []queue.Attempt{ok}
	dead := base(queue.StateDead)
	dead.Payload, dead.PayloadJSON, dead.PayloadBytes = []byte{0xff, 0xfe, 0}, false, 3
	dead.Attempt, dead.StartedAt, dead.FinishedAt, dead.LastError, dead.Attempts = 1, at(1), at(2), failed, []queue.Attempt{attempt}
	dead.Crashes, dead.Interruptions, dead.RetriedFrom = 1, 2, "job_01kb6x3v9se5h9r3t7d4m1n8q0"
	cancelled := base(queue.StateCancelled)
	cancelled.FinishedAt = at(2)
	expired := base(queue.StateExpired)
	expired.ExpiresAt, expired.FinishedAt = at(1), at(2)
	return map[string]*queue.Job{"scheduled": scheduled, "ready": ready, "running": running, "succeeded": succeeded,
		"dead": dead, "cancelled": cancelled, "expired": expired}
}

// The JSON of a job is a promise: a golden file changes by additions only.
func TestGoldenJobs(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	jobs := goldenJobs()
	if len(jobs) != len(queue.States()) {
		t.Fatalf("%d golden jobs for %d states", len(jobs), len(queue.States()))
	}
	for name, job := range jobs {
		text, err := httpapi.ViewWhole(job)
		if err != nil {
			t.Fatal(err)
		}
		s.validate(name, s.server.API().OpenAPI().Components.Schemas.SchemaFromRef("#/components/schemas/Job"), text)
		var got bytes.Buffer
		if err := json.Indent(&got, text, "", "  "); err != nil {
			t.Fatal(err)
		}
		got.WriteByte('\n')
		file := filepath.Join("testdata", "job_"+name+".json")
		if *update {
			if err := os.WriteFile(file, got.Bytes(), 0o644); err != nil {
				t.Fatal(err)
			}
			continue
		}
		want, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(got.Bytes(), want) {
			t.Errorf("%s is\n%s\nwant\n%s", name, got.Bytes(), want)
		}
	}
}

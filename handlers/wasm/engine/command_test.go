package engine

import (
	"strings"
	"testing"
	"time"

	"github.com/taskhost/taskhost/abi"
	"github.com/taskhost/taskhost/handlers"
	"github.com/taskhost/taskhost/handlers/wasm/engine/attempt"
)

func TestGoCommand(t *testing.T) {
	t.Parallel()
	m := goCommand(t)
	for name, c := range map[string]struct {
		payload string
		kind    handlers.OutcomeKind
		errKind string
		message string // of the error, or the result
	}{
		"echo":            {"echo hello\nworld", handlers.OutcomeSucceeded, "", "hello\nworld"},
		"exit 0":          {"exit 0", handlers.OutcomeSucceeded, "", ""},
		"exit 75":         {"exit 75", handlers.OutcomeRetry, abi.KindRetryable, "exit code 75: last words"},
		"exit 64":         {"exit 64", handlers.OutcomePermanent, abi.KindPermanent, "exit code 64: last words"},
		"exit 1":          {"exit 1", handlers.OutcomeRetry, abi.KindExit, "exit code 1: last words"},
		"panic":           {"panic boom", handlers.OutcomeRetry, abi.KindExit, "exit code 2: panic: boom"},
		"short sleep":     {"sleep 20ms", handlers.OutcomeSucceeded, "", "true"},
		"memory":          {"hog", handlers.OutcomeRetry, abi.KindMemoryLimit, "memory limit of 64 MiB reached: exit code 2: fatal error"},
		"after closed fd": {"close", handlers.OutcomeSucceeded, "", ""},
		"after that":      {"echo still here", handlers.OutcomeSucceeded, "", "still here"},
	} {
		t.Run(name, func(t *testing.T) {
			r := &reports{}
			out := m.Run(t.Context(), attempt.New(input(c.payload), r))
			got := string(out.Result)
			if out.Error != nil {
				got = out.Error.Message
				if out.Error.Kind != c.errKind {
					t.Errorf("error kind %q, want %q", out.Error.Kind, c.errKind)
				}
			}
			if out.Kind != c.kind || (got != c.message && (c.errKind == "" || !strings.HasPrefix(got, c.message))) {
				t.Errorf("%s %q, want %s %q; log:\n%s", out.Kind, got, c.kind, c.message, r.text())
			}
			if out.PeakMemory < m.MinMemory() || out.PeakMemory > 64<<20 || out.Duration <= 0 {
				t.Errorf("peak memory %d, duration %s", out.PeakMemory, out.Duration)
			}
		})
	}
}

func TestGoCommandEnvironment(t *testing.T) {
	t.Parallel()
	m := goCommand(t)
	in := input("env")
	in.Config["TASKHOST_TENANT"] = "forged"
	in.Config["BAD=NAME"] = "x"
	out := m.Run(t.Context(), attempt.New(in, &reports{}))
	got := string(out.Result)
	for _, want := range []string{"send TASKHOST_JOB_ID=job-1 ", "TASKHOST_TYPE=send", "TASKHOST_TENANT=acme", "TASKHOST_QUEUE=mail", "TASKHOST_ATTEMPT=2",
		"TASKHOST_MAX_ATTEMPTS=5", "TASKHOST_DEADLINE_MS=1", "REGION=north"} {
		if !strings.Contains(got, want) {
			t.Errorf("%q lacks %q", got, want)
		}
	}
	if strings.Contains(got, "forged") || strings.Contains(got, "BAD") {
		t.Errorf("%q", got)
	}
}

// There is no file system at all: every way to one fails, and nothing outside is touched.
func TestCase093NoFileSystem(t *testing.T) {
	t.Parallel()
	m := goCommand(t)
	out := m.Run(t.Context(), attempt.New(input("files"), &reports{}))
	lines := strings.Split(strings.TrimSpace(string(out.Result)), "\n")
	if out.Kind != handlers.OutcomeSucceeded || len(lines) != 7 {
		t.Fatalf("%s %q %v", out.Kind, out.Result, out.Error)
	}
	for _, l := range lines {
		if !strings.Contains(l, "Bad file number") && !strings.Contains(l, "Capabilities insufficient") {
			t.Errorf("%q", l)
		}
	}
}

// A sleep ends with the attempt: at its deadline, or when it is stopped.
func TestCase088SleepEndsAtDeadline(t *testing.T) {
	t.Parallel()
	m := goCommand(t)
	in := input("sleep 3600s")
	in.Deadline = time.Now().Add(200 * time.Millisecond)
	out := m.Run(t.Context(), attempt.New(in, &reports{}))
	if late := time.Since(in.Deadline); out.Kind != handlers.OutcomeRetry || out.Error.Kind != abi.KindDeadline || late > 500*time.Millisecond {
		t.Errorf("%s %v, %s after the deadline", out.Kind, out.Error, late)
	}
	s := attempt.New(input("sleep 3600s"), &reports{})
	stop := time.AfterFunc(50*time.Millisecond, func() { s.Stop("job cancelled") })
	defer stop.Stop()
	out = m.Run(t.Context(), s)
	if out.Kind != handlers.OutcomeInterrupted || out.Error.Message != "job cancelled" || out.Duration > time.Second {
		t.Errorf("%s %v after %s", out.Kind, out.Error, out.Duration)
	}
}

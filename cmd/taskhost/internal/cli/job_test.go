package cli

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/taskhost/taskhost/cmd/taskhost/internal/apiclient"
)

func TestWhy(t *testing.T) {
	t.Parallel()
	soon := time.Now().Add(90 * time.Second)
	for _, c := range []struct {
		job  apiclient.Job
		want string
	}{
		{apiclient.Job{Type: "helo", State: "ready", WaitingOn: []apiclient.WaitingOn{{Code: "paused"}, {Code: "no_handler"}}}, "waits on its queue, which is paused; a handler: none serves helo"},
		{apiclient.Job{Type: "helo", State: "scheduled", WaitingOn: []apiclient.WaitingOn{{Code: "no_handler", Until: &soon}}}, "waits on a handler: none serves helo (the next look is "},
		{apiclient.Job{State: "scheduled", WaitingOn: []apiclient.WaitingOn{{Code: "defer", Until: &soon}}}, "waits on the time it was put off to, "},
		{apiclient.Job{State: "ready", WaitingOn: []apiclient.WaitingOn{{Code: "ahead", AtMost: 7}}}, "waits on the jobs ahead of it (at most 7)"},
		{apiclient.Job{State: "ready", WaitingOn: []apiclient.WaitingOn{{Code: "max_running", Limit: 2, Running: 3}, {Code: "rate", Until: &soon}}},
			"waits on its queue, which runs as many jobs as it may (3 of 2); the rate of its queue, "},
		{apiclient.Job{State: "ready"}, "waits on a free slot"},
		{apiclient.Job{State: "scheduled", WaitingOn: []apiclient.WaitingOn{{Code: "retry_backoff", Until: &soon}}, LastError: &apiclient.JobError{Kind: "trap", Message: "x"}}, "waits on its retry, "},
		{apiclient.Job{State: "scheduled", WaitingOn: []apiclient.WaitingOn{{Code: "something_new"}}}, "waits on something_new"},
		{apiclient.Job{State: "running", Worker: "w-1", Attempt: 2, MaxAttempts: 5}, "is running on w-1"},
		{apiclient.Job{State: "dead", Attempt: 5, MaxAttempts: 5, LastError: &apiclient.JobError{Kind: "trap", Message: "x"}}, `after 5 of 5 attempts; last error: trap "x"`},
		{apiclient.Job{State: "succeeded"}, "succeeded at"},
	} {
		if got := why(&c.job); !strings.Contains(got, c.want) {
			t.Errorf("got %q, want %q in it", got, c.want)
		}
	}
}

// One bad id among several does not keep the others from being done.
func TestEachGoesOn(t *testing.T) {
	t.Parallel()
	a := &App{Err: io.Discard}
	gone := &apiclient.Problem{Status: http.StatusNotFound}
	for _, c := range []struct {
		fail map[string]error
		code int
		done int
	}{
		{nil, ExitOK, 3},
		{map[string]error{"b": gone}, ExitPartial, 3},
		{map[string]error{"a": gone, "b": gone, "c": gone}, ExitNotFound, 3},
		{map[string]error{"b": &apiclient.UnreachableError{Err: errors.New("x")}}, ExitUnreachable, 2},
	} {
		done := 0
		err := a.each(t.Context(), []string{"a", "b", "c"}, func(id string) error {
			done++
			return c.fail[id]
		})
		if exitCode(err) != c.code || done != c.done {
			t.Errorf("%v: exit code %d after %d, want %d after %d", c.fail, exitCode(err), done, c.code, c.done)
		}
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(&interrupted{})
	if err := a.each(ctx, []string{"a"}, func(string) error { t.Error("done after the end"); return nil }); exitCode(err) != ExitInterrupted {
		t.Errorf("got %v", err)
	}
}

// A compile that takes long is followed; a refusal at its end is an error.
func TestPushFollowsASlowCompile(t *testing.T) {
	t.Parallel()
	for last, code := range map[string]int{`{"type":"a","version":3,"state":"live"}`: ExitOK, `{"type":"a","version":3,"state":"refused","refusal":"compile limit"}`: ExitFailed} {
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.Method == http.MethodPost {
				w.WriteHeader(http.StatusAccepted)
				_, _ = w.Write([]byte(`{"type":"a","version":3,"state":"compiling"}`))
				return
			}
			if r.URL.Path != "/v1/handlers/a/versions/3" {
				t.Errorf("asked %s", r.URL)
			}
			_, _ = w.Write([]byte(last))
		}))
		t.Cleanup(s.Close)
		file := t.TempDir() + "/m.wasm"
		writeTest(t, file, "module")
		out, errs, got := run(t, "", "handler", "push", "a", file, "--server", s.URL)
		if got != code || code == ExitOK && !strings.HasPrefix(out, "a v3 live") || code != ExitOK && !strings.Contains(errs, "module refused: compile limit") {
			t.Errorf("exit code %d: %s%s", got, out, errs)
		}
	}
}

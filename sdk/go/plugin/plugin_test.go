package plugin

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	pb "github.com/taskhost/taskhost/sdk/go/plugin/internal/handlerpb"
)

func named(name string) Handler {
	return func(context.Context, *Job) ([]byte, error) { return []byte(name), nil }
}

func TestTheLongestMatchServes(t *testing.T) {
	t.Parallel()
	h := Handlers{"*": named("*"), "ml.*": named("ml.*"), "ml.image.*": named("ml.image.*"), "ml.text": named("ml.text")}
	if err := h.Validate(); err != nil {
		t.Fatal(err)
	}
	for typ, want := range map[string]string{"ml.text": "ml.text", "ml.text.x": "ml.*", "ml.image.cut": "ml.image.*", "mail": "*"} {
		if got, _ := h.find(typ)(t.Context(), nil); string(got) != want {
			t.Errorf("%s is served by %s, want %s", typ, got, want)
		}
	}
	if (Handlers{"a": named("a")}).find("b") != nil {
		t.Error("b has a handler")
	}
}

func TestHandlersAreChecked(t *testing.T) {
	t.Parallel()
	for want, h := range map[string]Handlers{"no handlers": {}, "is nil": {"a": nil}, `"a*b"`: {"a*b": named("")}, `""`: {"": named("")}} {
		if err := h.Validate(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
}

func TestHowErrorsEnd(t *testing.T) {
	t.Parallel()
	plain := errors.New("plain")
	stopped, cancel := context.WithCancelCause(t.Context())
	cancel(fmt.Errorf("%w: cancelled", ErrStopped))
	late, stop := context.WithTimeout(t.Context(), 0)
	defer stop()
	for name, c := range map[string]struct {
		ctx    context.Context
		result string
		err    error
		want   pb.Outcome
		kind   string
		after  int64
	}{
		"result":            {t.Context(), "abc", nil, pb.Outcome_OUTCOME_SUCCEEDED, "", -1},
		"result too large":  {t.Context(), "abcdef", nil, pb.Outcome_OUTCOME_PERMANENT, "result_too_large", -1},
		"plain":             {t.Context(), "", plain, pb.Outcome_OUTCOME_RETRY, "retryable", -1},
		"after":             {t.Context(), "", RetryAfter(1500*time.Microsecond, plain), pb.Outcome_OUTCOME_RETRY, "retryable", 2},
		"permanent":         {t.Context(), "", Permanent(plain), pb.Outcome_OUTCOME_PERMANENT, "permanent", -1},
		"outermost decides": {t.Context(), "", Retry(Permanent(plain)), pb.Outcome_OUTCOME_RETRY, "retryable", -1},
		"yield":             {t.Context(), "", Yield(), pb.Outcome_OUTCOME_DEFER, "retryable", 0},
		"stopped":           {stopped, "", plain, pb.Outcome_OUTCOME_INTERRUPTED, "interrupted", -1},
		"late":              {late, "", context.DeadlineExceeded, pb.Outcome_OUTCOME_RETRY, "deadline", -1},
		"done all the same": {stopped, "abc", nil, pb.Outcome_OUTCOME_SUCCEEDED, "", -1},
	} {
		r := &running{start: &pb.Start{Limits: &pb.Limits{ResultBytes: 5}}}
		done, result := r.end(c.ctx, []byte(c.result), c.err)
		if done.GetOutcome() != c.want || done.GetErrorKind() != c.kind || done.GetRetryAfterMs() != c.after {
			t.Errorf("%s: %s %q after %d", name, done.GetOutcome(), done.GetErrorKind(), done.GetRetryAfterMs())
		}
		if (len(result) > 0) != (c.want == pb.Outcome_OUTCOME_SUCCEEDED) {
			t.Errorf("%s: result %q", name, result)
		}
	}
}

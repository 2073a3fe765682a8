package handlertest

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/taskhost/taskhost/abi"
	"github.com/taskhost/taskhost/handlers"
)

func invocation(timeout time.Duration) *handlers.Invocation {
	return &handlers.Invocation{JobID: "1", Deadline: time.Now().Add(timeout), Events: &Recorder{}}
}

func TestFuncOutcomes(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		cases := map[string]struct {
			fn   func(context.Context, *handlers.Invocation) handlers.Outcome
			kind handlers.OutcomeKind
			err  string
		}{
			"success":  {func(context.Context, *handlers.Invocation) handlers.Outcome { return Succeed([]byte("r")) }, handlers.OutcomeSucceeded, ""},
			"retry":    {func(context.Context, *handlers.Invocation) handlers.Outcome { return Retry("later") }, handlers.OutcomeRetry, abi.KindRetryable},
			"fail":     {func(context.Context, *handlers.Invocation) handlers.Outcome { return Fail("no") }, handlers.OutcomePermanent, abi.KindPermanent},
			"panic":    {func(context.Context, *handlers.Invocation) handlers.Outcome { panic("boom") }, handlers.OutcomeRetry, abi.KindTrap},
			"deadline": {func(ctx context.Context, _ *handlers.Invocation) handlers.Outcome { <-ctx.Done(); return Retry("late") }, handlers.OutcomeRetry, abi.KindDeadline},
		}
		for name, c := range cases {
			out := NewFunc("func", 1, c.fn).Invoke(t.Context(), invocation(time.Second))
			if out.Kind != c.kind || (out.Error == nil) != (c.err == "") || out.Error != nil && out.Error.Kind != c.err {
				t.Errorf("%s: %+v (%v)", name, out, out.Error)
			}
		}
	})
}

func TestFuncInterruptedAndSlots(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		cause := errors.New("enough")
		ctx, cancel := context.WithCancelCause(t.Context())
		rt := NewFunc("func", 1, func(ctx context.Context, _ *handlers.Invocation) handlers.Outcome { <-ctx.Done(); return Retry("x") })
		out := make(chan handlers.Outcome, 2)
		for range 2 { // the second one waits for the slot
			go func() { out <- rt.Invoke(ctx, invocation(time.Hour)) }()
		}
		synctest.Wait()
		cancel(cause)
		for range 2 {
			if o := <-out; o.Kind != handlers.OutcomeInterrupted || o.Error.Message != "enough" {
				t.Errorf("%+v (%v)", o, o.Error)
			}
		}
		if rt.Slots() != 1 || rt.Name() != "func" {
			t.Errorf("slots %d, name %q", rt.Slots(), rt.Name())
		}
	})
}

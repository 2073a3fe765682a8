package handlertest

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
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

// The contract holds for a runtime of Go functions, as far as it can be kept without a sandbox.
func TestFuncConformance(t *testing.T) {
	t.Parallel()
	v := &handlers.Version{Tenant: "acme", Type: "func", Number: 1, Runtime: "func", Config: map[string]string{"REGION": "north"}}
	Run(t, Harness{Runtime: NewFunc("func", 4, conform), Version: v})
}

// conform is the conformance handler as a Go function.
func conform(ctx context.Context, inv *handlers.Invocation) handlers.Outcome {
	head, data, _ := strings.Cut(string(inv.Payload), "\n")
	verb, arg, _ := strings.Cut(head, " ")
	number, _ := strconv.Atoi(arg)
	wait := time.Duration(number) * time.Millisecond
	switch verb {
	case "echo":
		return Succeed([]byte(data))
	case "retry":
		return Retry(arg)
	case "permanent":
		return Fail(arg)
	case "defer":
		return handlers.Outcome{Kind: handlers.OutcomeDefer, RetryAfter: wait, Error: &handlers.Error{Kind: abi.KindRetryable, Message: "later"}}
	case "log":
		for line := range strings.SplitSeq(data, "\n") {
			inv.Events.Log(time.Now(), "info", line)
		}
		return Succeed(nil)
	case "progress":
		inv.Events.Progress(1, 2, "running")
		return Succeed(nil)
	case "checkpoint":
		if err := inv.Events.Checkpoint(ctx, []byte(data)); err != nil {
			return Retry(err.Error())
		}
		return Succeed([]byte("0"))
	case "read-checkpoint":
		if inv.Checkpoint == nil {
			return Fail("no checkpoint")
		}
		return Succeed(inv.Checkpoint)
	case "metadata":
		return Succeed(fmt.Appendf(nil, "%s %s %s %s %d %d %s %s", inv.JobID, inv.Tenant, inv.Queue, inv.Type, inv.Attempt, inv.MaxAttempts,
			inv.Headers["trace"], inv.Version.Config["REGION"]))
	case "sleep", "until-stopped":
		inv.Events.Progress(1, 2, "running")
		if verb == "until-stopped" {
			wait = time.Hour
		}
		select {
		case <-time.After(wait):
			return Succeed(nil)
		case <-ctx.Done():
			return Retry("told to stop")
		}
	case "trap":
		panic("the handler broke down")
	}
	return Fail("no verb " + verb)
}

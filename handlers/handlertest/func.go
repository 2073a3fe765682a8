package handlertest

import (
	"context"
	"fmt"
	"runtime/debug"
	"time"

	"github.com/taskhost/taskhost/abi"
	"github.com/taskhost/taskhost/handlers"
)

// Func is a handlers.Runtime whose handlers are one Go function. It serves tests of a host, and benchmarks that leave the sandbox
// out: nothing isolates the function from the process. Every version is prepared.
type Func struct {
	name  string
	slots chan struct{}
	fn    func(context.Context, *handlers.Invocation) handlers.Outcome
}

var _ handlers.Runtime = (*Func)(nil)

// NewFunc returns a runtime of the given name that runs fn for every invocation, at most slots at once. The context that fn gets ends at
// the invocation's deadline, and with the context given to Invoke. fn must return soon after; a function cannot be killed.
// It panics if slots < 1 or fn is nil.
func NewFunc(name string, slots int, fn func(ctx context.Context, inv *handlers.Invocation) handlers.Outcome) *Func {
	if slots < 1 || fn == nil {
		panic(fmt.Sprintf("handlertest.NewFunc(%q): slots %d, fn %t: at least one slot and a function are required", name, slots, fn != nil))
	}
	return &Func{name: name, slots: make(chan struct{}, slots), fn: fn}
}

// Name is the name given to NewFunc.
func (f *Func) Name() string { return f.name }

// Slots is the number given to NewFunc.
func (f *Func) Slots() int { return cap(f.slots) }

// Prepare does nothing: there is nothing to make ready.
func (f *Func) Prepare(context.Context, *handlers.Version, func(context.Context) ([]byte, error)) error {
	return nil
}

// Invoke runs the function. A panic of it is an OutcomeRetry of kind trap, a failure after the deadline one of kind deadline, a
// failure after the end of ctx is OutcomeInterrupted. Whatever else the function returns is passed on, with Duration filled in.
func (f *Func) Invoke(ctx context.Context, inv *handlers.Invocation) (out handlers.Outcome) {
	if ctx.Err() != nil {
		return stopped(ctx, 0)
	}
	select {
	case f.slots <- struct{}{}:
		defer func() { <-f.slots }()
	case <-ctx.Done():
		return stopped(ctx, 0)
	}
	start := time.Now()
	call := &deadlineContext{Context: ctx, at: inv.Deadline}
	defer call.stop()
	defer func() {
		if p := recover(); p != nil {
			out = handlers.Outcome{Kind: handlers.OutcomeRetry, RetryAfter: -1,
				Error: &handlers.Error{Kind: abi.KindTrap, Message: fmt.Sprintf("panic: %v\n%s", p, debug.Stack())}}
		}
		out.Duration = time.Since(start)
		if out.Kind == handlers.OutcomeSucceeded {
			return
		}
		switch {
		case ctx.Err() != nil:
			out = stopped(ctx, out.Duration)
		case call.Err() != nil:
			out = handlers.Outcome{Kind: handlers.OutcomeRetry, RetryAfter: -1, Duration: out.Duration, Error: &handlers.Error{
				Kind: abi.KindDeadline, Message: fmt.Sprintf("deadline exceeded after %s", out.Duration.Round(time.Millisecond))}}
		}
	}()
	return f.fn(call, inv)
}

func stopped(ctx context.Context, after time.Duration) handlers.Outcome {
	return handlers.Outcome{Kind: handlers.OutcomeInterrupted, Duration: after,
		Error: &handlers.Error{Kind: abi.KindInterrupted, Message: context.Cause(ctx).Error()}}
}

// Succeed is the outcome of a handler that returned a result.
func Succeed(result []byte) handlers.Outcome {
	return handlers.Outcome{Kind: handlers.OutcomeSucceeded, Result: result}
}

// Retry is the outcome of a handler that failed and may run again when the policy says so.
func Retry(message string) handlers.Outcome {
	return handlers.Outcome{Kind: handlers.OutcomeRetry, RetryAfter: -1, Error: &handlers.Error{Kind: abi.KindRetryable, Message: message}}
}

// Fail is the outcome of a handler that failed for good.
func Fail(message string) handlers.Outcome {
	return handlers.Outcome{Kind: handlers.OutcomePermanent, Error: &handlers.Error{Kind: abi.KindPermanent, Message: message}}
}

package guest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"runtime/debug"
	"strings"
)

// Handler runs one attempt of a job. A nil error makes the job succeed with the result, which is appended to what was
// written to [Job.Output]. An error fails the attempt: see [Error] for what it may ask for; any other error is retried by
// policy. A panic fails the attempt like an error, with its text as the message and its stack in the job's log.
//
// ctx ends at the attempt's deadline. Its Err method also asks the host whether to stop, so a loop that checks ctx.Err()
// notices a cancelled job; see [Job.ShouldStop].
type Handler func(ctx context.Context, job *Job) (result []byte, err error)

// registered is the module's one handler. The host calls an exported function without arguments, so it must be found here.
var registered Handler

// Handle makes h the module's handler. Call it once, from an init function; a second call panics.
func Handle(h Handler) {
	if h == nil {
		panic("guest: Handle of a nil handler")
	}
	if registered != nil {
		panic("guest: Handle called twice; a module has one handler, which can look at job.Type()")
	}
	registered = h
}

// HandleJSON is [Handle] for a handler with a typed payload and result; see [JSON].
func HandleJSON[In, Out any](h func(ctx context.Context, job *Job, in In) (Out, error)) {
	Handle(JSON(h))
}

// JSON turns a function with a typed payload and result into a Handler. A payload that is not JSON of type In is a permanent
// failure. Unknown fields are ignored.
func JSON[In, Out any](h func(ctx context.Context, job *Job, in In) (Out, error)) Handler {
	return func(ctx context.Context, job *Job) ([]byte, error) {
		var in In
		if err := job.Decode(&in); err != nil {
			return nil, err
		}
		out, err := h(ctx, job, in)
		if err != nil {
			return nil, err
		}
		result, err := json.Marshal(out)
		if err != nil {
			return nil, Permanent(fmt.Errorf("result is not JSON: %w", err))
		}
		return result, nil
	}
}

// Serve runs one attempt of h against host and returns the code the contract wants from taskhost_handle: 0 done, 1 retry, 2
// permanent failure, 3 defer. The module's export and guesttest call it.
func Serve(host Host, h Handler) (code int32) {
	job := &Job{host: host}
	if h == nil {
		return job.settle(Permanent(errors.New("the module has no handler: call guest.Handle in an init function")))
	}
	defer func() {
		if p := recover(); p != nil {
			code = job.settle(job.panicked(p, debug.Stack()))
		}
	}()
	ctx, cancel := newContext(host)
	defer cancel()
	result, err := h(ctx, job)
	if err == nil && len(result) > 0 {
		_, err = job.Output().Write(result)
	}
	return job.settle(err)
}

// settle tells the host why the attempt failed and returns its code.
func (j *Job) settle(err error) int32 {
	if j.outputErr != nil && err == nil {
		err = j.outputErr // a part of the result is missing, and the handler did not look
	}
	if err == nil {
		return codeDone
	}
	code, afterMS, message := verdict(err)
	j.host.Fail(code, afterMS, strings.ToValidUTF8(message, "\uFFFD"))
	return code
}

// panicked logs the stack, a line each, and returns the error of the attempt. It is retried by policy, as a trap of the
// module would be.
func (j *Job) panicked(p any, stack []byte) error {
	for line := range strings.Lines(string(stack)) {
		j.Log(LevelError, strings.TrimRight(line, "\n"))
	}
	if err, ok := p.(error); ok {
		return Retry(fmt.Errorf("panic: %w", &panicError{err.Error()}))
	}
	return Retry(fmt.Errorf("panic: %w", &panicError{fmt.Sprint(p)}))
}

// panicError hides the chain of a panic's error: a marked error inside it is no instruction for the host.
type panicError struct{ text string }

func (e *panicError) Error() string { return e.text }

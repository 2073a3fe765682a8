package guest

import (
	"context"
	"errors"
	"time"
)

// ErrStopped is the cause of a context that ended because the host asked the handler to stop: the job was cancelled, its
// lease was lost or its host is going away.
var ErrStopped = errors.New("the host asked to stop")

// jobContext ends at the attempt's deadline or when its Err method learns from the host that the job should stop. A module
// has one thread and the host cannot call into it, so asking is the only way to know.
type jobContext struct {
	context.Context
	cancel context.CancelCauseFunc
	host   Host
}

func newContext(host Host) (context.Context, context.CancelFunc) {
	parent, stopTimer := context.Background(), context.CancelFunc(func() {})
	if ms := host.DeadlineMS(); ms > 0 {
		parent, stopTimer = context.WithDeadline(parent, time.UnixMilli(ms))
	}
	inner, cancel := context.WithCancelCause(parent)
	return &jobContext{inner, cancel, host}, func() { cancel(nil); stopTimer() }
}

// Err asks the host, unless the context has already ended.
func (c *jobContext) Err() error {
	if err := c.Context.Err(); err != nil {
		return err
	}
	if c.host.ShouldStop() == 0 {
		return nil
	}
	if deadline, ok := c.Deadline(); ok && !time.Now().Before(deadline) {
		c.cancel(context.DeadlineExceeded)
	} else {
		c.cancel(ErrStopped)
	}
	return c.Context.Err()
}

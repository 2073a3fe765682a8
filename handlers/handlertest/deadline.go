package handlertest

import (
	"context"
	"sync"
	"time"
)

// deadlineContext is its parent with a deadline. A timer is started only when somebody waits: most functions never look, and
// a timer for each would cost more than they do.
type deadlineContext struct {
	context.Context
	at time.Time

	mu     sync.Mutex
	inner  context.Context // nil until somebody waits
	cancel context.CancelFunc
	ended  bool // the function has returned
}

// Deadline is the earlier of the parent's and its own.
func (c *deadlineContext) Deadline() (time.Time, bool) {
	if at, ok := c.Context.Deadline(); ok && at.Before(c.at) {
		return at, true
	}
	return c.at, true
}

// Done is closed at the deadline, when the parent ends, and when the function has returned.
func (c *deadlineContext) Done() <-chan struct{} {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.inner == nil {
		c.inner, c.cancel = context.WithDeadline(c.Context, c.at)
		if c.ended {
			c.cancel()
		}
	}
	return c.inner.Done()
}

// Err is why Done is, or would be, closed.
func (c *deadlineContext) Err() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.inner != nil:
		return c.inner.Err()
	case c.Context.Err() != nil:
		return c.Context.Err()
	case c.ended:
		return context.Canceled
	case !time.Now().Before(c.at):
		return context.DeadlineExceeded
	}
	return nil
}

// stop ends the wait, if there is one.
func (c *deadlineContext) stop() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.ended = true
	if c.cancel != nil {
		c.cancel()
	}
}

package queuetest

import (
	"slices"
	"sync"
	"time"
)

// FakeClock is a queue.Clock that moves only when told to. Its timers fire inside Advance.
type FakeClock struct {
	mu     sync.Mutex
	now    time.Time
	timers []*fakeTimer
}

type fakeTimer struct {
	at time.Time
	c  chan time.Time
}

// NewFakeClock returns a clock that stands at a fixed time.
func NewFakeClock() *FakeClock {
	return &FakeClock{now: time.Date(2026, time.March, 1, 12, 0, 0, 0, time.UTC)}
}

// Now implements queue.Clock.
func (c *FakeClock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

// NewTimer implements queue.Clock.
func (c *FakeClock) NewTimer(d time.Duration) (<-chan time.Time, func() bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	t := &fakeTimer{at: c.now.Add(d), c: make(chan time.Time, 1)}
	if d <= 0 {
		t.c <- c.now
		return t.c, func() bool { return false }
	}
	c.timers = append(c.timers, t)
	stop := func() bool {
		c.mu.Lock()
		defer c.mu.Unlock()
		before := len(c.timers)
		c.timers = slices.DeleteFunc(c.timers, func(o *fakeTimer) bool { return o == t })
		return len(c.timers) < before
	}
	return t.c, stop
}

// Advance moves the clock and fires the timers that became due.
func (c *FakeClock) Advance(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
	c.timers = slices.DeleteFunc(c.timers, func(t *fakeTimer) bool {
		due := !c.now.Before(t.at)
		if due {
			t.c <- c.now
		}
		return due
	})
}

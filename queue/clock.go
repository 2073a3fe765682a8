package queue

import "time"

// Clock is the store's time. Engines that own their time (memory, SQLite) take one, so that tests can move it.
type Clock interface {
	// Now is the current time; it never goes back.
	Now() time.Time
	// NewTimer returns a channel that receives once when d has passed, and a function that stops it.
	NewTimer(d time.Duration) (<-chan time.Time, func() bool)
}

// SystemClock returns the machine's clock made monotone: a step back of the wall clock does not move it back.
func SystemClock() Clock { return systemClock{origin: time.Now()} }

type systemClock struct{ origin time.Time }

func (c systemClock) Now() time.Time { return c.origin.Add(time.Since(c.origin)).UTC() }

func (systemClock) NewTimer(d time.Duration) (<-chan time.Time, func() bool) {
	t := time.NewTimer(d)
	return t.C, t.Stop
}

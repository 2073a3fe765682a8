package queue

import (
	"math"
	"time"
)

// Jitter spreads retries.
type Jitter string

// JitterFull draws the delay uniformly from (0, d] (Brooker, "Exponential Backoff And Jitter", AWS Architecture Blog,
// 2015); JitterNone waits exactly d.
const (
	JitterFull Jitter = "full"
	JitterNone Jitter = "none"
)

// Backoff is exponential: attempt n waits d = min(Max, Base·2^(n-1)), jittered. Zero fields mean the defaults.
type Backoff struct {
	Base   time.Duration `json:"base,omitempty"`   // default 1 s
	Max    time.Duration `json:"max,omitempty"`    // default 1 h
	Jitter Jitter        `json:"jitter,omitempty"` // default JitterFull
}

// Defaults of Backoff.
const (
	BackoffBaseDefault = time.Second
	BackoffMaxDefault  = time.Hour
)

// Ceiling is the longest delay before the attempt that follows attempt n (counted from 1; smaller counts as 1). It never
// falls as n rises, is never above Max and never below 1 ms, for every n.
func (b Backoff) Ceiling(n int) time.Duration {
	base, limit := b.Base, b.Max
	if base <= 0 {
		base = BackoffBaseDefault
	}
	if limit <= 0 {
		limit = BackoffMaxDefault
	}
	base, limit = max(base, time.Millisecond), max(limit, time.Millisecond)
	doublings := max(n, 1) - 1
	if doublings >= 62 || base > time.Duration(math.MaxInt64>>doublings) {
		return limit
	}
	return min(base<<doublings, limit)
}

// Delay is how long to wait before the attempt that follows attempt n. random is uniform in [0, 1). The result is at
// least 1 ms and at most Ceiling(n).
func (b Backoff) Delay(n int, random float64) time.Duration {
	ceiling := b.Ceiling(n)
	if b.Jitter == JitterNone {
		return ceiling
	}
	d := time.Duration(float64(ceiling) * (1 - random))
	return min(max(d, time.Millisecond), ceiling)
}

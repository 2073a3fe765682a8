package fair

// Rate is count services per per milliseconds, Slack of which may be made up for. Count and Per are at least 1 and at most
// 10⁹, so that no product leaves an int64.
type Rate struct {
	Count, Per, Slack int64
}

// Bucket is a token bucket as the generic cell rate algorithm (ITU-T I.371, 1993): all it keeps is when it will be full
// again, as base + n·Per/Count milliseconds with integers base and n < Count, so that it never drifts. The zero Bucket is
// full.
type Bucket struct {
	base, n int64
}

// From is the first millisecond at which one more service is allowed; it may lie in the past.
func (b Bucket) From(r Rate) int64 {
	return b.base + (b.n*r.Per+r.Count-1)/r.Count - r.Slack
}

// Take is the bucket after a service at now.
func (b Bucket) Take(r Rate, now int64) Bucket {
	if elapsed := now - b.base; elapsed >= r.Per || elapsed >= 0 && b.n*r.Per <= elapsed*r.Count {
		b = Bucket{base: now} // it was full
	}
	b.n++
	if b.n >= r.Count {
		b.base += r.Per
		b.n -= r.Count
	}
	return b
}

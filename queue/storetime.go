package queue

import "time"

// Millis brings a time to the precision of store time: UTC, cut down to the millisecond.
func Millis(t time.Time) time.Time {
	if t.IsZero() {
		return time.Time{}
	}
	return time.UnixMilli(t.UnixMilli()).UTC()
}

// After is the store time d after now, with d rounded up to the millisecond, so that nothing becomes due early.
func After(now time.Time, d time.Duration) time.Time {
	if rest := d % time.Millisecond; rest > 0 {
		d += time.Millisecond - rest
	}
	return Millis(now).Add(d)
}

// MillisUp is the first whole millisecond since 1970 that is not before t.
func MillisUp(t time.Time) int64 {
	ms := t.UnixMilli()
	if time.UnixMilli(ms).Before(t) {
		ms++
	}
	return ms
}

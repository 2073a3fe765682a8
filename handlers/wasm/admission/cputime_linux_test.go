package admission

import (
	"runtime"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// processorTime is what fn takes of the processor: other than the time on the clock, it does not depend on who else is at work.
func processorTime(tb testing.TB, fn func()) time.Duration {
	tb.Helper()
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	used := func() time.Duration {
		var u unix.Rusage
		if err := unix.Getrusage(unix.RUSAGE_THREAD, &u); err != nil {
			tb.Fatal(err)
		}
		return time.Duration(u.Utime.Nano() + u.Stime.Nano())
	}
	before := used()
	fn()
	return used() - before
}

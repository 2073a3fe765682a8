//go:build !linux

package admission

import (
	"testing"
	"time"
)

// processorTime is the time that fn takes: here a thread's share of the processor is not to be had.
func processorTime(_ testing.TB, fn func()) time.Duration {
	start := time.Now()
	fn()
	return time.Since(start)
}

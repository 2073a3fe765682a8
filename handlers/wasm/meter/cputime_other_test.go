//go:build !linux

package meter_test

import "time"

var startedAt = time.Now()

func cpuTime() time.Duration { return time.Since(startedAt) }

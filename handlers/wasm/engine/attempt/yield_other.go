//go:build !linux

package attempt

import "runtime"

// yield lets other goroutines have the processor, if any waits for it.
func yield() { runtime.Gosched() }

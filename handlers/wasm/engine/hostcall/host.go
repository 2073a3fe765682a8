package hostcall

import "github.com/taskhost/taskhost/abi"

// shouldStop is should_stop() -> i32.
func shouldStop(c *call) int64 {
	if c.ShouldStop() {
		return 1
	}
	return 0
}

// deadlineMS is deadline_ms() -> i64.
func deadlineMS(c *call) int64 { return c.Deadline.UnixMilli() }

// hostHas is host_has(ptr i32, len i32) -> i32.
func hostHas(c *call) int64 {
	name, errno := c.key()
	if errno == abi.ErrInvalid {
		return int64(errno)
	}
	for _, imp := range abi.HostImports() {
		if imp.Name == name {
			return 1
		}
	}
	return 0
}

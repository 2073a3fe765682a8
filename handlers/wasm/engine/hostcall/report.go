package hostcall

import (
	"github.com/taskhost/taskhost/abi"
	"github.com/taskhost/taskhost/handlers/wasm/engine/attempt"
)

// log is log(level i32, ptr i32, len i32) -> i32. A level that does not exist is logged as info.
func log(c *call) int64 {
	message, ok := c.text(1, attempt.MaxLine)
	if !ok {
		return int64(abi.ErrInvalid)
	}
	level := c.i32(0)
	if level < abi.LevelDebug || level > abi.LevelError {
		level = abi.LevelInfo
	}
	c.Log(level, message, int(c.u32(2)))
	return 0
}

// maxProgressMessage bounds the message of a report of progress, in bytes.
const maxProgressMessage = 1 << 10

// progress is progress(done i64, total i64, ptr i32, len i32) -> i32.
func progress(c *call) int64 {
	message, ok := c.text(2, maxProgressMessage)
	done, total := c.i64(0), c.i64(1)
	if !ok || done < 0 || total < 0 {
		return int64(abi.ErrInvalid)
	}
	c.Reports.Progress(done, total, message)
	return 0
}

package hostcall

import (
	"math"
	"time"

	"github.com/taskhost/taskhost/abi"
	"github.com/taskhost/taskhost/abi/pluginpb"
	"github.com/taskhost/taskhost/handlers/wasm/engine/attempt"
)

// outputWrite is output_write(ptr i32, len i32) -> i64.
func outputWrite(c *call) int64 {
	data, ok := c.bytes(0)
	if !ok {
		return int64(abi.ErrInvalid)
	}
	n, fits := c.Write(data)
	if !fits {
		return int64(abi.ErrTooLarge)
	}
	return n
}

// fail is fail(kind i32, retry_after_ms i64, ptr i32, len i32) -> i32.
func fail(c *call) int64 {
	kind := c.i32(0)
	message, ok := c.text(2, pluginpb.MaxErrorMessage)
	if !ok || kind < abi.HandleRetry || kind > abi.HandleDefer {
		return int64(abi.ErrInvalid)
	}
	after := time.Duration(-1)
	if ms := c.i64(1); ms >= 0 {
		after = time.Duration(min(ms, math.MaxInt64/int64(time.Millisecond))) * time.Millisecond
	}
	c.Failure = &attempt.Failure{Kind: kind, RetryAfter: after, Message: message}
	return 0
}

package hostcall

import "github.com/taskhost/taskhost/abi"

// inputLen is input_len() -> i64.
func inputLen(c *call) int64 { return int64(len(c.Payload)) }

// inputRead is input_read(off i64, buf i32, cap i32) -> i64.
func inputRead(c *call) int64 {
	buf, ok := c.bytes(1)
	off := c.i64(0)
	if !ok || off < 0 {
		return int64(abi.ErrInvalid)
	}
	if off >= int64(len(c.Payload)) {
		return 0
	}
	return int64(copy(buf, c.Payload[off:]))
}

package hostcall

import "github.com/taskhost/taskhost/abi"

// checkpointPut is checkpoint_put(ptr i32, len i32) -> i32.
func checkpointPut(c *call) int64 {
	data, ok := c.bytes(0)
	switch {
	case !ok:
		return int64(abi.ErrInvalid)
	case len(data) > c.Limits.Checkpoint: // before copying it
		return int64(abi.ErrTooLarge)
	}
	return int64(c.PutCheckpoint(append([]byte{}, data...)))
}

// checkpointGet is checkpoint_get(buf i32, cap i32) -> i64. It also answers what this attempt has saved.
func checkpointGet(c *call) int64 {
	data := c.Checkpointed()
	if data == nil {
		return int64(abi.ErrNotFound)
	}
	return give(c, 0, data)
}

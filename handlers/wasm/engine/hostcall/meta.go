package hostcall

import (
	"strconv"
	"strings"

	"github.com/taskhost/taskhost/abi"
)

// maxKey bounds a key, in bytes. Longer ones do not exist.
const maxKey = 1 << 10

// key returns the key that the first two arguments name.
func (c *call) key() (string, abi.Errno) {
	key, ok := c.text(0, maxKey)
	switch {
	case !ok:
		return "", abi.ErrInvalid
	case c.u32(1) > maxKey:
		return "", abi.ErrNotFound
	}
	return key, 0
}

// metaGet is meta_get(key_ptr i32, key_len i32, buf i32, cap i32) -> i64.
func metaGet(c *call) int64 {
	key, errno := c.key()
	if errno != 0 {
		return int64(errno)
	}
	switch key {
	case abi.MetaJobID:
		return give(c, 2, c.JobID)
	case abi.MetaTenant:
		return give(c, 2, c.Tenant)
	case abi.MetaQueue:
		return give(c, 2, c.Queue)
	case abi.MetaType:
		return give(c, 2, c.Type)
	case abi.MetaAttempt:
		return give(c, 2, strconv.Itoa(c.Attempt))
	case abi.MetaMaxAttempts:
		return give(c, 2, strconv.Itoa(c.MaxAttempts))
	}
	if name, isHeader := strings.CutPrefix(key, abi.MetaHeaderPrefix); isHeader {
		if value, found := c.Headers[name]; found {
			return give(c, 2, value)
		}
	}
	return int64(abi.ErrNotFound)
}

// configGet is config_get(key_ptr i32, key_len i32, buf i32, cap i32) -> i64.
func configGet(c *call) int64 {
	key, errno := c.key()
	if errno != 0 {
		return int64(errno)
	}
	value, found := c.Config[key]
	if !found {
		return int64(abi.ErrNotFound)
	}
	return give(c, 2, value)
}

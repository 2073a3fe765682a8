package memq

import (
	"encoding/binary"
	"fmt"
	"io"
	"time"

	"github.com/taskhost/taskhost/queue"
)

// idMaker makes ids that rise: within one millisecond the last 62 bits of the id before grow by a random step (the
// monotonic method 2 of RFC 9562 §6.2), so that ids sort by creation and still tell nothing of how many there are.
type idMaker struct {
	ms   int64
	high [2]byte
	low  uint64
}

func (m *idMaker) next(now time.Time, random io.Reader) (string, error) {
	var b [10]byte
	if _, err := io.ReadFull(random, b[:]); err != nil {
		return "", fmt.Errorf("%w: no random bits for an id: %w", queue.ErrUnavailable, err)
	}
	if ms := now.UnixMilli(); ms != m.ms {
		m.ms = ms
		m.high = [2]byte(b[:2])
		m.low = binary.BigEndian.Uint64(b[2:]) >> 3 // 61 bits: room to grow by 2^29 steps of 2^32
	} else {
		m.low += uint64(binary.BigEndian.Uint32(b[2:])) + 1
	}
	copy(b[:2], m.high[:])
	binary.BigEndian.PutUint64(b[2:], m.low)
	return queue.FormatID(queue.JobIDPrefix, queue.NewUUID(now, b)), nil
}

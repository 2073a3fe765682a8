package wasi

import (
	"encoding/binary"

	"github.com/tetratelabs/wazero/api"
)

// memory is the guest's memory; every access is checked.
type memory struct{ api.Memory }

func (m memory) put32(at, v uint32) errno {
	if !m.WriteUint32Le(at, v) {
		return eFAULT
	}
	return ok
}

func (m memory) put64(at uint32, v uint64) errno {
	if !m.WriteUint64Le(at, v) {
		return eFAULT
	}
	return ok
}

// records returns n records of size bytes at an address, for writing in place. The product cannot go over: n is 32 bits.
func (m memory) records(at, n uint32, size uint64) ([]byte, bool) {
	total := uint64(n) * size
	if uint64(at)+total > uint64(m.Size()) {
		return nil, false
	}
	return m.Read(at, uint32(total))
}

// iovecs calls use for each of the n buffers listed at an address until it returns false.
func (m memory) iovecs(at, n uint32, use func(buf []byte) bool) errno {
	list, found := m.records(at, n, 8)
	if !found {
		return eFAULT
	}
	for ; len(list) > 0; list = list[8:] {
		buf, found := m.Read(binary.LittleEndian.Uint32(list), binary.LittleEndian.Uint32(list[4:]))
		if !found {
			return eFAULT
		}
		if !use(buf) {
			break
		}
	}
	return ok
}

package engine

import (
	"fmt"

	"github.com/tetratelabs/wazero/experimental"
)

const wasmPage = 64 << 10

// memory is the linear memory of one instance: a reservation without access of its whole limit, made accessible as the guest grows. Pages
// cost nothing until they are touched, growing never copies, and untouched address space does not count against RLIMIT_DATA.
//
// wazero frees memory when a module is closed but not when its instantiation fails, so Free does nothing: the goroutine that ran the guest
// releases it, after the last access.
type memory struct {
	limit   uint64 // bytes, a multiple of a page
	region  []byte // the reservation; nil before Allocate
	size    uint64 // accessible
	refused bool   // a grow went over the limit
	err     error  // why no memory was to be had
}

var (
	_ experimental.MemoryAllocator = (*memory)(nil)
	_ experimental.LinearMemory    = (*memory)(nil)
)

// newMemory returns a memory that grows to limit bytes at most, rounded down to Wasm pages of 64 KiB.
func newMemory(limit int64) *memory {
	return &memory{limit: uint64(max(limit, 0)) / wasmPage * wasmPage}
}

// Allocate reserves address space for max bytes, the largest the module declares, or for the limit if that is less.
func (m *memory) Allocate(_, declaredMax uint64) experimental.LinearMemory {
	m.limit = min(m.limit, declaredMax)
	return m
}

// Reallocate makes size bytes accessible; nil means no, which a guest sees as -1.
func (m *memory) Reallocate(size uint64) []byte {
	if size > m.limit {
		m.refused = true
		return nil
	}
	if err := m.commit(size); err != nil {
		m.refused, m.err = true, err
		return nil
	}
	if size == 0 {
		return []byte{} // not nil, which would mean no
	}
	return m.region[:size:size]
}

func (m *memory) commit(size uint64) error {
	if m.region == nil && m.limit > 0 {
		region, err := reserve(m.limit)
		if err != nil {
			return fmt.Errorf("reserve %d bytes of address space: %w", m.limit, err)
		}
		m.region = region
	}
	if size > m.size {
		if err := commit(m.region[m.size:size]); err != nil {
			return fmt.Errorf("%d bytes of memory: %w", size, err)
		}
		m.size = size
	}
	return nil
}

// Free does nothing; see memory.
func (m *memory) Free() {}

// release gives the memory back. The guest must not run any more.
func (m *memory) release() error {
	if m.region == nil {
		return nil
	}
	region := m.region
	m.region, m.size = nil, 0
	return unreserve(region)
}

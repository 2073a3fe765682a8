package handlers

import (
	"container/list"
	"context"
	"fmt"
	"sync"
	"time"
)

// MemoryReserver is a Runtime whose invocations share a bound on memory. Whoever runs many jobs reserves before each Invoke, and before the
// job's time begins.
type MemoryReserver interface {
	// ReserveMemory sets so many bytes aside for one attempt; release gives them back, and is called once, when the attempt is over. It
	// waits while others have them. The error is the cause of ctx when that ends, or wraps ErrBusy: they were not to be had in a while.
	ReserveMemory(ctx context.Context, bytes int64) (release func(), err error)
}

// MemoryBudget bounds the sum of what is reserved at once. It is a MemoryReserver to embed. Those who wait are served in the order of
// arrival, but whoever fits passes one that does not, up to memoryPasses times; then what becomes free is kept for that one.
type MemoryBudget struct {
	limit int64

	mu      sync.Mutex
	used    int64
	waiters list.List // of *memoryWaiter
}

type memoryWaiter struct {
	bytes  int64
	passed int
	ready  chan struct{} // closed when it has them
}

const (
	memoryPasses = 32
	// memoryPatience is how long a job waits for memory; it keeps its slot meanwhile, so it must not be long.
	memoryPatience = 5 * time.Second
)

// NewMemoryBudget returns a budget of so many bytes; 0 = without a bound.
func NewMemoryBudget(bytes int64) *MemoryBudget { return &MemoryBudget{limit: bytes} }

// Bytes is the whole budget; 0 = without a bound.
func (b *MemoryBudget) Bytes() int64 { return b.limit }

// ReserveMemory is of MemoryReserver. It waits 5 s at most, and refuses at once what is more than the whole budget.
func (b *MemoryBudget) ReserveMemory(ctx context.Context, bytes int64) (release func(), err error) {
	if b.limit == 0 {
		return func() {}, nil
	}
	if bytes > b.limit {
		return nil, fmt.Errorf("%w: a memory limit of %d bytes is more than the whole memory budget of %d bytes", ErrBusy, bytes, b.limit)
	}
	release = func() { b.release(bytes) }
	w := &memoryWaiter{bytes: bytes, ready: make(chan struct{})}
	b.mu.Lock()
	el := b.waiters.PushBack(w)
	b.grant()
	b.mu.Unlock()
	select {
	case <-w.ready:
		return release, nil
	default:
	}
	patience := time.NewTimer(memoryPatience)
	defer patience.Stop()
	select {
	case <-w.ready:
		return release, nil
	case <-ctx.Done():
		err = context.Cause(ctx)
	case <-patience.C:
		err = fmt.Errorf("%w: %d bytes of the memory budget of %d bytes were not free within %s", ErrBusy, bytes, b.limit, memoryPatience)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	select {
	case <-w.ready: // granted in the meantime
		b.used -= bytes
	default:
		b.waiters.Remove(el)
	}
	b.grant()
	return nil, err
}

func (b *MemoryBudget) release(bytes int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.used -= bytes
	b.grant()
}

// grant serves those who wait and fit. It needs the lock.
func (b *MemoryBudget) grant() {
	var skipped []*memoryWaiter
	for el := b.waiters.Front(); el != nil; {
		w, next := el.Value.(*memoryWaiter), el.Next()
		if b.used+w.bytes > b.limit {
			if w.passed >= memoryPasses {
				return
			}
			skipped = append(skipped, w)
		} else {
			b.used += w.bytes
			b.waiters.Remove(el)
			close(w.ready)
			for _, s := range skipped {
				s.passed++
			}
		}
		el = next
	}
}

package compile

import (
	"context"
	"fmt"
	"sync"

	"github.com/taskhost/taskhost/handlers"
)

// turns gives out a number of slots, to tenants in turn: however many one of them has waiting, another's first is served after
// at most one of each.
type turns struct {
	mu      sync.Mutex
	free    int
	waiting map[string][]chan struct{} // by tenant, first come first served
	ring    []string                   // tenants with someone waiting, next one first
	most    int                        // uploads waiting per tenant
}

func newTurns(slots, mostWaiting int) *turns {
	return &turns{free: slots, waiting: map[string][]chan struct{}{}, most: mostWaiting}
}

// take waits for a slot. The caller gives it back with give. When the tenant has as many waiting as may wait, a bounded caller gets
// handlers.ErrBusy at once.
func (t *turns) take(ctx context.Context, tenant string, bounded bool) error {
	t.mu.Lock()
	if t.free > 0 { // then nobody waits
		t.free--
		t.mu.Unlock()
		return nil
	}
	q := t.waiting[tenant]
	if bounded && len(q) >= t.most {
		t.mu.Unlock()
		return fmt.Errorf("%w: %d modules of this tenant are waiting to be compiled; try again later", handlers.ErrBusy, t.most)
	}
	turn := make(chan struct{})
	if len(q) == 0 {
		t.ring = append(t.ring, tenant)
	}
	t.waiting[tenant] = append(q, turn)
	t.mu.Unlock()
	select {
	case <-turn:
		return nil
	case <-ctx.Done():
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.leave(tenant, turn) { // the turn came in the meantime
		t.pass()
	}
	return context.Cause(ctx)
}

// leave takes a waiter out of its queue, if it is still there.
func (t *turns) leave(tenant string, turn chan struct{}) bool {
	q := t.waiting[tenant]
	for i, w := range q {
		if w != turn {
			continue
		}
		t.waiting[tenant] = append(q[:i:i], q[i+1:]...)
		if len(t.waiting[tenant]) == 0 {
			delete(t.waiting, tenant)
			for j, name := range t.ring {
				if name == tenant {
					t.ring = append(t.ring[:j:j], t.ring[j+1:]...)
					break
				}
			}
		}
		return true
	}
	return false
}

// give returns a slot.
func (t *turns) give() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.pass()
}

// pass hands a slot to the next tenant's first waiter, and that tenant to the end of the ring.
func (t *turns) pass() {
	if len(t.ring) == 0 {
		t.free++
		return
	}
	tenant := t.ring[0]
	q := t.waiting[tenant]
	t.ring = t.ring[1:]
	if len(q) > 1 {
		t.waiting[tenant] = q[1:]
		t.ring = append(t.ring, tenant)
	} else {
		delete(t.waiting, tenant)
	}
	close(q[0])
}

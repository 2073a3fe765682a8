package compile

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/taskhost/taskhost/handlers"
)

// waiters is how many wait for a turn.
func (t *turns) waiters() (n int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, q := range t.waiting {
		n += len(q)
	}
	return n
}

func TestTurnsGoRoundTheTenants(t *testing.T) {
	t.Parallel()
	turns := newTurns(1, 10)
	if err := turns.take(t.Context(), "first", true); err != nil {
		t.Fatal(err)
	}
	served := make(chan string)
	var wg sync.WaitGroup
	for i, tenant := range []string{"a", "a", "a", "a", "b", "b", "c"} {
		wg.Go(func() {
			if err := turns.take(t.Context(), tenant, true); err != nil {
				t.Error(err)
			}
			served <- tenant
			turns.give()
		})
		eventually(t, "a waiter queues", func() bool { return turns.waiters() == i+1 })
	}
	turns.give()
	var order []string
	for range 7 {
		order = append(order, <-served)
	}
	wg.Wait()
	if got := strings.Join(order, ""); got != "abcabaa" {
		t.Errorf("served in the order %s; want abcabaa", got)
	}
	if turns.free != 1 || len(turns.ring) != 0 || len(turns.waiting) != 0 {
		t.Errorf("left over: %d free, ring %v, waiting %v", turns.free, turns.ring, turns.waiting)
	}
}

func TestTurnsAreBoundedPerTenant(t *testing.T) {
	t.Parallel()
	turns := newTurns(1, 1)
	if err := turns.take(t.Context(), "a", true); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	done := make(chan error)
	go func() { done <- turns.take(ctx, "a", true) }()
	eventually(t, "a waiter queues", func() bool { return turns.waiters() == 1 })
	if err := turns.take(t.Context(), "a", true); !errors.Is(err, handlers.ErrBusy) {
		t.Errorf("one too many: %v", err)
	}
	unbounded, stop := context.WithCancel(t.Context())
	stop()
	if err := turns.take(unbounded, "a", false); !errors.Is(err, context.Canceled) {
		t.Errorf("one that is not bounded does not wait: %v", err)
	}
	gone := errors.New("gone")
	cancel(gone)
	if err := <-done; !errors.Is(err, gone) {
		t.Errorf("one that left: %v", err)
	}
	if turns.waiters() != 0 || len(turns.ring) != 0 {
		t.Errorf("left over: ring %v", turns.ring)
	}
	turns.give()
	if err := turns.take(t.Context(), "b", true); err != nil {
		t.Errorf("after all left: %v", err)
	}
}

// However waiters come and go, no slot is lost and none is given twice.
func TestTurnsKeepTheirSlots(t *testing.T) {
	t.Parallel()
	const slots = 3
	turns := newTurns(slots, 1000)
	var mu sync.Mutex
	var busy, peak int
	var wg sync.WaitGroup
	for i := range 600 {
		ctx, cancel := context.WithCancel(t.Context())
		if i%3 == 0 {
			go cancel()
		}
		wg.Go(func() {
			defer cancel()
			if turns.take(ctx, fmt.Sprint(i%7), true) != nil {
				return
			}
			mu.Lock()
			busy++
			peak = max(peak, busy)
			mu.Unlock()
			mu.Lock()
			busy--
			mu.Unlock()
			turns.give()
		})
	}
	wg.Wait()
	if turns.free != slots || peak > slots || turns.waiters() != 0 {
		t.Errorf("%d slots are free of %d, at most %d were taken at once, %d wait", turns.free, slots, peak, turns.waiters())
	}
}

func TestRefusedSetIsBounded(t *testing.T) {
	t.Parallel()
	s := newRefusedSet(2)
	for _, k := range []string{"a", "b"} {
		s.add(k, &handlers.Refusal{Reason: k})
	}
	s.get("a")
	s.add("c", &handlers.Refusal{Reason: "c"}) // b was used least recently
	s.add("huge", &handlers.Refusal{Reason: "x", Details: []string{strings.Repeat("y", maxRememberedBytes)}})
	var have []string
	for _, k := range []string{"a", "b", "c", "huge"} {
		if r := s.get(k); r != nil {
			have = append(have, k+r.Reason)
		}
	}
	if !slices.Equal(have, []string{"aa", "cc"}) || len(s.byKey) != 2 || s.order.Len() != 2 {
		t.Errorf("it remembers %v", have)
	}
}

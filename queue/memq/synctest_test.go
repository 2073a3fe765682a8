package memq_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/taskhost/taskhost/queue"
	"github.com/taskhost/taskhost/queue/memq"
)

// In a bubble the store lives on the bubble's time through its ordinary clock, and all its waits block durably: hosts can
// be tested there.
func TestInABubble(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := memq.New(memq.Options{})
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() { // a host's maintenance
			defer close(done)
			for s.WaitDue(ctx) == nil {
				if _, err := s.Maintain(ctx); err != nil {
					return
				}
			}
		}()
		start := time.Now()
		spec := queue.JobSpec{Tenant: "t", Queue: "q", Type: "a", Delay: 90 * time.Minute}
		if _, err := s.Enqueue(ctx, []queue.JobSpec{spec}); err != nil {
			t.Fatal(err)
		}
		if err := s.Wait(ctx, queue.View{}); err != nil {
			t.Fatal(err)
		}
		if waited := time.Since(start); waited != 90*time.Minute {
			t.Errorf("the job became ready after %s, want 1h30m0s", waited)
		}
		jobs, err := s.Reserve(ctx, queue.ReserveParams{Max: 1, Lease: time.Minute})
		if err != nil || len(jobs) != 1 {
			t.Fatalf("Reserve = %v, %v", jobs, err)
		}
		if err := s.Wait(ctx, queue.View{}); err != nil { // until the lease has run out
			t.Fatal(err)
		}
		if waited := time.Since(start); waited != 91*time.Minute {
			t.Errorf("the job came back after %s, want 1h31m0s", waited)
		}
		cancel()
		<-done
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	})
}

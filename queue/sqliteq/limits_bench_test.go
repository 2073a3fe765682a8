package sqliteq_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/taskhost/taskhost/queue"
	"github.com/taskhost/taskhost/queue/sqliteq"
)

// BenchmarkReserveCapped is what limits cost a pick: every queue of one tenant is at its cap of one job after each
// reservation, so each pick takes a queue out of the competition and each settle lets one in again. The cost must grow
// with the logarithm of the queues.
func BenchmarkReserveCapped(b *testing.B) {
	for _, queues := range []int{10, 1000} {
		for _, limited := range []bool{false, true} {
			b.Run(fmt.Sprintf("queues=%d/limits=%t", queues, limited), func(b *testing.B) { reserveCapped(b, queues, limited) })
		}
	}
}

func reserveCapped(b *testing.B, queues int, limited bool) {
	const batch = 8
	ctx := b.Context()
	s, err := sqliteq.Open(ctx, sqliteq.Options{Dir: b.TempDir()})
	if err != nil {
		b.Fatal(err)
	}
	defer s.Close()
	config := queue.Scheduling{Retention: queue.Retention{Succeeded: -1}, Queues: map[string]queue.QueueSettings{}, Tenants: map[string]queue.TenantSettings{}}
	specs := make([]queue.JobSpec, 0, queues*2)
	for i := range queues {
		name := fmt.Sprintf("q%04d", i)
		if limited {
			config.Queues[name] = queue.QueueSettings{MaxRunning: new(1), Rate: &queue.Rate{Count: queue.RateCountMax, Per: time.Second}}
			config.Tenants["acme"] = queue.TenantSettings{MaxRunning: new(batch)}
		}
		for range 2 {
			specs = append(specs, queue.JobSpec{Tenant: "acme", Queue: name, Type: "t"})
		}
	}
	if err := s.Configure(ctx, config); err != nil {
		b.Fatal(err)
	}
	if _, err := s.Enqueue(ctx, specs); err != nil {
		b.Fatal(err)
	}
	taken := 0
	b.ResetTimer()
	for taken < b.N {
		jobs, err := s.Reserve(ctx, queue.ReserveParams{Max: batch, Lease: time.Minute})
		if err != nil || len(jobs) != batch {
			b.Fatalf("%d jobs, %v", len(jobs), err)
		}
		taken += len(jobs)
		b.StopTimer() // the disk is not the subject
		list := make([]queue.Settlement, len(jobs))
		for i, j := range jobs {
			list[i] = queue.Settlement{Ref: queue.Ref{ID: j.ID, Token: j.Token}, Verb: queue.VerbYield}
		}
		if _, err := s.Settle(ctx, list); err != nil {
			b.Fatal(err)
		}
		b.StartTimer()
	}
}

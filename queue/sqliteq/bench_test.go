package sqliteq_test

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/taskhost/taskhost/queue"
	"github.com/taskhost/taskhost/queue/sqliteq"
)

// BenchmarkEndToEnd is a job's whole life through the interface: 256 producers enqueue one job each and wait for the
// disk, one dispatcher reserves 64 at a time, 64 jobs are settled in one call. Every job is counted, and the books are
// compared at the end.
func BenchmarkEndToEnd(b *testing.B) {
	for _, c := range []struct {
		name      string
		retention queue.Retention
	}{
		{"retention=off", queue.Retention{Succeeded: -1}},
		{"retention=default", queue.Retention{}},
	} {
		b.Run(c.name, func(b *testing.B) { endToEnd(b, c.retention) })
	}
}

func endToEnd(b *testing.B, r queue.Retention) {
	const producers, settlers, batch = 256, 4, 64
	ctx := b.Context()
	s, err := sqliteq.Open(ctx, sqliteq.Options{Dir: b.TempDir()})
	if err != nil {
		b.Fatal(err)
	}
	defer s.Close()
	if err := s.Configure(ctx, queue.Scheduling{Retention: r}); err != nil {
		b.Fatal(err)
	}
	payload := make([]byte, 100)
	b.ReportAllocs()
	b.ResetTimer()

	var next, settled atomic.Int64
	var wg sync.WaitGroup
	for range producers {
		wg.Go(func() {
			for next.Add(1) <= int64(b.N) {
				out, err := s.Enqueue(ctx, []queue.JobSpec{{Tenant: "acme", Queue: "mail", Type: "send", Payload: payload, MaxAttempts: 3}})
				if err != nil || out[0].Status != queue.EnqueueCreated {
					b.Errorf("enqueue: %v %v", out, err)
					return
				}
			}
		})
	}
	working, stop := context.WithCancel(ctx)
	defer stop()
	batches := make(chan []*queue.Job)
	wg.Go(func() {
		defer close(batches)
		for {
			jobs, err := s.Reserve(ctx, queue.ReserveParams{Worker: "w", Max: batch, Lease: 15 * time.Second})
			if err != nil {
				b.Errorf("reserve: %v", err)
				return
			}
			if len(jobs) > 0 {
				batches <- jobs
				continue
			}
			if err := s.Wait(working, queue.View{}); err != nil {
				return
			}
		}
	})
	for range settlers {
		wg.Go(func() {
			for jobs := range batches {
				list := make([]queue.Settlement, len(jobs))
				for i, j := range jobs {
					list[i] = queue.Settlement{Ref: queue.Ref{ID: j.ID, Token: j.Token}, Verb: queue.VerbAck}
				}
				out, err := s.Settle(ctx, list)
				if err != nil {
					b.Errorf("settle: %v", err)
					return
				}
				for _, o := range out {
					if o.Status != queue.SettleOK {
						b.Errorf("settle: %+v", o)
					}
				}
				if settled.Add(int64(len(out))) == int64(b.N) {
					stop()
				}
			}
		})
	}
	wg.Wait()
	b.StopTimer()
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "jobs/s")
	report, err := s.Audit(ctx)
	if err != nil || len(report.Faults) > 0 || report.Enqueued != int64(b.N) || report.Removed+report.Counts[queue.StateSucceeded] != int64(b.N) {
		b.Errorf("audit after %d jobs: %+v %v", b.N, report, err)
	}
}

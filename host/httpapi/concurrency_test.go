package httpapi_test

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/taskhost/taskhost/host/httpapi"
	"github.com/taskhost/taskhost/queue"
	"github.com/taskhost/taskhost/queue/memq"
)

// gate is a store that lets no enqueue through before all of them have arrived.
type gate struct {
	*memq.Store
	arrived sync.WaitGroup
}

func (g *gate) Enqueue(ctx context.Context, specs []queue.JobSpec) ([]queue.EnqueueOutcome, error) {
	g.arrived.Done()
	g.arrived.Wait()
	return g.Store.Enqueue(ctx, specs)
}

// 64 enqueues are inside the store at once: nothing before it makes them wait for each other.
func TestConcurrentEnqueuesMeetInTheStore(t *testing.T) {
	t.Parallel()
	const n = 64
	g := &gate{}
	g.arrived.Add(n)
	s := newSite(t, func(o *httpapi.Options) {
		g.Store = o.Store.(*memq.Store)
		o.Store = g
	})
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() {
			if a := s.send("POST", "/v1/jobs", fmt.Sprintf(`{"type":"a","payload":%d}`, i)); a.status != 201 {
				t.Errorf("%d %s", a.status, a.body)
			}
		})
	}
	wg.Wait()
	report, err := s.store.Audit(t.Context())
	if err != nil || report.Enqueued != n {
		t.Errorf("%d jobs (%v)", report.Enqueued, err)
	}
}

// swallow takes every job and keeps none, so that only the API is measured.
type swallow struct{ *memq.Store }

func (swallow) Enqueue(_ context.Context, specs []queue.JobSpec) ([]queue.EnqueueOutcome, error) {
	out := make([]queue.EnqueueOutcome, len(specs))
	for i := range out {
		out[i] = queue.EnqueueOutcome{Status: queue.EnqueueCreated, ID: "job_01kb6x3v9se5h9r3t7d4m1n8qa"}
	}
	return out, nil
}

func newBenchServer(b *testing.B) *httpapi.Server {
	b.Helper()
	s, err := httpapi.New(httpapi.Options{Store: swallow{memq.New(memq.Options{})}, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		b.Fatal(err)
	}
	return s
}

// BenchmarkEnqueueHandler is the work of the server for one job, without a connection.
func BenchmarkEnqueueHandler(b *testing.B) {
	h := newBenchServer(b).Handler()
	b.ReportAllocs()
	for b.Loop() {
		r := httptest.NewRequest("POST", "http://127.0.0.1/v1/jobs", strings.NewReader(`{"type":"a","payload":{"w":200}}`))
		r.Header.Set("Content-Type", "application/json")
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		if w.Code != 201 {
			b.Fatal(w.Body)
		}
	}
}

// BenchmarkEnqueueConnections is one job per request on kept connections, client included.
func BenchmarkEnqueueConnections(b *testing.B) {
	srv := httptest.NewServer(newBenchServer(b).Handler())
	defer srv.Close()
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 64}}
	defer client.CloseIdleConnections()
	b.SetParallelism(32)
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			resp, err := client.Post(srv.URL+"/v1/jobs", "application/json", strings.NewReader(`{"type":"a","payload":{"w":200}}`))
			if err != nil {
				b.Error(err)
				return
			}
			_, _ = io.Copy(io.Discard, resp.Body)
			_ = resp.Body.Close()
		}
	})
}

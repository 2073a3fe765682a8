package redisq_test

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/taskhost/taskhost/queue"
	"github.com/taskhost/taskhost/queue/redisq"
)

const (
	benchBatch   = 64
	benchSettler = 4
)

// place spreads job i over queues or tenants.
type place func(i int64) (tenant, queue string)

func oneQueue(int64) (string, string) { return "default", "mail" }

func queues(n int64) place {
	names := make([]string, n)
	for i := range names {
		names[i] = "q" + strconv.Itoa(i)
	}
	return func(i int64) (string, string) { return "default", names[i%n] }
}

func tenants(n int64) place {
	names := make([]string, n)
	for i := range names {
		names[i] = "t" + strconv.Itoa(i)
	}
	return func(i int64) (string, string) { return names[i%n], "mail" }
}

// redisCPU is the time the server's main thread has used.
func redisCPU(b *testing.B, c *redis.Client) time.Duration {
	b.Helper()
	text, err := c.Info(b.Context(), "cpu").Result()
	if err != nil {
		b.Fatal(err)
	}
	var sum float64
	for line := range strings.SplitSeq(text, "\r\n") {
		for _, name := range []string{"used_cpu_sys_main_thread:", "used_cpu_user_main_thread:"} {
			if v, ok := strings.CutPrefix(line, name); ok {
				f, err := strconv.ParseFloat(v, 64)
				if err != nil {
					b.Fatal(err)
				}
				sum += f
			}
		}
	}
	return time.Duration(sum * float64(time.Second))
}

// bench is one store under load.
type bench struct {
	*testing.B
	s     *redisq.Store
	admin *redis.Client
	cpu   time.Duration
}

func newBench(b *testing.B, r queue.Retention) *bench {
	b.Helper()
	return newBenchIn(b, redisq.ModeLua, r)
}

func newBenchIn(b *testing.B, m mode, r queue.Retention) *bench {
	b.Helper()
	s := open(b, redisq.Options{URL: m.url(b)})
	if err := s.Configure(b.Context(), queue.Scheduling{Retention: r}); err != nil {
		b.Fatal(err)
	}
	admin := redis.NewClient(&redis.Options{Addr: shared.Server(b).Addr()})
	b.Cleanup(func() {
		if err := admin.Close(); err != nil {
			b.Error(err)
		}
	})
	return &bench{B: b, s: s, admin: admin}
}

func (b *bench) start() {
	b.cpu = redisCPU(b.B, b.admin)
	b.ResetTimer()
}

// stop reports, and compares the books.
func (b *bench) stop() {
	b.StopTimer()
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "jobs/s")
	b.ReportMetric(float64((redisCPU(b.B, b.admin)-b.cpu).Nanoseconds())/1e3/float64(b.N), "redis-µs/job")
	r, err := b.s.Audit(b.Context())
	if err != nil || len(r.Faults) > 0 || r.Enqueued != int64(b.N) || r.Removed+r.Counts[queue.StateSucceeded] != int64(b.N) {
		b.Errorf("audit after %d jobs: %+v %v", b.N, r, err)
	}
}

func (b *bench) spec(at place, i int64, payload []byte) queue.JobSpec {
	t, q := at(i)
	return queue.JobSpec{Tenant: t, Queue: q, Type: "send", Payload: payload, MaxAttempts: 3}
}

// fill stores all jobs, a hundred per call.
func (b *bench) fill(at place) {
	payload := make([]byte, 100)
	for from := 0; from < b.N; from += 500 {
		specs := make([]queue.JobSpec, 0, 500)
		for i := from; i < min(from+500, b.N); i++ {
			specs = append(specs, b.spec(at, int64(i), payload))
		}
		if _, err := b.s.Enqueue(b.Context(), specs); err != nil {
			b.Fatal(err)
		}
	}
}

// produce stores all jobs, one per call, from so many goroutines.
func (b *bench) produce(wg *sync.WaitGroup, at place, producers int) {
	payload := make([]byte, 100)
	var next atomic.Int64
	for range producers {
		wg.Go(func() {
			for i := next.Add(1); i <= int64(b.N); i = next.Add(1) {
				out, err := b.s.Enqueue(b.Context(), []queue.JobSpec{b.spec(at, i, payload)})
				if err != nil || out[0].Status != queue.EnqueueCreated {
					b.Errorf("enqueue: %v %v", out, err)
					return
				}
			}
		})
	}
}

// work reserves and acknowledges until all jobs are done. Every id must come once.
func (b *bench) work(wg *sync.WaitGroup) {
	working, stop := context.WithCancel(b.Context())
	batches := make(chan []*queue.Job, benchSettler)
	var settled atomic.Int64
	wg.Go(func() {
		defer stop()
		defer close(batches)
		seen := make(map[string]bool, b.N)
		for settled.Load() < int64(b.N) {
			jobs, err := b.s.Reserve(b.Context(), queue.ReserveParams{Worker: "w", Max: benchBatch, MaxBytes: 4 << 20, Lease: 15 * time.Second})
			if err != nil {
				b.Errorf("reserve: %v", err)
				return
			}
			for _, j := range jobs {
				if seen[j.ID] {
					b.Errorf("%s came twice", j.ID)
				}
				seen[j.ID] = true
			}
			if len(jobs) > 0 {
				batches <- jobs
			} else if b.s.Wait(working, queue.View{}) != nil {
				return
			}
		}
	})
	for range benchSettler {
		wg.Go(func() {
			for jobs := range batches {
				list := make([]queue.Settlement, len(jobs))
				for i, j := range jobs {
					list[i] = queue.Settlement{Ref: queue.Ref{ID: j.ID, Token: j.Token}, Verb: queue.VerbAck, Duration: time.Millisecond}
				}
				out, err := b.s.Settle(b.Context(), list)
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
}

var benchPlaces = []struct {
	name string
	at   place
}{{"queues=1", oneQueue}, {"queues=10", queues(10)}, {"queues=1000", queues(1000)}, {"tenants=1000", tenants(1000)}}

var benchRetentions = []struct {
	name string
	r    queue.Retention
}{{"retention=off", queue.Retention{Succeeded: -1}}, {"retention=default", queue.Retention{}}}

// BenchmarkProcess reserves and acknowledges jobs that wait already, 64 at a time.
func BenchmarkProcess(b *testing.B) {
	for _, r := range benchRetentions {
		for _, p := range benchPlaces {
			b.Run(fmt.Sprintf("%s/%s", r.name, p.name), func(b *testing.B) {
				x := newBench(b, r.r)
				x.fill(p.at)
				x.start()
				var wg sync.WaitGroup
				x.work(&wg)
				wg.Wait()
				x.stop()
			})
		}
	}
}

// BenchmarkModes is a job's whole life with scripts in Redis and without: 64 producers and batches of 64, and one job per call.
func BenchmarkModes(b *testing.B) {
	for _, m := range []mode{redisq.ModeLua, redisq.ModeNoLua} {
		b.Run(string(m)+"/batches", func(b *testing.B) {
			x := newBenchIn(b, m, queue.Retention{Succeeded: -1})
			x.start()
			var wg sync.WaitGroup
			x.work(&wg)
			x.produce(&wg, oneQueue, 64)
			wg.Wait()
			x.stop()
		})
		b.Run(string(m)+"/one by one", func(b *testing.B) {
			x := newBenchIn(b, m, queue.Retention{Succeeded: -1})
			x.start()
			for i := range int64(b.N) {
				if _, err := x.s.Enqueue(b.Context(), []queue.JobSpec{x.spec(oneQueue, i, nil)}); err != nil {
					b.Fatal(err)
				}
				jobs, err := x.s.Reserve(b.Context(), queue.ReserveParams{Worker: "w", Max: 1, Lease: time.Minute})
				if err != nil || len(jobs) != 1 {
					b.Fatalf("%v %v", jobs, err)
				}
				if _, err := x.s.Settle(b.Context(), []queue.Settlement{{Ref: ref(jobs[0]), Verb: queue.VerbAck}}); err != nil {
					b.Fatal(err)
				}
			}
			x.stop()
		})
	}
}

// BenchmarkEnqueue stores jobs: one per call from many goroutines, or many per call.
func BenchmarkEnqueue(b *testing.B) {
	for _, producers := range []int{1, 64, 256} {
		b.Run(fmt.Sprintf("goroutines=%d", producers), func(b *testing.B) {
			x := newBench(b, queue.Retention{Succeeded: -1})
			x.start()
			var wg sync.WaitGroup
			x.produce(&wg, oneQueue, producers)
			wg.Wait()
			x.StopTimer()
			x.ReportMetric(float64(b.N)/x.Elapsed().Seconds(), "jobs/s")
		})
	}
	b.Run("bulk=500", func(b *testing.B) {
		x := newBench(b, queue.Retention{Succeeded: -1})
		x.start()
		x.fill(oneQueue)
		x.StopTimer()
		x.ReportMetric(float64(b.N)/x.Elapsed().Seconds(), "jobs/s")
	})
}

// BenchmarkEndToEnd is a job's whole life: 256 producers enqueue one job each and wait for the answer, one dispatcher reserves 64 at
// a time, 64 jobs are settled in one call. Every job is counted, and the books are compared at the end.
func BenchmarkEndToEnd(b *testing.B) {
	for _, r := range benchRetentions {
		for _, p := range benchPlaces {
			b.Run(fmt.Sprintf("%s/%s", r.name, p.name), func(b *testing.B) {
				x := newBench(b, r.r)
				x.start()
				var wg sync.WaitGroup
				x.work(&wg)
				x.produce(&wg, p.at, 256)
				wg.Wait()
				x.stop()
			})
		}
	}
}

package main

import (
	"context"
	"errors"
	"fmt"
	"log"
	"time"

	"github.com/taskhost/taskhost/bench/own"
	"github.com/taskhost/taskhost/bench/peer/asynqpeer"
	"github.com/taskhost/taskhost/bench/redisproc"
	"github.com/taskhost/taskhost/bench/run"
)

// row is one line of comparison. The last side is the peer the ratios refer to.
type row struct {
	name     string
	title    string
	workload run.Workload // without Jobs
	sides    []contestant
}

type contestant struct {
	name  string
	share float64 // of the jobs; slower ones get fewer so that a round stays short
	goal  float64 // times the peer; 0 = none
	cpu   float64 // goal for the store's processor time per job, µs; 0 = none
	// open makes the side for one round, and what to close after it.
	open func(ctx context.Context) (run.Side, func() error, error)
}

func rows(dir string) []row {
	embedded := func(name string, retention time.Duration) func(context.Context) (run.Side, func() error, error) {
		return func(context.Context) (run.Side, func() error, error) {
			return own.Embedded(name, dir, retention), func() error { return nil }, nil
		}
	}
	asynq := func(name string, retention time.Duration) func(context.Context) (run.Side, func() error, error) {
		return func(ctx context.Context) (run.Side, func() error, error) {
			redis, err := redisproc.Start(ctx)
			if err != nil {
				return run.Side{}, nil, err
			}
			return asynqpeer.Side(name, redis, retention), redis.Stop, nil
		}
	}
	redis := func(name string, retention time.Duration) func(context.Context) (run.Side, func() error, error) {
		return func(ctx context.Context) (run.Side, func() error, error) {
			server, err := redisproc.Start(ctx)
			if err != nil {
				return run.Side{}, nil, err
			}
			return own.Redis(name, server, retention), server.Stop, nil
		}
	}
	both := run.Workload{Payload: 100, Producers: 256, Workers: 64}
	backlog := both
	backlog.Backlog = true
	queues, tenants := backlog, backlog
	queues.Queues, tenants.Tenants = 1000, 1000
	callers := run.Workload{Payload: 100, Producers: 64, Store: true}
	bulk := callers
	bulk.Producers, bulk.Bulk = 4, 500
	plain := contestant{"asynq v0.26, no retention", 0.1, 0, 0, asynq("asynq", 0)}
	return []row{{
		name:     "embedded",
		title:    "Embedded store end to end: 256 producers that each wait for every job, 64 workers, native no-op handler, 100-byte payload; both at once",
		workload: both,
		sides: []contestant{
			{"taskhost sqlite, fsync per commit, retention off", 1, 18, 0, embedded("off", -1)},
			{"taskhost sqlite, fsync per commit, default retention", 1, 8, 0, embedded("default", 0)},
			{"asynq v0.26 on Redis, AOF everysec, no retention", 0.1, 0, 0, asynq("asynq", 0)},
		},
	}, {
		name:     "redis",
		title:    "One Redis, AOF everysec, end to end: 256 producers that each wait for every job, 64 workers, native no-op handler, 100-byte payload; both at once",
		workload: both,
		sides: []contestant{
			{"taskhost, retention off", 1, 18, 8, redis("off", -1)},
			{"taskhost, default retention", 0.5, 0, 0, redis("default", 0)},
			{"asynq v0.26, Retention 24h", 0.1, 0, 0, asynq("asynq retention", 24*time.Hour)},
			plain,
		},
	}, {
		name:     "redis-process",
		title:    "One Redis, AOF everysec, a backlog: all jobs are enqueued before the clock starts; 64 workers, native no-op handler, 100-byte payload",
		workload: backlog,
		sides: []contestant{
			{"taskhost, retention off", 1, 30, 0, redis("off", -1)},
			{"taskhost, default retention", 0.5, 0, 0, redis("default", 0)},
			{"asynq v0.26, Retention 24h", 0.1, 0, 0, asynq("asynq retention", 24*time.Hour)},
			plain,
		},
	}, {
		name:     "redis-queues",
		title:    "As redis-process, in 1,000 busy queues; the peer has one queue",
		workload: queues,
		sides:    []contestant{{"taskhost, 1,000 queues, retention off", 1, 10, 0, redis("queues", -1)}, plain},
	}, {
		name:     "redis-tenants",
		title:    "As redis-process, 1,000 busy tenants; the peer has no tenants and one queue",
		workload: tenants,
		sides:    []contestant{{"taskhost, 1,000 tenants, retention off", 1, 0, 20, redis("tenants", -1)}, plain},
	}, {
		name:     "redis-enqueue",
		title:    "Enqueueing on one Redis, AOF everysec, 100-byte payload: 64 callers that each wait for every job",
		workload: callers,
		sides:    []contestant{{"taskhost", 1, 3, 0, redis("callers", -1)}, {"asynq v0.26", 0.3, 0, 0, asynq("asynq", 0)}},
	}, {
		name:     "redis-bulk",
		title:    "Enqueueing on one Redis, AOF everysec, 100-byte payload: 4 callers with 500 jobs per call; the peer has no such call, its callers enqueue one by one",
		workload: bulk,
		sides:    []contestant{{"taskhost, 500 per call", 1, 8, 0, redis("bulk", -1)}, {"asynq v0.26, 64 callers", 0.3, 0, 0, asynqCallers(asynq("asynq", 0))}},
	}}
}

// asynqCallers gives a side 64 producers, which it needs where the workload has fewer.
func asynqCallers(open func(context.Context) (run.Side, func() error, error)) func(context.Context) (run.Side, func() error, error) {
	return func(ctx context.Context) (run.Side, func() error, error) {
		side, closeSide, err := open(ctx)
		inner := side.Run
		side.Run = func(ctx context.Context, w run.Workload, seen func([]byte)) (run.Measure, error) {
			w.Producers = 64
			return inner(ctx, w, seen)
		}
		return side, closeSide, err
	}
}

func (r row) measure(ctx context.Context, rounds, jobs int, report *report) error {
	rates, cpu := make([][]float64, len(r.sides)), make([][]float64, len(r.sides))
	for round := range rounds {
		for i, c := range r.sides {
			w := r.workload
			w.Jobs = max(int(float64(jobs)*c.share), 1000)
			m, err := c.once(ctx, w)
			if err != nil {
				return err
			}
			rate, store := float64(w.Jobs)/m.Elapsed.Seconds(), float64(m.StoreCPU.Nanoseconds())/1e3/float64(w.Jobs)
			log.Printf("%s round %d/%d: %s: %.0f jobs/s, %.1f µs of the store (%d jobs)", r.name, round+1, rounds, c.name, rate, store, w.Jobs)
			rates[i], cpu[i] = append(rates[i], rate), append(cpu[i], store)
		}
	}
	report.add(r, rates, cpu, jobs)
	return nil
}

// roundLimit bounds one side of one round.
const roundLimit = 5 * time.Minute

func (c contestant) once(ctx context.Context, w run.Workload) (m run.Measure, err error) {
	ctx, cancel := context.WithTimeoutCause(ctx, roundLimit, fmt.Errorf("%s: not done in %s", c.name, roundLimit))
	defer cancel()
	side, closeSide, err := c.open(ctx)
	if err != nil {
		return m, err
	}
	defer func() { err = errors.Join(err, closeSide()) }()
	return run.Counted(ctx, side, w)
}

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
	return []row{{
		name:     "embedded",
		title:    "Embedded store end to end: 256 producers that each wait for every job, 64 workers, native no-op handler, 100-byte payload; both at once",
		workload: run.Workload{Payload: 100, Producers: 256, Workers: 64},
		sides: []contestant{
			{"taskhost sqlite, fsync per commit, retention off", 1, 18, embedded("off", -1)},
			{"taskhost sqlite, fsync per commit, default retention", 1, 8, embedded("default", 0)},
			{"asynq v0.26 on Redis, AOF everysec, no retention", 0.1, 0, asynq("asynq", 0)},
		},
	}, {
		name:     "redis",
		title:    "One Redis, AOF everysec, end to end: 256 producers that each wait for every job, 64 workers, native no-op handler, 100-byte payload; both at once",
		workload: run.Workload{Payload: 100, Producers: 256, Workers: 64},
		sides: []contestant{
			{"taskhost, retention off", 1, 18, redis("off", -1)},
			{"taskhost, default retention", 0.5, 0, redis("default", 0)},
			{"asynq v0.26, Retention 24h", 0.1, 0, asynq("asynq retention", 24*time.Hour)},
			{"asynq v0.26, no retention", 0.1, 0, asynq("asynq", 0)},
		},
	}}
}

func (r row) measure(ctx context.Context, rounds, jobs int, report *report) error {
	rates := make([][]float64, len(r.sides))
	for round := range rounds {
		for i, c := range r.sides {
			w := r.workload
			w.Jobs = max(int(float64(jobs)*c.share), 1000)
			rate, err := c.once(ctx, w)
			if err != nil {
				return err
			}
			log.Printf("%s round %d/%d: %s: %.0f jobs/s (%d jobs)", r.name, round+1, rounds, c.name, rate, w.Jobs)
			rates[i] = append(rates[i], rate)
		}
	}
	report.add(r, rates, jobs)
	return nil
}

// roundLimit bounds one side of one round.
const roundLimit = 5 * time.Minute

func (c contestant) once(ctx context.Context, w run.Workload) (rate float64, err error) {
	ctx, cancel := context.WithTimeoutCause(ctx, roundLimit, fmt.Errorf("%s: not done in %s", c.name, roundLimit))
	defer cancel()
	side, closeSide, err := c.open(ctx)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, closeSide()) }()
	m, err := run.Counted(ctx, side, w)
	if err != nil {
		return 0, err
	}
	return float64(w.Jobs) / m.Elapsed.Seconds(), nil
}

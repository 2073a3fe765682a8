package main

import (
	"context"
	"errors"
	"fmt"
	"log"
	"slices"
	"time"

	"github.com/taskhost/taskhost/bench/own"
	"github.com/taskhost/taskhost/bench/peer/asynqpeer"
	"github.com/taskhost/taskhost/bench/redisproc"
)

// probe is a row that is no contest of jobs per second.
type probe struct {
	name    string
	measure func(ctx context.Context, rounds int, sizes sizes, report *report) error
}

// sizes of probes, from the flags.
type sizes struct {
	idle    time.Duration // how long a host is watched that has nothing to do
	backlog int           // jobs beside which a light tenant waits
}

func probes() []probe {
	return []probe{{"redis-reserve", reserveCost}, {"redis-idle", idle}, {"redis-latency", latency}, {"redis-light", light}}
}

// withRedis runs f with a Redis of its own.
func withRedis(ctx context.Context, f func(ctx context.Context, server *redisproc.Server) error) (err error) {
	server, err := redisproc.Start(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, server.Stop()) }()
	return f(ctx, server)
}

func reserveCost(ctx context.Context, rounds int, _ sizes, report *report) error {
	numbers := []int{1, 100, 10_000, 100_000}
	cost := make([][]float64, len(numbers))
	for round := range rounds {
		for i, n := range numbers {
			err := withRedis(ctx, func(ctx context.Context, server *redisproc.Server) error {
				d, err := own.ReserveCost(ctx, server, n, 32_000)
				cost[i] = append(cost[i], float64(d.Nanoseconds())/1e3)
				return err
			})
			if err != nil {
				return err
			}
			log.Printf("redis-reserve round %d/%d: %d queues: %.1f µs", round+1, rounds, n, cost[i][round])
		}
	}
	var table [][]string
	for i, n := range numbers {
		ratios, goal := make([]float64, rounds), "-"
		for k := range ratios {
			ratios[k] = cost[i][k] / cost[1][k]
		}
		if n == 100_000 {
			goal = "≤ 1.25"
		}
		table = append(table, []string{fmt.Sprint(n), spread(cost[i], "%.1f"), spread(ratios, "%.2f"), goal})
	}
	report.table("redis-reserve", fmt.Sprintf("Processor time of Redis per reserved job, 64 per call, stock settings. %d rounds, in turns.", rounds),
		[]string{"queues with jobs", "µs per job, median (range)", "times that at 100 queues", "goal"}, table)
	return nil
}

func idle(ctx context.Context, _ int, sizes sizes, report *report) error {
	var table [][]string
	for _, n := range []int{1, 100, 10_000} {
		var cost own.Idle
		err := withRedis(ctx, func(ctx context.Context, server *redisproc.Server) (err error) {
			cost, err = own.MeasureIdle(ctx, server, n, sizes.idle)
			return err
		})
		if err != nil {
			return err
		}
		log.Printf("redis-idle: %d queues: %+v", n, cost)
		table = append(table, []string{fmt.Sprint(n), fmt.Sprintf("%.2f", cost.Commands), "≤ 0.2", fmt.Sprintf("%.2f", cost.Inside), fmt.Sprintf("%.2f %%", cost.CPU), "≤ 1 %"})
	}
	report.table("redis-idle", fmt.Sprintf("A host without work, heartbeats and maintenance included, watched for %s. One run: it is a mean over that time.", sizes.idle),
		[]string{"queues", "client commands/s", "goal", "commands inside scripts/s", "processor of the host", "goal"}, table)
	return nil
}

// waiting is a side of the rows about how long a job waits.
type waiting struct {
	name, goal string
	measure    func(ctx context.Context, server *redisproc.Server) ([]time.Duration, error)
}

func measureWaits(ctx context.Context, name, title string, rounds int, sides []waiting, report *report) error {
	p50, p99 := make([][]float64, len(sides)), make([][]float64, len(sides))
	for round := range rounds {
		for i, side := range sides {
			err := withRedis(ctx, func(ctx context.Context, server *redisproc.Server) error {
				waits, err := side.measure(ctx, server)
				if err != nil {
					return err
				}
				slices.Sort(waits)
				at := func(q float64) float64 { return waits[int(q*float64(len(waits)-1))].Seconds() * 1e3 }
				p50[i], p99[i] = append(p50[i], at(0.5)), append(p99[i], at(0.99))
				return nil
			})
			if err != nil {
				return err
			}
			log.Printf("%s round %d/%d: %s: p50 %.2f ms, p99 %.2f ms", name, round+1, rounds, side.name, p50[i][round], p99[i][round])
		}
	}
	var table [][]string
	for i, side := range sides {
		table = append(table, []string{side.name, spread(p50[i], "%.2f"), spread(p99[i], "%.2f"), side.goal})
	}
	report.table(name, fmt.Sprintf("%s. %d rounds, in turns.", title, rounds), []string{"", "p50, ms, median (range)", "p99, ms", "goal for p99"}, table)
	return nil
}

// probeJobs is how many waits make one round.
const probeJobs = 1000

func taskhost(load own.Load) func(context.Context, *redisproc.Server) ([]time.Duration, error) {
	return func(ctx context.Context, server *redisproc.Server) ([]time.Duration, error) {
		return own.Waits(ctx, server, load, probeJobs)
	}
}

func latency(ctx context.Context, rounds int, _ sizes, report *report) error {
	return measureWaits(ctx, "redis-latency", "From before the enqueue to the start of the handler, one job after the other", rounds, []waiting{
		{"taskhost, idle", "≤ 2 ms", taskhost(own.Load{})},
		{"taskhost, beside 20,000 jobs/s", "≤ 2 ms", taskhost(own.Load{Rate: 20_000})},
		{"asynq v0.26, idle (20 jobs)", "-", func(ctx context.Context, server *redisproc.Server) ([]time.Duration, error) {
			return asynqpeer.Waits(ctx, server, 20)
		}},
	}, report)
}

func light(ctx context.Context, rounds int, sizes sizes, report *report) error {
	return measureWaits(ctx, "redis-light", "A tenant of the same weight enqueues one job after the other while another tenant's backlog is being handled; from before the enqueue to the start", rounds, []waiting{
		{fmt.Sprintf("backlog of %d jobs", sizes.backlog/10), "-", taskhost(own.Load{Backlog: sizes.backlog / 10})},
		{fmt.Sprintf("backlog of %d jobs", sizes.backlog), "as with a tenth", taskhost(own.Load{Backlog: sizes.backlog})},
	}, report)
}

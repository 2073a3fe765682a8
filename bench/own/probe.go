package own

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/taskhost/taskhost/bench/redisproc"
	"github.com/taskhost/taskhost/bench/run"
	"github.com/taskhost/taskhost/handlers"
	"github.com/taskhost/taskhost/queue"
	"github.com/taskhost/taskhost/queue/redisq"
)

// ReserveCost is the processor time of Redis per reserved job, 64 per call, with so many queues of ready jobs: one that every queue has,
// and of few queues as many as make up the same number of jobs. All jobs are counted.
func ReserveCost(ctx context.Context, server *redisproc.Server, queues, jobs int) (perJob time.Duration, err error) {
	store, err := openRedis(ctx, server, -1)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, store.Close()) }()
	if _, err := reserve(ctx, store, 1); err != nil { // the view is there before the queues are
		return 0, err
	}
	if err := produce(ctx, store, run.Workload{Jobs: max(queues, 2*jobs), Payload: 100, Producers: 1, Bulk: 500, Queues: queues}); err != nil {
		return 0, err
	}
	m, err := measure(server.MainThreadCPU, func() error {
		for got := 0; got < jobs; {
			n, err := reserve(ctx, store, 64)
			if err == nil && n != 64 {
				err = fmt.Errorf("%d jobs were reserved instead of 64", n)
			}
			if err != nil {
				return err
			}
			got += n
		}
		return nil
	})
	return m.StoreCPU / time.Duration(jobs), err
}

func reserve(ctx context.Context, store queue.Queue, most int) (int, error) {
	jobs, err := store.Reserve(ctx, queue.ReserveParams{Worker: "bench", Max: most, MaxBytes: 4 << 20, Lease: 10 * time.Minute})
	return len(jobs), err
}

// Idle is what a host without work costs.
type Idle struct {
	Commands float64 // commands of clients per second
	Inside   float64 // commands within scripts per second
	CPU      float64 // processor time of the host's process, percent of one processor
}

// MeasureIdle runs a host beside so many queues that have had a job, for the given time.
func MeasureIdle(ctx context.Context, server *redisproc.Server, queues int, length time.Duration) (idle Idle, err error) {
	store, err := openRedis(ctx, server, 0)
	if err != nil {
		return idle, err
	}
	defer func() { err = errors.Join(err, store.Close()) }()
	h, err := newHost(store, 64, func(*handlers.Invocation) {})
	if err != nil {
		return idle, err
	}
	if err := h.Start(ctx); err != nil {
		return idle, err
	}
	defer func() { err = errors.Join(err, h.Stop(context.WithoutCancel(ctx))) }()
	if err := produce(ctx, store, run.Workload{Jobs: queues, Payload: 100, Producers: 1, Bulk: 500, Queues: queues}); err != nil {
		return idle, err
	}
	if err := settled(ctx, h, int64(queues)); err != nil {
		return idle, err
	}
	before, beforeInside, err := commands(server)
	if err != nil {
		return idle, err
	}
	cpu, start := processCPU(), time.Now()
	if err := pause(ctx, length); err != nil {
		return idle, err
	}
	seconds, used := time.Since(start).Seconds(), processCPU()-cpu
	after, afterInside, err := commands(server)
	return Idle{float64(after-before) / seconds, float64(afterInside-beforeInside) / seconds, 100 * used.Seconds() / seconds}, err
}

// commands counts what clients have sent, but for INFO, and what scripts have called.
func commands(server *redisproc.Server) (clients, inside int64, err error) {
	info, err := server.Info("commandstats")
	if err != nil {
		return 0, 0, err
	}
	for name, v := range info {
		text, _, _ := strings.Cut(strings.TrimPrefix(v, "calls="), ",")
		n, err := strconv.ParseInt(text, 10, 64)
		if err != nil {
			return 0, 0, fmt.Errorf("INFO commandstats: %s: %w", name, err)
		}
		name, _, _ = strings.Cut(strings.TrimPrefix(name, "cmdstat_"), "|")
		switch name {
		case "info", "quit":
		case "evalsha", "eval", "blpop", "ping", "hello", "client", "select", "auth", "subscribe", "unsubscribe", "script":
			clients += n
		default:
			inside += n
		}
	}
	return clients, inside, nil
}

func processCPU() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		panic(err) // it has no error but for a wrong argument
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

func pause(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// Load is beside what Waits measures.
type Load struct {
	Rate    int // jobs per second, enqueued by others all the time and handled by the same host
	Backlog int // jobs of another tenant that are ready before
}

// Waits enqueues n jobs one after the other, each when the one before has started, and returns the times from before the enqueue to the
// handler's start. Every job that was enqueued is counted, those of the load too.
func Waits(ctx context.Context, server *redisproc.Server, load Load, n int) (waits []time.Duration, err error) {
	store, err := openRedis(ctx, server, -1)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, store.Close()) }()
	starts := make(chan time.Time, 1)
	h, err := newHost(store, 64, func(inv *handlers.Invocation) {
		if len(inv.Payload) == probeBytes {
			starts <- time.Now()
		}
	})
	if err != nil {
		return nil, err
	}
	if err := produce(ctx, store, run.Workload{Jobs: load.Backlog, Payload: 100, Producers: 4, Bulk: 500}); err != nil {
		return nil, err
	}
	if err := h.Start(ctx); err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, h.Stop(context.WithoutCancel(ctx))) }()
	others, stop := context.WithCancel(ctx)
	defer stop()
	var group sync.WaitGroup
	var loaded int
	var failure error
	if load.Rate > 0 {
		group.Go(func() { loaded, failure = keepUp(others, ctx, store, load.Rate) })
	}
	for range n {
		begun := time.Now()
		outcomes, err := store.Enqueue(ctx, []queue.JobSpec{{Tenant: "light", Queue: "default", Type: taskType, Payload: make([]byte, probeBytes), MaxAttempts: 5}})
		if err == nil && outcomes[0].Status != queue.EnqueueCreated {
			err = fmt.Errorf("%s: %w", outcomes[0].Status, outcomes[0].Err)
		}
		if err != nil {
			return nil, err
		}
		select {
		case at := <-starts:
			waits = append(waits, at.Sub(begun))
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
		if err := pause(ctx, 2*time.Millisecond); err != nil { // so that the host is idle again, unless others load it
			return nil, err
		}
	}
	stop()
	group.Wait()
	if failure != nil {
		return nil, failure
	}
	total := int64(n + loaded)
	if load.Backlog == 0 {
		return waits, settled(ctx, h, total)
	}
	return waits, books(ctx, store, total+int64(load.Backlog))
}

// probeBytes is the size of the payload by which the jobs of Waits are told from those of the load.
const probeBytes = 8

// keepUp enqueues so many jobs per second until stop ends, a hundredth of them every 10 ms, and returns how many there were.
func keepUp(stop, ctx context.Context, store queue.Queue, rate int) (n int, err error) {
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	begun := time.Now()
	for {
		select {
		case <-stop.Done():
			return n, nil
		case <-tick.C:
		}
		want := int(time.Since(begun).Seconds()*float64(rate)) - n
		var group sync.WaitGroup
		errs := make([]error, 4)
		for i := range errs {
			group.Go(func() {
				errs[i] = produce(ctx, store, run.Workload{Jobs: want / len(errs), Payload: 100, Producers: 1, Bulk: 50})
			})
		}
		group.Wait()
		n += want / len(errs) * len(errs)
		if err := errors.Join(errs...); err != nil {
			return n, err
		}
	}
}

// books compares what the store knows with what was enqueued.
func books(ctx context.Context, store *redisq.Store, n int64) error {
	r, err := store.Audit(ctx)
	if err == nil && (len(r.Faults) > 0 || r.Enqueued != n) {
		err = fmt.Errorf("%d jobs are in the books instead of %d; faults: %v", r.Enqueued, n, r.Faults)
	}
	return err
}

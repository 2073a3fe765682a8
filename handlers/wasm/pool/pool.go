package pool

import (
	"container/list"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/taskhost/taskhost/abi"
	"github.com/taskhost/taskhost/handlers"
	"github.com/taskhost/taskhost/handlers/wasm/child"
	childside "github.com/taskhost/taskhost/handlers/wasm/runner"
)

// Pool is a set of runner processes. All methods may be called at once from many goroutines.
type Pool struct {
	opts    Options
	args    []string
	spawner *child.Spawner
	ctx     context.Context // of the keepers; ends at the end of Close
	stop    context.CancelFunc
	keepers sync.WaitGroup
	flying  sync.WaitGroup

	mu            sync.Mutex
	runners       map[*runner]struct{}
	waiters       list.List // of *waiter
	extras        int       // extra runners, those that start included
	extraStarting int
	failures      int // starts that failed, in a row
	lastErr       error
	closed        bool
	stats         Stats
}

// New starts a pool. The processes start in the background; attempts wait for the first one.
func New(o Options) (*Pool, error) {
	if err := o.fill(); err != nil {
		return nil, err
	}
	p := &Pool{
		opts:    o,
		args:    childside.Config{Slots: o.Slots, MemoryPerSlot: o.MemoryBytes, Modules: o.Modules, Artifacts: o.Artifacts, Lockdown: o.Lockdown}.Args(),
		spawner: child.NewSpawner(),
		runners: map[*runner]struct{}{},
	}
	p.ctx, p.stop = context.WithCancel(context.Background())
	for range o.Runners {
		p.keepers.Go(p.keep)
	}
	return p, nil
}

// Slots is how many attempts can run at once.
func (p *Pool) Slots() int { return p.opts.Runners * p.opts.Slots }

// Artifact is a compiled module that was verified.
type Artifact struct {
	Dir  string
	Kind handlers.Kind
}

// Invoke runs one attempt of a module and returns when it is over and nothing of it runs on. See handlers.Runtime.
func (p *Pool) Invoke(ctx context.Context, inv *handlers.Invocation, artifact Artifact) handlers.Outcome {
	if inv.Limits.MemoryBytes > p.opts.MemoryBytes {
		return unavailable(fmt.Errorf("memory limit of %d bytes: runners have at most %d bytes for an attempt", inv.Limits.MemoryBytes, p.opts.MemoryBytes))
	}
	p.mu.Lock()
	if p.closed {
		p.mu.Unlock()
		return interrupted(handlers.ErrStopped, 0)
	}
	p.flying.Add(1)
	p.mu.Unlock()
	defer p.flying.Done()
	for {
		r, err := p.acquire(ctx, inv.Alone, inv.Deadline)
		if err != nil {
			return refused(ctx, err)
		}
		f, err := r.begin(ctx, inv, artifact)
		if errors.Is(err, errRunnerEnded) { // it was not used; the next one is better
			p.discard(r)
			p.release(r)
			continue
		}
		if err != nil {
			p.release(r)
			return unavailable(err)
		}
		out := f.await(ctx)
		f.close()
		p.release(r)
		return out
	}
}

// refused is the outcome of an attempt that was not begun.
func refused(ctx context.Context, err error) handlers.Outcome {
	if ctx.Err() != nil || errors.Is(err, handlers.ErrStopped) {
		return interrupted(err, 0)
	}
	return unavailable(err)
}

func unavailable(err error) handlers.Outcome {
	return handlers.Outcome{Kind: handlers.OutcomeUnavailable, RetryAfter: -1, Error: &handlers.Error{Kind: abi.KindUnavailable, Message: err.Error()}}
}

func interrupted(cause error, after time.Duration) handlers.Outcome {
	return handlers.Outcome{Kind: handlers.OutcomeInterrupted, RetryAfter: -1, Duration: after,
		Error: &handlers.Error{Kind: abi.KindInterrupted, Message: cause.Error()}}
}

// await waits for the end of an attempt, and makes it end when it has to: first by asking, then by killing its runner.
func (f *flight) await(ctx context.Context) handlers.Outcome {
	r := f.r
	timer := time.NewTimer(time.Until(f.inv.Deadline) + r.opts.Grace)
	defer timer.Stop()
	cancelled, killed := ctx.Done(), false
	for {
		select {
		case out := <-f.outcome:
			if f.done != nil {
				r.logs.wait(f.done.GetLogLines(), r.dead)
				return f.judge(ctx, out)
			}
			if killed {
				return f.overdue(ctx)
			}
			return out
		case <-cancelled:
			cancelled = nil
			r.work.Add(cancelItem{f.id, context.Cause(ctx).Error()})
			timer.Reset(min(r.opts.Grace, time.Until(f.inv.Deadline)+r.opts.Grace))
		case <-timer.C:
			killed = true
			r.log.Warn("an attempt did not end; its runner is killed", "job", f.inv.JobID, "type", f.inv.Type, "after", time.Since(f.began))
			r.end(fateKilled, errNeighbour, true)
		}
	}
}

// errNeighbour is what the others in a killed runner are told. It names nobody: they may be of another tenant.
var errNeighbour = errors.New("another job that shared its runner did not end")

// judge adapts what the handler said to what the host had asked for: a handler that gives up because it was told to stop is interrupted.
func (f *flight) judge(ctx context.Context, out handlers.Outcome) handlers.Outcome {
	if ctx.Err() != nil && out.Kind == handlers.OutcomeRetry {
		return interrupted(context.Cause(ctx), out.Duration)
	}
	return out
}

// overdue is the outcome of an attempt that was ended by killing its runner.
func (f *flight) overdue(ctx context.Context) handlers.Outcome {
	took := time.Since(f.began)
	if ctx.Err() != nil {
		return interrupted(context.Cause(ctx), took)
	}
	return handlers.Outcome{Kind: handlers.OutcomeRetry, RetryAfter: -1, Duration: took, Error: &handlers.Error{Kind: abi.KindKilled,
		Message: fmt.Sprintf("deadline exceeded: it was killed after %s", took.Round(time.Millisecond))}}
}

// Stats returns the state of the pool.
func (p *Pool) Stats() Stats {
	p.mu.Lock()
	defer p.mu.Unlock()
	s := p.stats
	s.Waiting = p.waiters.Len()
	if p.lastErr != nil {
		s.LastError = p.lastErr.Error()
	}
	for r := range p.runners {
		s.Runners = append(s.Runners, RunnerStats{
			PID: r.proc.cmd.Process.Pid, Since: r.since, Engine: r.engine, Sandbox: r.sandbox,
			Busy: r.slots.busy, Done: r.slots.begun, Alone: r.slots.alone, Draining: r.slots.draining, Stalled: r.slots.stalled,
		})
	}
	slices.SortFunc(s.Runners, func(a, b RunnerStats) int { return a.PID - b.PID })
	return s
}

// Close refuses new attempts, waits for those in flight until ctx ends, then kills what is left. It returns when all processes are
// gone. The error says how many had to be killed; nil if none.
func (p *Pool) Close(ctx context.Context) error {
	p.mu.Lock()
	first := !p.closed
	p.closed = true
	p.dispatch() // refuses those who wait
	p.mu.Unlock()
	if !first {
		p.keepers.Wait()
		return nil
	}
	landed := make(chan struct{})
	go func() {
		p.flying.Wait()
		close(landed)
	}()
	var err error
	select {
	case <-landed:
	case <-ctx.Done():
		n := 0
		p.mu.Lock()
		for r := range p.runners {
			n += r.slots.busy
			r.end(fateStopped, handlers.ErrStopped, true)
		}
		p.mu.Unlock()
		err = fmt.Errorf("pool: %d attempts were still running: %w", n, context.Cause(ctx))
		<-landed
	}
	p.stop()
	p.keepers.Wait()
	p.spawner.Close()
	return err
}

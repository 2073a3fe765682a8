// Package maintain does what time makes due in the store: promotes, reaps, expires, retains. Of the hosts of a store one does
// it: the one that the store tells (queue.Capabilities.SharedDue), or the holder of the named lease "maintenance", for which the others wait
// to take over. It blocks in Queue.WaitDue and polls nothing.
package maintain

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/taskhost/taskhost/host/lifecycle"
	"github.com/taskhost/taskhost/host/outage"
	"github.com/taskhost/taskhost/queue"
)

// LeaseName is the name of the lease under which maintenance is done.
const LeaseName = "maintenance"

// Store is the part of queue.Queue maintenance needs.
type Store interface {
	Maintain(ctx context.Context) (queue.MaintainReport, error)
	WaitDue(ctx context.Context) error
}

// Options of a Service.
type Options struct {
	Queue  Store
	Leaser queue.Leaser // nil = no lease is needed: the store has one host only, or tells one of several what is due
	Holder string       // who holds the lease
	Log    *slog.Logger
	Random func() float64 // uniform in [0, 1)

	// TTL of the named lease. It is renewed every third, and tried for every half by the others, so a host that died is
	// followed after at most one and a half TTL; New is given two thirds of the lease of a job, so that jobs of the host that
	// died are reaped no later for its having been the one to reap.
	TTL time.Duration
}

// Stats counts since the start.
type Stats struct {
	Leading   bool // now; true of every host of a store that needs no lease
	StoreDown bool // now: the last call failed
	Runs      int64
	Promoted  int64
	Reaped    int64
	Expired   int64
	Retained  int64
	Evicted   int64 // of the retained: over a count, not over their age
}

// Service maintains. Make one with New.
type Service struct {
	o       Options
	loop    lifecycle.Loop
	gate    outage.Gate
	leading atomic.Bool
	counts  struct{ runs, promoted, reaped, expired, retained, evicted atomic.Int64 }
}

// New returns a service that is not started.
func New(o Options) *Service {
	s := &Service{o: o}
	s.gate = outage.Gate{Log: o.Log, What: "maintain the store", Random: o.Random}
	return s
}

// Start begins to maintain, or to wait for the lease.
func (s *Service) Start(ctx context.Context) error { return s.loop.Go(ctx, s.run) }

// Stop ends maintenance and hands the lease back.
func (s *Service) Stop() { s.loop.Stop() }

// Stats returns the counters.
func (s *Service) Stats() Stats {
	c := &s.counts
	return Stats{Leading: s.leading.Load(), StoreDown: !s.gate.Open(), Runs: c.runs.Load(), Promoted: c.promoted.Load(),
		Reaped: c.reaped.Load(), Expired: c.expired.Load(), Retained: c.retained.Load(), Evicted: c.evicted.Load()}
}

// errRenew ends a wait because the lease has to be renewed.
var errRenew = errors.New("time to renew the lease")

func (s *Service) run(ctx context.Context) {
	defer s.resign()
	for ctx.Err() == nil {
		held, err := s.acquire(ctx)
		if err == nil && held {
			if err = s.term(ctx); errors.Is(err, errRenew) {
				s.gate.OK()
				continue
			}
		}
		switch {
		case ctx.Err() != nil:
			return
		case errors.Is(err, queue.ErrClosed):
			s.gate.Failed(err)
			s.o.Log.Error("the store was closed; maintenance ends", "error", err)
			return
		case err != nil:
			// A host that cannot maintain must not keep others from it.
			s.resign()
			if outage.Sleep(ctx, s.gate.Failed(err)) != nil {
				return
			}
		default: // another holds the lease
			s.gate.OK()
			if outage.Sleep(ctx, s.o.TTL/2) != nil {
				return
			}
		}
	}
}

// acquire takes or renews the lease.
func (s *Service) acquire(ctx context.Context) (bool, error) {
	if s.o.Leaser == nil {
		s.leading.Store(true)
		return true, nil
	}
	held, err := s.o.Leaser.AcquireLease(ctx, LeaseName, s.o.Holder, s.o.TTL)
	if err != nil {
		return false, fmt.Errorf("take the lease %q: %w", LeaseName, err)
	}
	if was := s.leading.Swap(held); was != held {
		s.o.Log.Info("maintenance lease", "held", held, "holder", s.o.Holder)
	}
	return held, nil
}

// term maintains until the lease has to be renewed (errRenew), or something failed.
func (s *Service) term(ctx context.Context) error {
	if s.o.Leaser != nil {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(ctx, s.o.TTL/3, errRenew)
		defer cancel()
	}
	for {
		report, err := s.o.Queue.Maintain(ctx)
		if err != nil {
			return ended(ctx, err)
		}
		s.gate.OK()
		s.count(report)
		if report.More {
			if ctx.Err() != nil {
				return context.Cause(ctx)
			}
			continue
		}
		if err := s.o.Queue.WaitDue(ctx); err != nil {
			return ended(ctx, err)
		}
	}
}

// ended prefers the reason why the context ended over what a call made of it.
func ended(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return err
}

func (s *Service) count(r queue.MaintainReport) {
	c := &s.counts
	c.runs.Add(1)
	c.promoted.Add(int64(r.Promoted))
	c.reaped.Add(int64(r.Reaped))
	c.expired.Add(int64(r.Expired))
	c.retained.Add(int64(r.Retained))
	c.evicted.Add(int64(r.Evicted))
	if r.Reaped > 0 {
		s.o.Log.Warn("leases had ended; their jobs run again", "jobs", r.Reaped)
	}
}

// resign hands the lease back, if it is held, so that the next host need not wait for its end.
func (s *Service) resign() {
	if !s.leading.Swap(false) || s.o.Leaser == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	if err := s.o.Leaser.ReleaseLease(ctx, LeaseName, s.o.Holder); err != nil && !errors.Is(err, queue.ErrClosed) && s.gate.Open() {
		s.o.Log.Warn("maintenance lease not handed back; another host waits for its end", "lease_ends_within", s.o.TTL, "error", err)
	}
}

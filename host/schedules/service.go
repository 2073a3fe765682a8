package schedules

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

// LeaseName is the name of the lease under which schedules are served.
const LeaseName = "schedules"

// Times of the service.
const (
	// LateMax is how late a due time may be served before it counts as missed. It is longer than a change of leader takes.
	LateMax = time.Minute
	// TTLDefault is how long the lease lasts. It is renewed every third, and tried for every half by the others.
	TTLDefault = 15 * time.Second
	// IdleEvery is how often a host looks for schedules made by others while there are none.
	IdleEvery = 30 * time.Second
)

// Queue is the part of queue.Queue that schedules need.
type Queue interface {
	Enqueue(ctx context.Context, specs []queue.JobSpec) ([]queue.EnqueueOutcome, error)
	Now(ctx context.Context) (time.Time, error)
}

// Defaults are filled into jobs that do not say.
type Defaults struct {
	MaxAttempts int // 0 = the store's
	Backoff     queue.Backoff
}

// Options of a Service. Queue, Records, Log and Random are required.
type Options struct {
	Queue    Queue
	Records  queue.Records
	Leaser   queue.Leaser  // nil = the store has one host only, which needs no lease and no looking for changes by others
	Holder   string        // who holds the lease
	Passive  bool          // keep the schedules, and leave serving them to other hosts
	Limits   queue.Limits  // of jobs; zero = queue.DefaultLimits
	Defaults Defaults      // of jobs
	TTL      time.Duration // of the lease; default TTLDefault
	Log      *slog.Logger
	Random   func() float64 // uniform in [0, 1)
}

// Stats counts since the start.
type Stats struct {
	Leading   bool  // now
	StoreDown bool  // now: the last call failed
	Schedules int64 // that this host knows of
	Enqueued  int64
	Refused   int64 // the store refused the job
	Skipped   int64 // missed and not caught up
}

// Service keeps schedules and serves them. Make one with New. Everything but serving works without Start, and after Stop.
type Service struct {
	o       Options
	loop    lifecycle.Loop
	gate    outage.Gate
	changed chan struct{} // a definition changed

	leading atomic.Bool
	counts  struct{ known, enqueued, refused, skipped atomic.Int64 }

	// Of the loop's goroutine.
	table    []*entry
	dirty    bool // the table is to be read again
	seen     int64
	acquired time.Time // when the lease was last taken or tried for
}

// New returns a service that is not started.
func New(o Options) *Service {
	if o.TTL <= 0 {
		o.TTL = TTLDefault
	}
	if o.Limits == (queue.Limits{}) {
		o.Limits = queue.DefaultLimits()
	}
	s := &Service{o: o, changed: make(chan struct{}, 1), dirty: true}
	s.gate = outage.Gate{Log: o.Log, What: "serve schedules", Random: o.Random}
	return s
}

// Start begins to serve, or to wait for the lease.
func (s *Service) Start(ctx context.Context) error { return s.loop.Go(ctx, s.run) }

// Stop ends serving and hands the lease back.
func (s *Service) Stop() { s.loop.Stop() }

// Stats returns the counters.
func (s *Service) Stats() Stats {
	c := &s.counts
	return Stats{Leading: s.leading.Load(), StoreDown: !s.gate.Open(), Schedules: c.known.Load(),
		Enqueued: c.enqueued.Load(), Refused: c.refused.Load(), Skipped: c.skipped.Load()}
}

// forever is a wait that only a change ends.
const forever = time.Duration(1<<63 - 1)

func (s *Service) run(ctx context.Context) {
	if s.o.Passive {
		return
	}
	defer s.resign()
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-timer.C:
		case <-s.changed:
			s.dirty = true
		case <-ctx.Done():
			return
		}
		wait, err := s.turn(ctx)
		switch {
		case ctx.Err() != nil:
			return
		case errors.Is(err, queue.ErrClosed):
			s.gate.Failed(err)
			s.o.Log.Error("the store was closed; schedules end", "error", err)
			return
		case errors.Is(err, queue.ErrConflict):
			// Somebody else wrote a state: another host leads, or the schedule was removed. Look again before anything else.
			s.leading.Store(false)
			s.dirty, wait = true, 0
		case err != nil:
			s.resign()     // a host that cannot serve must not keep others from it
			s.dirty = true // what it holds may be ahead of what was stored
			wait = s.gate.Failed(err)
		default:
			s.gate.OK()
		}
		timer.Reset(wait)
	}
}

// turn does what is to be done now, and returns how long nothing is.
func (s *Service) turn(ctx context.Context) (time.Duration, error) {
	shared := s.o.Leaser != nil
	renew := shared && time.Since(s.acquired) >= s.o.TTL/3
	if renew && !s.dirty {
		revision, err := s.revision(ctx)
		if err != nil {
			return 0, err
		}
		s.dirty = revision != s.seen
	}
	if s.dirty {
		if err := s.load(ctx); err != nil {
			return 0, err
		}
	}
	if len(s.table) == 0 {
		s.resign()
		s.acquired = time.Now()
		if shared {
			return IdleEvery, nil
		}
		return forever, nil
	}
	if shared && (renew || !s.leading.Load()) {
		led := s.leading.Load()
		held, err := s.acquire(ctx)
		if err != nil {
			return 0, err
		}
		if !held {
			return s.o.TTL / 2, nil
		}
		if !led { // how far the last leader came
			if err := s.load(ctx); err != nil {
				return 0, err
			}
		}
	}
	s.leading.Store(true)
	wait, err := s.serve(ctx)
	if err == nil && shared {
		wait = min(wait, max(s.o.TTL/3-time.Since(s.acquired), time.Millisecond))
	}
	return wait, err
}

// acquire takes or renews the lease.
func (s *Service) acquire(ctx context.Context) (bool, error) {
	s.acquired = time.Now()
	held, err := s.o.Leaser.AcquireLease(ctx, LeaseName, s.o.Holder, s.o.TTL)
	if err != nil {
		return false, fmt.Errorf("take the lease %q: %w", LeaseName, err)
	}
	if was := s.leading.Swap(held); was != held {
		s.o.Log.Info("schedules lease", "held", held, "holder", s.o.Holder)
	}
	return held, nil
}

// resign hands the lease back, if it is held, so that the next host need not wait for its end.
func (s *Service) resign() {
	if !s.leading.Swap(false) || s.o.Leaser == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	if err := s.o.Leaser.ReleaseLease(ctx, LeaseName, s.o.Holder); err != nil && !errors.Is(err, queue.ErrClosed) && s.gate.Open() {
		s.o.Log.Warn("schedules lease not handed back; another host waits for its end", "lease_ends_within", s.o.TTL, "error", err)
	}
}

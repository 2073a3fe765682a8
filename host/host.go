// Package host puts the parts of a job host together: it takes jobs from a store, runs them, and settles them.
//
//	          ┌────────── dispatch ──────────┐   blocks until there is work, reserves for the free slots
//	store ──► │  runjob (one per job)        │   handler version → runtime → settlement
//	          └──┬────────┬────────┬─────────┘
//	          lease     notes    settle          batched: extend, logs and progress, settle
//
//	maintain   what time makes due          catalog   handler versions        operations   long work on dead jobs
//	schedules  jobs at set times
//
// The parts are in child packages, each with one owner: the Host. It imports no engine and no runtime; they are given to New.
// Stop is a drain, and Kill its end; see stop.go.
package host

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/taskhost/taskhost/handlers"
	"github.com/taskhost/taskhost/host/catalog"
	"github.com/taskhost/taskhost/host/dispatch"
	"github.com/taskhost/taskhost/host/lease"
	"github.com/taskhost/taskhost/host/lifecycle"
	"github.com/taskhost/taskhost/host/maintain"
	"github.com/taskhost/taskhost/host/notes"
	"github.com/taskhost/taskhost/host/operations"
	"github.com/taskhost/taskhost/host/runjob"
	"github.com/taskhost/taskhost/host/schedules"
	"github.com/taskhost/taskhost/host/settle"
	"github.com/taskhost/taskhost/host/workers"
	"github.com/taskhost/taskhost/queue"
)

// Host is one host process's share of the work. Make one with New; the store and the runtimes stay their owner's, who closes
// them after Stop.
type Host struct {
	o        Options
	registry *handlers.Registry

	keeper     *lease.Keeper
	settle     *settle.Batcher
	notes      *notes.Flusher
	runner     *runjob.Runner
	dispatch   *dispatch.Dispatcher
	maintain   *maintain.Service // nil = not here
	catalog    *catalog.Catalog
	operations *operations.Service
	schedules  *schedules.Service
	workers    *workers.Registry

	opening lifecycle.Loop // starts to dispatch once the handlers are ready

	killed     context.Context // ends with Kill
	kill       context.CancelFunc
	hard       context.Context // ends killGrace after Kill
	hardCancel context.CancelFunc
	killOnce   sync.Once

	stopOnce sync.Once
	stopErr  error
}

// New checks the options and makes a host that is not started.
func New(o Options) (*Host, error) {
	o, err := o.complete()
	if err != nil {
		return nil, err
	}
	o.Log = o.Log.With("worker", o.Worker)
	h := &Host{o: o, registry: &handlers.Registry{}}
	h.killed, h.kill = context.WithCancel(context.Background())
	h.hard, h.hardCancel = context.WithCancel(context.Background())

	h.keeper = lease.New(lease.Options{Queue: o.Store, Lease: o.Lease, Log: part(o.Log, "lease"), Random: o.Random})
	h.settle = settle.New(settle.Options{Queue: o.Store, Log: part(o.Log, "settle"), Random: o.Random})
	var noteStore notes.Store
	if n, ok := o.Store.(queue.Notes); ok {
		noteStore = n
	}
	h.notes = notes.New(notes.Options{Store: noteStore, Log: part(o.Log, "notes"), Random: o.Random})
	runtimes := map[string]handlers.Runtime{}
	for _, rt := range o.Runtimes {
		runtimes[rt.Name()] = rt
	}
	h.catalog = catalog.New(catalog.Options{Records: o.Store, Registry: h.registry, Runtimes: o.Runtimes, Limits: o.Defaults.limits(),
		Log: part(o.Log, "catalog"), Random: o.Random, Now: o.Store.Now, Shared: o.Shared})
	h.runner = runjob.New(runjob.Options{Registry: h.registry, Runtimes: runtimes, Keeper: h.keeper, Settle: h.settle, Notes: h.notes, Quarantine: h.catalog,
		Limits: o.Defaults.limits(), Backoff: o.Defaults.Backoff, HandlerWait: o.HandlerWait, Log: part(o.Log, "run"), Random: o.Random})
	h.dispatch = dispatch.New(dispatch.Options{Queue: o.Store, Runner: h.runner, Worker: o.Worker, View: o.View, Slots: o.Concurrency,
		Lease: o.Lease, Log: part(o.Log, "dispatch"), Random: o.Random})

	leaser, _ := o.Store.(queue.Leaser)
	if o.Shared && leaser == nil {
		return nil, fmt.Errorf("host: the store %q grants no named leases, so several hosts cannot share it", o.Store.Capabilities().Name)
	}
	if !o.NoMaintenance {
		// In an embedded store the lease is always this process's: a holder of its own would keep a restarted host waiting.
		holder := o.Worker
		if !o.Shared {
			holder = "embedded"
		}
		lease := leaser
		if o.Store.Capabilities().SharedDue {
			lease = nil
		}
		h.maintain = maintain.New(maintain.Options{Queue: o.Store, Leaser: lease, Holder: holder, TTL: max(o.Lease*2/3, 10*time.Millisecond), Log: part(o.Log, "maintain"), Random: o.Random})
	}
	ops := operations.Options{Dead: o.Store, Jobs: o.Store, Bulk: o.Store, Records: o.Store, Holder: o.Worker, Now: o.Store.Now, Log: part(o.Log, "operations"), Random: o.Random, Entropy: o.Entropy}
	plan := schedules.Options{Queue: o.Store, Records: o.Store, Holder: o.Worker, Passive: o.NoMaintenance, Limits: o.Limits,
		Defaults: schedules.Defaults{MaxAttempts: o.Defaults.MaxAttempts, Backoff: o.Defaults.Backoff}, Log: part(o.Log, "schedules"), Random: o.Random}
	if o.Shared {
		ops.Leaser, plan.Leaser = leaser, leaser
	}
	h.operations = operations.New(ops)
	h.schedules = schedules.New(plan)
	slots := o.Concurrency
	if o.NoWorker {
		slots = 0
	}
	h.workers = workers.New(workers.Options{Records: o.Store, Now: o.Store.Now, Log: part(o.Log, "workers"), ID: o.Worker, Queues: o.View.Queues, Slots: slots,
		Version: o.Version, Busy: h.dispatch.Busy})
	return h, nil
}

func part(log *slog.Logger, name string) *slog.Logger { return log.With("part", name) }

// PrepareWait is how long the first job waits at most for the live handlers to be prepared after a start; jobs of handlers that
// take longer are deferred uncounted.
const PrepareWait = 10 * time.Second

// Start begins to work; ctx bounds the start only. When it fails, nothing is left running. A host is started once.
func (h *Host) Start(ctx context.Context) error {
	steps := []struct {
		name  string
		start func(context.Context) error
	}{
		{"settle", h.settle.Start}, {"notes", h.notes.Start}, {"lease", h.keeper.Start},
		{"handlers", h.catalog.Start}, {"operations", h.operations.Start}, {"schedules", h.schedules.Start},
		{"workers", h.workers.Start},
	}
	if h.maintain != nil {
		steps = append(steps, struct {
			name  string
			start func(context.Context) error
		}{"maintenance", h.maintain.Start})
	}
	for _, s := range steps {
		if err := s.start(ctx); err != nil {
			err = fmt.Errorf("start %s: %w", s.name, err)
			if !errors.Is(err, lifecycle.ErrStarted) { // a second Start must not end the first
				h.Kill()
				err = errors.Join(err, h.Stop(context.WithoutCancel(ctx)))
			}
			return err
		}
	}
	if h.o.NoWorker {
		return nil
	}
	return h.opening.Go(ctx, h.open)
}

// open starts to dispatch once the handlers are ready.
func (h *Host) open(ctx context.Context) {
	timer := time.NewTimer(PrepareWait)
	defer timer.Stop()
	select {
	case <-h.catalog.Loaded():
	case <-timer.C:
		h.o.Log.Warn("taking jobs before every live handler is prepared", "state", h.catalog.Ready())
	case <-ctx.Done():
		return
	}
	if err := h.dispatch.Start(ctx); err != nil && !errors.Is(err, lifecycle.ErrStopped) {
		h.o.Log.Error("dispatch did not start", "error", err)
	}
}

// Worker is the id under which this host holds leases.
func (h *Host) Worker() string { return h.o.Worker }

// Concurrency is how many jobs run at once at most.
func (h *Host) Concurrency() int { return h.o.Concurrency }

// Defaults are the defaults in force.
func (h *Host) Defaults() Defaults { return h.o.Defaults }

// Registry answers which version serves a type.
func (h *Host) Registry() *handlers.Registry { return h.registry }

// Catalog keeps the handler versions.
func (h *Host) Catalog() *catalog.Catalog { return h.catalog }

// Operations does long work on the dead-letter queue.
func (h *Host) Operations() *operations.Service { return h.operations }

// Schedules keeps schedules, and serves them while this host leads.
func (h *Host) Schedules() *schedules.Service { return h.schedules }

// Workers lists the hosts of the store.
func (h *Host) Workers() *workers.Registry { return h.workers }

// CheckLeases extends the leases of running jobs at once. Call it after a running job was cancelled: its handler is then
// stopped without waiting for the next third of a lease.
func (h *Host) CheckLeases() { h.keeper.Check() }

// Ready says whether the host does its work; nil is yes, an error says what is missing.
func (h *Host) Ready() error {
	var down []error
	if h.killed.Err() != nil {
		down = append(down, errors.New("host: stopping"))
	}
	s := h.Stats()
	if s.Dispatch.StoreDown || s.Settle.StoreDown || s.Maintain.StoreDown || s.Schedules.StoreDown || s.Lease.Unsure {
		down = append(down, errors.New("store: not answering"))
	}
	return errors.Join(append(down, h.catalog.Ready())...)
}

// Stats are the counters of all parts.
type Stats struct {
	Dispatch  dispatch.Stats
	Run       runjob.Stats
	Lease     lease.Stats
	Settle    settle.Stats
	Notes     notes.Stats
	Maintain  maintain.Stats
	Schedules schedules.Stats
}

// Stats returns the counters.
func (h *Host) Stats() Stats {
	s := Stats{Dispatch: h.dispatch.Stats(), Run: h.runner.Stats(), Lease: h.keeper.Stats(), Settle: h.settle.Stats(), Notes: h.notes.Stats(),
		Schedules: h.schedules.Stats()}
	if h.maintain != nil {
		s.Maintain = h.maintain.Stats()
	}
	return s
}

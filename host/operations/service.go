package operations

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/taskhost/taskhost/host/lifecycle"
	"github.com/taskhost/taskhost/queue"
)

// Jobs finds jobs; a queue.Jobs is one.
type Jobs interface {
	GetJob(ctx context.Context, tenant, id string) (*queue.Job, error)
	ListJobs(ctx context.Context, f queue.JobFilter) (queue.JobPage, error)
}

// Options of a Service.
type Options struct {
	Dead    queue.DeadLetters
	Jobs    Jobs
	Bulk    queue.Bulk
	Records queue.Records
	Leaser  queue.Leaser                                 // nil = the store has one host only
	Holder  string                                       // who holds the lease of an operation
	Now     func(ctx context.Context) (time.Time, error) // store time
	Log     *slog.Logger
	Random  func() float64 // uniform in [0, 1)
	Entropy io.Reader      // of ids; crypto/rand.Reader

	Chunk    int           // jobs per step; default 500
	Parallel int           // operations at once; default 4
	LeaseTTL time.Duration // of a running operation; default 15 s
}

// Defaults of Options.
const (
	ChunkDefault    = 500
	ParallelDefault = 4
	LeaseTTLDefault = 15 * time.Second
)

// KeptPerTenant is how many finished operations a tenant keeps; older ones are removed when a new one is created.
const KeptPerTenant = 200

// Service creates and runs operations. Make one with New.
type Service struct {
	o      Options
	ctx    context.Context
	cancel context.CancelCauseFunc
	slots  chan struct{}
	wg     sync.WaitGroup

	mu      sync.Mutex
	started bool
	stopped bool
	lastID  time.Time // of the id made last
}

// New returns a service that is not started. Create needs a started one.
func New(o Options) *Service {
	if o.Chunk <= 0 {
		o.Chunk = ChunkDefault
	}
	if o.Parallel <= 0 {
		o.Parallel = ParallelDefault
	}
	if o.LeaseTTL <= 0 {
		o.LeaseTTL = LeaseTTLDefault
	}
	s := &Service{o: o, slots: make(chan struct{}, o.Parallel)}
	s.ctx, s.cancel = context.WithCancelCause(context.Background())
	return s
}

// Start resumes the operations that a stopped host left running.
func (s *Service) Start(ctx context.Context) error {
	s.mu.Lock()
	switch {
	case s.stopped:
		s.mu.Unlock()
		return lifecycle.ErrStopped
	case s.started:
		s.mu.Unlock()
		return lifecycle.ErrStarted
	}
	s.started = true
	s.mu.Unlock()
	var running []*record
	err := s.scan(ctx, "", func(r *record) {
		if r.State == StateRunning {
			running = append(running, r)
		}
	})
	if err != nil {
		return fmt.Errorf("resume operations: %w", err)
	}
	for _, r := range running {
		s.o.Log.Info("resuming an operation", "operation", r.ID, "tenant", r.Tenant, "action", string(r.Action), "done", r.Done, "matched", r.Matched)
		_ = s.launch(r.Tenant, r.ID, true) // stopped meanwhile: the next start resumes it
	}
	return nil
}

// Stop ends the operations between two chunks; they are resumed at the next start.
func (s *Service) Stop() {
	s.mu.Lock()
	s.stopped = true
	s.mu.Unlock()
	s.cancel(lifecycle.ErrStopped)
	s.wg.Wait()
}

func (s *Service) launch(tenant, id string, resumed bool) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.stopped || !s.started {
		return lifecycle.ErrStopped
	}
	s.wg.Go(func() { s.run(tenant, id, resumed) })
	return nil
}

// Create begins an operation on the dead jobs of a tenant that match f, which is bound to the tenant whatever f.Tenant says.
// Jobs that die after the creation never match. toQueue, for a replay, is the queue the jobs go to; empty = their own. A
// non-nil expectedCount refuses with *CountChangedError unless exactly that many match. dryRun counts and does nothing: its
// answer has no id.
func (s *Service) Create(ctx context.Context, tenant string, action Action, f queue.DeadFilter, toQueue string, expectedCount *int, dryRun bool) (Operation, error) {
	if err := validate(tenant, action, toQueue); err != nil {
		return Operation{}, err
	}
	now, err := s.o.Now(ctx)
	if err != nil {
		return Operation{}, err
	}
	if f.DeadBefore.IsZero() || f.DeadBefore.After(now) {
		// Store time has the precision of a millisecond: what died in this one is known to the caller and belongs to it.
		f.DeadBefore = now.Add(time.Millisecond)
	}
	r := &record{After: f.After, Operation: Operation{Tenant: tenant, Action: action, State: StateRunning, ToQueue: toQueue, DryRun: dryRun, CreatedAt: now,
		Filter: Filter{IDs: slices.Clone(f.IDs), Queue: f.Queue, Type: f.Type, ErrorFingerprint: f.ErrorFingerprint, DeadBefore: f.DeadBefore}}}
	if r.Matched, err = s.o.Dead.CountDead(ctx, r.deadFilter()); err != nil {
		return Operation{}, fmt.Errorf("count dead jobs: %w", err)
	}
	return s.begin(ctx, r, expectedCount)
}

// begin stores an operation whose matches are counted and launches it, unless it is a dry run.
func (s *Service) begin(ctx context.Context, r *record, expectedCount *int) (Operation, error) {
	if expectedCount != nil && *expectedCount != r.Matched {
		return Operation{}, &CountChangedError{Expected: *expectedCount, Matched: r.Matched}
	}
	if r.DryRun {
		r.finish(StateSucceeded, r.CreatedAt)
		return r.Operation, nil
	}
	id, err := s.newID(r.CreatedAt)
	if err != nil {
		return Operation{}, err
	}
	r.ID = id
	if err := s.put(ctx, r); err != nil {
		return Operation{}, err
	}
	// The record is durable: should the service be stopping, the next start does it.
	if err := s.launch(r.Tenant, r.ID, false); err != nil {
		s.o.Log.Info("operation waits for the next start", "operation", r.ID, "tenant", r.Tenant)
	}
	s.prune(ctx, r.Tenant)
	return r.Operation, nil
}

func validate(tenant string, action Action, toQueue string) error {
	if err := queue.ValidName("tenant", tenant); err != nil {
		return err
	}
	switch action {
	case ActionReplay:
		if toQueue != "" {
			return queue.ValidName("to_queue", toQueue)
		}
	case ActionPurge:
		if toQueue != "" {
			return &queue.InvalidError{Field: "to_queue", Reason: fmt.Sprintf("belongs to a replay only, got %q for a purge", toQueue)}
		}
	default:
		return &queue.InvalidError{Field: "action", Reason: fmt.Sprintf("must be replay or purge, got %q", string(action))}
	}
	return nil
}

// Get returns an operation of the tenant; queue.ErrNotFound also for another tenant's.
func (s *Service) Get(ctx context.Context, tenant, id string) (Operation, error) {
	r, err := s.get(ctx, tenant, id)
	if err != nil {
		return Operation{}, err
	}
	return r.Operation, nil
}

// List returns the operations of a tenant, newest first.
func (s *Service) List(ctx context.Context, tenant string) ([]Operation, error) {
	var ops []Operation
	err := s.scan(ctx, tenant+"/", func(r *record) { ops = append(ops, r.Operation) })
	slices.Reverse(ops)
	return ops, err
}

// Cancel ends an operation after the chunk under way. Cancelling a cancelled one changes nothing; one that is over gives a
// *StateError.
func (s *Service) Cancel(ctx context.Context, tenant, id string) (Operation, error) {
	for {
		r, err := s.get(ctx, tenant, id)
		if err != nil {
			return Operation{}, err
		}
		switch r.State {
		case StateRunning:
		case StateCancelled:
			return r.Operation, nil
		case StateSucceeded, StateFailed:
			return Operation{}, &StateError{ID: id, State: r.State}
		}
		now, err := s.o.Now(ctx)
		if err != nil {
			return Operation{}, err
		}
		r.finish(StateCancelled, now)
		if err = s.put(ctx, r); err == nil {
			return r.Operation, nil
		}
		if !errors.Is(err, queue.ErrConflict) { // its progress was stored meanwhile: look again
			return Operation{}, err
		}
	}
}

func (s *Service) newID(now time.Time) (string, error) {
	var low [10]byte
	if _, err := io.ReadFull(s.o.Entropy, low[:]); err != nil {
		return "", fmt.Errorf("make an operation id: %w", err)
	}
	// Ids are the order of the list: two of one millisecond must not come in the order of their random bits.
	s.mu.Lock()
	defer s.mu.Unlock()
	if !now.After(s.lastID) {
		now = s.lastID.Add(time.Millisecond)
	}
	s.lastID = now
	return queue.FormatID("op", queue.NewUUID(now, low)), nil
}

func (s *Service) get(ctx context.Context, tenant, id string) (*record, error) {
	rec, err := s.o.Records.GetRecord(ctx, kind, key(tenant, id))
	if err != nil {
		return nil, fmt.Errorf("operation %s: %w", id, err)
	}
	return decode(rec)
}

// put writes a record if nobody else did since it was read; queue.ErrConflict otherwise.
func (s *Service) put(ctx context.Context, r *record) error {
	value, err := json.Marshal(r)
	if err != nil {
		return fmt.Errorf("encode operation %s: %w", r.ID, err)
	}
	revision, err := s.o.Records.PutRecord(ctx, kind, key(r.Tenant, r.ID), value, r.revision)
	if err != nil {
		return fmt.Errorf("store operation %s: %w", r.ID, err)
	}
	r.revision = revision
	return nil
}

func (s *Service) scan(ctx context.Context, prefix string, each func(*record)) error {
	const page = 500
	for after := ""; ; {
		records, err := s.o.Records.ListRecords(ctx, kind, prefix, after, page)
		if err != nil {
			return err
		}
		for _, rec := range records {
			after = rec.Key
			r, err := decode(rec)
			if err != nil { // it must not keep the others from being used
				s.o.Log.Error("stored record cannot be read", "kind", kind, "key", rec.Key, "error", err)
				continue
			}
			each(r)
		}
		if len(records) < page {
			return nil
		}
	}
}

// prune removes the oldest finished operations beyond KeptPerTenant.
func (s *Service) prune(ctx context.Context, tenant string) {
	var finished []string
	err := s.scan(ctx, tenant+"/", func(r *record) {
		if r.State != StateRunning {
			finished = append(finished, r.ID)
		}
	})
	for i := 0; err == nil && i < len(finished)-KeptPerTenant; i++ {
		err = s.o.Records.DeleteRecord(ctx, kind, key(tenant, finished[i]))
	}
	if err != nil && ctx.Err() == nil {
		s.o.Log.Warn("old operations not removed", "tenant", tenant, "error", err)
	}
}

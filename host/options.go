package host

import (
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"io"
	"log/slog"
	mathrand "math/rand/v2"
	"time"

	"github.com/taskhost/taskhost/handlers"
	"github.com/taskhost/taskhost/host/operations"
	"github.com/taskhost/taskhost/queue"
)

// Store is what a host needs of an engine. An engine that is also a queue.Notes keeps logs, progress and checkpoints; one that
// is also a queue.Leaser lets several hosts share it.
type Store interface {
	queue.Queue
	queue.Records
	queue.DeadLetters
	queue.Bulk
	operations.Jobs
}

// Options of a Host. Store, Runtimes and Log are required.
type Options struct {
	Store    Store
	Runtimes []handlers.Runtime // the first that is a handlers.Admitter takes uploads
	Log      *slog.Logger

	// Shared says that other hosts work on the same store: changes of theirs are followed, and the one that maintains is
	// chosen by a lease.
	Shared bool

	Version     string        // of the program, for the list of workers
	Worker      string        // who holds leases; default "w-" and 6 hex digits
	View        queue.View    // queues to serve; default all
	Concurrency int           // jobs at once; 0 = the slots of the runtimes together
	Lease       time.Duration // of a job; default 15 s, at least queue.LeaseMin
	Drain       time.Duration // how long running jobs may go on after Stop; 0 = DrainDefault, negative = not at all
	HandlerWait time.Duration // how long a job may wait for a handler of its type; default 5 m
	Defaults    Defaults      // zero fields: StandardDefaults
	Limits      queue.Limits  // of the jobs of schedules; zero = queue.DefaultLimits

	NoWorker      bool // run no jobs here
	NoMaintenance bool // leave maintenance and the serving of schedules to other hosts

	Random  func() float64 // uniform in [0, 1); default math/rand
	Entropy io.Reader      // of ids; default crypto/rand
}

// Defaults are what a job gets that asks for nothing else, and whose handler version does not either.
type Defaults struct {
	Timeout         time.Duration // of one attempt
	MaxAttempts     int
	Backoff         queue.Backoff
	MemoryBytes     int64
	ResultBytes     int
	LogBytes        int
	CheckpointBytes int
	Fuel            int64 // 0 = no limit
}

// Defaults of Options.
const (
	LeaseDefault       = 15 * time.Second
	DrainDefault       = 30 * time.Second
	HandlerWaitDefault = 5 * time.Minute
)

// StandardDefaults are the defaults in force unless configured: 1 minute, 5 attempts, backoff from 1 s to 1 h with full jitter,
// 128 MiB, and the sizes of queue.DefaultLimits.
func StandardDefaults() Defaults {
	l := queue.DefaultLimits()
	return Defaults{
		Timeout:     time.Minute,
		MaxAttempts: 5,
		Backoff:     queue.Backoff{Base: queue.BackoffBaseDefault, Max: queue.BackoffMaxDefault, Jitter: queue.JitterFull},
		MemoryBytes: 128 << 20,
		ResultBytes: l.ResultBytes, LogBytes: l.LogBytes, CheckpointBytes: l.CheckpointBytes,
	}
}

func (d Defaults) limits() handlers.Limits {
	return handlers.Limits{MemoryBytes: d.MemoryBytes, ResultBytes: d.ResultBytes, LogBytes: d.LogBytes, CheckpointBytes: d.CheckpointBytes,
		Timeout: d.Timeout, Fuel: d.Fuel}
}

// orStandard fills zero fields.
func (d Defaults) orStandard() Defaults {
	s := StandardDefaults()
	if d.Timeout <= 0 {
		d.Timeout = s.Timeout
	}
	if d.MaxAttempts <= 0 {
		d.MaxAttempts = s.MaxAttempts
	}
	if d.Backoff.Base <= 0 {
		d.Backoff.Base = s.Backoff.Base
	}
	if d.Backoff.Max <= 0 {
		d.Backoff.Max = s.Backoff.Max
	}
	if d.Backoff.Jitter == "" {
		d.Backoff.Jitter = s.Backoff.Jitter
	}
	if d.MemoryBytes <= 0 {
		d.MemoryBytes = s.MemoryBytes
	}
	if d.ResultBytes <= 0 {
		d.ResultBytes = s.ResultBytes
	}
	if d.LogBytes <= 0 {
		d.LogBytes = s.LogBytes
	}
	if d.CheckpointBytes <= 0 {
		d.CheckpointBytes = s.CheckpointBytes
	}
	return d
}

// complete checks the options and fills in defaults.
func (o Options) complete() (Options, error) {
	switch {
	case o.Store == nil:
		return o, fmt.Errorf("host: a store is required")
	case o.Log == nil:
		return o, fmt.Errorf("host: a log is required")
	case len(o.Runtimes) == 0 && !o.NoWorker:
		return o, fmt.Errorf("host: at least one runtime is required to run jobs")
	case o.Concurrency < 0:
		return o, fmt.Errorf("host: concurrency must be 0 (the slots of the runtimes) or more jobs, got %d", o.Concurrency)
	}
	if o.Random == nil {
		o.Random = mathrand.Float64
	}
	if o.Entropy == nil {
		o.Entropy = rand.Reader
	}
	if o.Lease == 0 {
		o.Lease = LeaseDefault
	}
	if err := queue.ValidLease(o.Lease); err != nil {
		return o, fmt.Errorf("host: %w", err)
	}
	if err := o.View.Validate(); err != nil {
		return o, fmt.Errorf("host: %w", err)
	}
	switch {
	case o.Drain == 0:
		o.Drain = DrainDefault
	case o.Drain < 0:
		o.Drain = 0
	}
	if o.HandlerWait <= 0 {
		o.HandlerWait = HandlerWaitDefault
	}
	seen := map[string]bool{}
	slots := 0
	for _, rt := range o.Runtimes {
		if seen[rt.Name()] {
			return o, fmt.Errorf("host: two runtimes have the name %q", rt.Name())
		}
		seen[rt.Name()] = true
		slots += rt.Slots()
	}
	if o.Concurrency == 0 {
		o.Concurrency = max(slots, 1)
	}
	if o.Worker == "" {
		var b [3]byte
		if _, err := io.ReadFull(o.Entropy, b[:]); err != nil {
			return o, fmt.Errorf("host: make a worker id: %w", err)
		}
		o.Worker = "w-" + hex.EncodeToString(b[:])
	}
	o.Defaults = o.Defaults.orStandard()
	return o, nil
}

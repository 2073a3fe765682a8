package queue

import (
	"context"
	"time"
)

// Queue is the core every store implements. All methods may be called at once from many goroutines. They return
// ErrClosed after Close, an error wrapping ErrUnavailable when the store could not answer, and the context's cause when
// it ended first; a call that failed so may or may not have taken effect (its outcomes are "unknown").
//
// What not every store can do is a separate interface: Jobs, Bulk, Explainer, Notes, Queues, DeadLetters, Leaser, Records,
// Configurable, Auditor.
type Queue interface {
	// Enqueue stores jobs. outcomes[i] belongs to specs[i]; they are independent of each other. A created outcome is
	// durable when Enqueue returns. An error means that no outcome is known.
	Enqueue(ctx context.Context, specs []JobSpec) (outcomes []EnqueueOutcome, err error)

	// Reserve takes up to p.Max jobs by the rule of FAIRNESS.md, applied job by job, each under a lease of p.Lease. It
	// never blocks for work: an empty result means that nothing was eligible, or that AsideMax jobs at the front had to step
	// aside for their concurrency keys; Wait tells which.
	Reserve(ctx context.Context, p ReserveParams) ([]*Job, error)

	// Wait blocks until a Reserve on view may find something (a hint: it may still find nothing). It returns nil then,
	// and the context's cause when that ends first. It does not poll.
	Wait(ctx context.Context, view View) error

	// Settle ends reservations. outcomes[i] belongs to settlements[i]; each is fenced by its own token.
	Settle(ctx context.Context, settlements []Settlement) (outcomes []SettleOutcome, err error)

	// Extend renews leases to now + lease (store time), for jobs held by refs. outcomes[i] belongs to refs[i].
	Extend(ctx context.Context, refs []Ref, lease time.Duration) (outcomes []ExtendOutcome, err error)

	// Maintain does what time makes due: promotes scheduled jobs, reaps ended leases, expires, retains; a bounded amount
	// per call. More = true asks to be called again at once.
	Maintain(ctx context.Context) (MaintainReport, error)

	// WaitDue blocks until Maintain has something to do, like Wait.
	WaitDue(ctx context.Context) error

	// Now returns store time, in which all of a job's times are given.
	Now(ctx context.Context) (time.Time, error)

	// Capabilities says what this store cannot promise.
	Capabilities() Capabilities

	// Close releases the store. Blocked calls return ErrClosed. Safe to call twice.
	Close() error
}

// Capabilities names what a store cannot promise. The conformance suite skips exactly those cases and prints them.
type Capabilities struct {
	Name        string       `json:"name"`                  // "sqlite", "memory", …
	Durability  string       `json:"durability"`            // one line for people: what an acknowledged enqueue survives
	Limitations []Limitation `json:"limitations,omitempty"` // empty = the whole contract

	// SharedDue says that several hosts can be in WaitDue at once: one of them is told when something is due, and another a second later
	// when it did not Maintain. Without it, hosts of a store need a named lease for that.
	SharedDue bool `json:"-"`
}

// Limitation is a promise of the contract that a store declares it does not keep.
type Limitation string

// Known limitations.
const (
	// LimitationGlobalPriority: priority holds inside one queue only, not across queues.
	LimitationGlobalPriority Limitation = "global_priority"
	// LimitationDurability: jobs do not survive the process.
	LimitationDurability Limitation = "durability"
	// LimitationListOrder: where a tenant has many ready jobs (the store says how many), they are listed behind all others, queue by
	// queue, and not strictly in the order of their creation.
	LimitationListOrder Limitation = "list_order"
)

// View is the set of queues a host subscribes to, for every tenant. No names means all queues.
type View struct {
	Queues []string
}

// ReserveParams are the arguments of Reserve.
type ReserveParams struct {
	Worker   string // who holds the lease; shown to operators
	View     View
	Max      int           // ≥ 1
	MaxBytes int           // stop before the payloads of the batch exceed it (one job is always given); 0 = no limit
	Lease    time.Duration // ≥ 10 ms
}

// Token is the unguessable fencing token of one reserved batch: an epoch and 128 random bits. A job's right is its
// token together with its id.
type Token string

// Ref names a reservation.
type Ref struct {
	ID    string
	Token Token
}

// EnqueueStatus is what became of one spec.
type EnqueueStatus string

// What became of one spec.
const (
	EnqueueCreated   EnqueueStatus = "created"
	EnqueueDuplicate EnqueueStatus = "duplicate" // ID is the job that was there
	EnqueueRejected  EnqueueStatus = "rejected"  // Err says why; nothing was stored
	EnqueueUnknown   EnqueueStatus = "unknown"   // the store did not answer; ask again with the same idempotency key
)

// EnqueueOutcome answers one spec. Err is set for rejected (*InvalidError, *UniqueHeldError, *IdempotencyMismatchError,
// *LimitError) and for unknown.
type EnqueueOutcome struct {
	Status EnqueueStatus
	ID     string
	Err    error
}

// Verb ends a reservation.
type Verb string

// The verbs of Settle. Attempts, crashes and where the job re-enters its queue:
//
//	verb     next state                                    counts
//	ack      succeeded                                     an attempt
//	nack     scheduled(retry) for Delay, then tail; dead   an attempt
//	         when attempts are spent
//	dead     dead                                          an attempt
//	defer    scheduled(defer) for Delay, then tail         nothing
//	yield    ready, tail                                   nothing
//	release  ready, front                                  nothing (an interruption)
//	crash    ready, front; dead when Crashes reaches       a crash
//	         MaxCrashes
//
// A nack with Delay 0 re-enters at the tail at once. When a cancel was requested, every verb but ack and dead ends in
// cancelled.
const (
	VerbAck     Verb = "ack"
	VerbNack    Verb = "nack"
	VerbDead    Verb = "dead"
	VerbDefer   Verb = "defer"
	VerbYield   Verb = "yield"
	VerbRelease Verb = "release"
	VerbCrash   Verb = "crash"
)

// Settlement ends one reservation.
type Settlement struct {
	Ref
	Verb   Verb
	Result []byte        // ack
	Error  *JobError     // nack, dead, crash
	Delay  time.Duration // nack, defer; ≥ 0

	// What the host measured; the store fills in run, attempt, outcome, worker and start.
	Duration        time.Duration
	Fuel            int64
	PeakMemoryBytes int64
	Handler         Handler
}

// SettleStatus is what became of one settlement.
type SettleStatus string

// What became of one settlement.
const (
	SettleOK        SettleStatus = "ok"
	SettleLeaseLost SettleStatus = "lease_lost" // the token is not current; nothing changed
	SettleUnknown   SettleStatus = "unknown"
	SettleRejected  SettleStatus = "rejected" // malformed; Err says how
)

// SettleOutcome answers one settlement. State is the job's state after it (SettleOK only).
type SettleOutcome struct {
	Status SettleStatus
	State  State
	Err    error
}

// ExtendStatus is what became of one lease.
type ExtendStatus string

// What became of one lease.
const (
	ExtendOK              ExtendStatus = "ok"
	ExtendLost            ExtendStatus = "lost"
	ExtendCancelRequested ExtendStatus = "cancel_requested" // extended, and the handler is to be stopped
)

// ExtendOutcome answers one ref.
type ExtendOutcome struct {
	Status ExtendStatus
	Until  time.Time // store time; zero when lost
}

// MaintainReport counts what one Maintain did.
type MaintainReport struct {
	Promoted int // scheduled → ready
	Reaped   int // leases that had ended
	Expired  int
	Retained int // finished jobs removed by retention, Evicted included
	Evicted  int // those of them that were not over their age, but over a count
	More     bool
}

package queue

import "time"

// State is where a job is in its life. The zero value is not a state.
type State string

// The states of a job; see the package documentation for the moves between them.
const (
	StateScheduled State = "scheduled" // not due yet; Job.Reason says why
	StateReady     State = "ready"     // may be reserved now, unless its queue is held back
	StateRunning   State = "running"   // reserved under a live lease
	StateSucceeded State = "succeeded"
	StateDead      State = "dead" // in the dead-letter queue
	StateCancelled State = "cancelled"
	StateExpired   State = "expired" // ExpiresAt passed before it started
)

// Terminal reports whether no move but replay (from StateDead) leaves the state.
func (s State) Terminal() bool {
	switch s {
	case StateSucceeded, StateDead, StateCancelled, StateExpired:
		return true
	case StateScheduled, StateReady, StateRunning:
		return false
	}
	return false
}

// States lists every state in the order of a job's life.
func States() []State {
	return []State{StateScheduled, StateReady, StateRunning, StateSucceeded, StateDead, StateCancelled, StateExpired}
}

// Reason says why a job is scheduled rather than ready.
type Reason string

// The reasons of StateScheduled.
const (
	ReasonNone  Reason = ""
	ReasonDelay Reason = "delay" // the producer asked for it
	ReasonRetry Reason = "retry" // backoff after a failed attempt
	ReasonDefer Reason = "defer" // the handler asked to be called later
)

// JobSpec is what a producer asks for. Zero values mean "the default".
type JobSpec struct {
	Tenant string // required; 1–128 of [A-Za-z0-9._-], first alphanumeric
	Queue  string // required; same alphabet
	Type   string // required; same alphabet

	// Payload is opaque and never re-encoded. PayloadJSON says that the producer sent it as JSON text, so that it may
	// be shown as such; it changes nothing else.
	Payload     []byte
	PayloadJSON bool

	Headers map[string]string // passed to the handler
	Labels  map[string]string // for searching

	Priority *int // [PriorityMin, PriorityMax]; nil = the queue's default, itself 0 unless set

	Delay       time.Duration // ≥ 0; 0 = ready at once
	ExpiresIn   time.Duration // ≥ 0; 0 = never. From enqueue in store time; a job that has not started by then expires
	Timeout     time.Duration // of one attempt; 0 = the handler's, else the host's default
	MaxAttempts int           // 1–1000; 0 = the host's default, which the host fills in before Enqueue
	Backoff     Backoff       // zero = the host's default

	// IdempotencyKey makes a repeated enqueue return the first job: per tenant, kept Limits.IdempotencyTTL. 1–256 bytes.
	IdempotencyKey string

	Unique Unique

	// ConcurrencyKey bounds how many jobs of this queue with the same key run at once: QueueSettings.MaxPerKey, 1 unless
	// set. Empty = none; at most 256 bytes.
	ConcurrencyKey string

	RetriedFrom string // the id of the job this one is an edited copy of; kept in Job.RetriedFrom, else without effect
}

// Unique holds a key per tenant while a job is unfinished, or for a time, so that a second job with it is refused or merged.
type Unique struct {
	Key        string         // empty = not unique; 1–256 bytes
	Until      UniqueUntil    // default UniqueUntilFinished
	Window     time.Duration  // with UniqueUntilWindow: 1 ms to DelayMax, rounded up to the millisecond; else 0
	OnConflict UniqueConflict // default UniqueReject
}

// UniqueUntil says when a unique key becomes free.
type UniqueUntil string

// When a unique key becomes free. Finished means any terminal state, dead included: a job in the dead-letter queue never
// blocks new work. Replaying it takes the key again, and is refused while another job holds it. A window is about creation: it
// holds the key from then on, whatever becomes of the job, unless the job is deleted (DeleteJob); replay neither asks for it
// nor takes it.
const (
	UniqueUntilFinished UniqueUntil = "finished"
	UniqueUntilStarted  UniqueUntil = "started" // at the first reservation
	UniqueUntilWindow   UniqueUntil = "window"  // Unique.Window after the creation
)

// UniqueConflict says what an enqueue does when the key is held.
type UniqueConflict string

// What an enqueue does when its unique key is held.
const (
	UniqueReject   UniqueConflict = "reject"   // outcome rejected with *UniqueHeldError
	UniqueExisting UniqueConflict = "existing" // outcome duplicate with the holder's id
)

// Job is one unit of work as the store knows it. Times are store time, UTC, millisecond precision; a zero time means
// "not yet". A Job handed out is the caller's own: the store keeps no reference to it but the byte slices, which are
// never changed by either side.
type Job struct {
	ID          string // "job_" and 26 characters, made by the store
	Tenant      string
	Queue       string
	Type        string
	State       State
	Reason      Reason
	Priority    int
	Payload     []byte // nil in lists; see PayloadBytes
	PayloadJSON bool
	Headers     map[string]string
	Labels      map[string]string
	Timeout     time.Duration
	MaxAttempts int
	Backoff     Backoff

	IdempotencyKey string
	Unique         Unique
	ConcurrencyKey string

	Run           int // 1, and one more after every replay
	Attempt       int // attempts counted in this run; while running, the number of the one that runs
	Crashes       int // times its host or runner died under it, in this run
	Interruptions int // times it was given back without fault of its own: store outage, release

	CreatedAt  time.Time
	NextRunAt  time.Time // while scheduled: when it becomes ready
	StartedAt  time.Time // last reservation
	FinishedAt time.Time // terminal states
	ExpiresAt  time.Time
	ErasedAt   time.Time // when payload and result were erased (ChangeErase); such a job cannot run again

	CancelRequested bool // while running: a cancel was acknowledged and the handler is being stopped
	PayloadBytes    int
	Result          []byte    // StateSucceeded; nil in lists
	ResultBytes     int       //
	LastError       *JobError // of the last failed attempt, or why it is dead
	Attempts        []Attempt // oldest first, at most AttemptsKept of the latest; nil in lists
	Progress        *Progress // last report of the running attempt, or of the last one
	RetriedFrom     string    // the job this one is an edited copy of
	Worker          string    // while running: who holds the lease
	Handler         Handler   // the handler version of the last attempt
	LeaseUntil      time.Time // while running
	Checkpoint      []byte    // what a handler saved for its next attempt; nil in lists
	Token           Token     // only in what Reserve returns
}

// Handler names the handler version that ran an attempt.
type Handler struct {
	Runtime string `json:"runtime,omitempty"`
	Version int    `json:"version,omitempty"`
}

// JobError is a failure as it is stored and shown.
type JobError struct {
	Kind      string `json:"kind"` // e.g. "retryable", "permanent", "trap", "deadline", "crash", "no_handler"
	Message   string `json:"message"`
	Retryable bool   `json:"retryable"`
}

// AttemptOutcome is how one attempt ended.
type AttemptOutcome string

// How an attempt ended.
const (
	AttemptSucceeded   AttemptOutcome = "succeeded"
	AttemptFailed      AttemptOutcome = "failed"
	AttemptDeferred    AttemptOutcome = "deferred"
	AttemptCrashed     AttemptOutcome = "crashed"     // its host or runner died
	AttemptInterrupted AttemptOutcome = "interrupted" // given back without fault of its own
	AttemptCancelled   AttemptOutcome = "cancelled"
)

// AttemptsKept is how many attempt records a job keeps; older ones are dropped, counters stay exact.
const AttemptsKept = 100

// Attempt records one attempt. It is written by the settle that ends it (or by the reaper).
type Attempt struct {
	Run             int            `json:"run"`
	Attempt         int            `json:"attempt"`
	Outcome         AttemptOutcome `json:"outcome"`
	Error           *JobError      `json:"error,omitempty"`
	StartedAt       time.Time      `json:"started_at"`
	DurationMS      int64          `json:"duration_ms"`
	Fuel            int64          `json:"fuel,omitempty"`
	PeakMemoryBytes int64          `json:"peak_memory_bytes,omitempty"`
	Worker          string         `json:"worker,omitempty"`
	Handler         Handler        `json:"handler,omitzero"`
}

// Progress is what a handler last reported.
type Progress struct {
	Done    int64     `json:"done"`
	Total   int64     `json:"total"` // 0 = unknown
	Message string    `json:"message,omitempty"`
	At      time.Time `json:"at"`
}

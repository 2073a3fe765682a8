package queue

import (
	"context"
	"time"
)

// Jobs looks at and steers single jobs. Every method is bound to a tenant and answers ErrNotFound for another tenant's
// job exactly as for one that does not exist.
type Jobs interface {
	GetJob(ctx context.Context, tenant, id string) (*Job, error)
	// ListJobs returns matching jobs in the order of their creation, newest first unless f.OldestFirst, without payload, result
	// and attempts. See JobPage for what a page promises.
	ListJobs(ctx context.Context, f JobFilter) (JobPage, error)
	// CancelJob ends a waiting job at once; a running one is marked and its holder learns it from Extend. The returned
	// job tells which. ErrConflict (*StateError) when the job is terminal already, unless it is cancelled.
	CancelJob(ctx context.Context, tenant, id string) (*Job, error)
	// DeleteJob removes every trace of a terminal or waiting job; *StateError while it runs.
	DeleteJob(ctx context.Context, tenant, id string) error
	// WatchJob signals after every change of the job (state, attempt, progress, log), until Stop. It signals once at
	// the start, and coalesces.
	WatchJob(ctx context.Context, tenant, id string) (Watch, error)
}

// Watch delivers change signals. C is closed when the store closes or the job is deleted.
type Watch struct {
	C    <-chan struct{}
	Stop func() // safe to call twice
}

// Notes stores what a running handler says about itself; every call is fenced by the reservation and answers
// ErrLeaseLost when that is not current.
type Notes interface {
	SetProgress(ctx context.Context, ref Ref, p Progress) error
	// AppendLogs adds lines to the log of the current attempt. Beyond Limits.LogBytes of an attempt further lines are
	// dropped and the log is marked truncated.
	AppendLogs(ctx context.Context, ref Ref, lines []LogLine) error
	PutCheckpoint(ctx context.Context, ref Ref, data []byte) error
	// JobLogs returns the lines with Seq > after, oldest first, at most limit (0 = 1000).
	JobLogs(ctx context.Context, tenant, id string, after int64, limit int) (LogPage, error)
}

// LogLine is one line of a job's log. Seq is given by the store and rises within a job. Message has its control
// characters escaped at write.
type LogLine struct {
	Seq     int64     `json:"seq"`
	Run     int       `json:"run"`
	Attempt int       `json:"attempt"`
	At      time.Time `json:"at"`
	Level   string    `json:"level"` // debug, info, warn, error
	Message string    `json:"message"`
}

// LogPage is a part of a log. Truncated says that an attempt's cap was reached.
type LogPage struct {
	Lines     []LogLine
	Truncated bool
}

// Queues shows and steers queues.
type Queues interface {
	// ListQueues returns the queues of a tenant by name: those configured, those with an override, those with jobs.
	ListQueues(ctx context.Context, tenant string) ([]QueueInfo, error)
	// GetQueue answers ErrNotFound for a queue that is neither configured nor overridden nor ever used.
	GetQueue(ctx context.Context, tenant, name string) (QueueInfo, error)
	// SetQueue changes the override of one queue, durably; it applies to the backlog at once.
	SetQueue(ctx context.Context, tenant, name string, c QueueChange) (QueueInfo, error)
}

// QueueSettings are the settings of a queue. Nil means "not set here".
type QueueSettings struct {
	Weight   *float64 `json:"weight,omitempty"`   // [WeightMin, WeightMax]; default 1
	Priority *int     `json:"priority,omitempty"` // default priority of its jobs; default 0
	Paused   *bool    `json:"paused,omitempty"`   // jobs are accepted, none is reserved

	// MaxRunning caps how many jobs of this queue of one tenant run at once, on all hosts together: 1–RunningCapMax; default
	// no cap.
	MaxRunning *int `json:"max_running,omitempty"`
	// MaxPerKey caps how many jobs of one concurrency key of this queue run at once: 1–RunningCapMax; default 1.
	MaxPerKey *int `json:"max_per_key,omitempty"`
	// Rate bounds how fast jobs of this queue of one tenant are reserved; default no bound.
	Rate *Rate `json:"rate,omitempty"`
}

// QueueChange changes an override: each field is either left alone, set, or (Clear…) returned to the configured value.
type QueueChange struct {
	Set             QueueSettings
	ClearWeight     bool
	ClearPriority   bool
	ClearPaused     bool
	ClearMaxRunning bool
	ClearMaxPerKey  bool
	ClearRate       bool
}

// QueueInfo describes a queue as it is in force.
type QueueInfo struct {
	Tenant     string
	Name       string
	Weight     float64
	Priority   int
	Paused     bool
	MaxRunning int           // 0 = no cap
	MaxPerKey  int           // ≥ 1
	Rate       Rate          // zero = no bound
	Override   QueueSettings // what SetQueue set
	Waiting    WaitCode      // what holds the whole queue back now, WaitPaused to WaitRate; "" = nothing
	Scheduled  int64
	Ready      int64
	Running    int64
	Dead       int64
	Served     int64         // reservations ever (R1's served counter)
	OldestAge  time.Duration // of the oldest ready job; 0 = none
}

// Configurable takes the scheduling part of the configuration. It may be called again at any time; the new snapshot
// applies to the backlog at once and replaces the old one whole.
type Configurable interface {
	Configure(ctx context.Context, s Scheduling) error
}

// Scheduling is the configured half of how queues are served; overrides (SetQueue) win over it.
type Scheduling struct {
	Queues             map[string]QueueSettings  // by queue name, a template for every tenant
	Tenants            map[string]TenantSettings // by tenant
	MaxConsecutiveHigh int                       // 0 = strict priority; see FAIRNESS.md
	MaxCrashes         int                       // 0 = MaxCrashesDefault
	Retention          Retention

	// ChargeByTime makes shares shares of time: a job is charged the time it runs, and one that runs this long costs as much as a job
	// costs otherwise. Whole milliseconds up to ChargeByTimeMax; 0 = every job costs the same. See FAIRNESS.md, "Charging time".
	ChargeByTime time.Duration
}

// TenantSettings are the settings of a tenant. Nil means the default.
type TenantSettings struct {
	Weight     *float64 `json:"weight,omitempty"`      // [WeightMin, WeightMax]; default 1
	MaxRunning *int     `json:"max_running,omitempty"` // jobs of all its queues that run at once: 1–RunningCapMax; default no cap
}

// ChargeByTimeMax is the largest Scheduling.ChargeByTime.
const ChargeByTimeMax = time.Hour

// MaxCrashesDefault is how many crashes a job survives in one run; the last of them makes it dead.
const MaxCrashesDefault = 3

// Retention says how long, and how many, finished jobs are kept. A negative age keeps none, zero means the default.
type Retention struct {
	Succeeded time.Duration // also cancelled and expired; default 24 h; negative: not kept at all
	Dead      time.Duration // default 30 days; negative: kept for ever
	Logs      LogRetention  // default LogsOfFailed

	// At most so many finished jobs are kept in the whole store: Count of those that are not dead, DeadCount of dead ones. 0 = no
	// bound, which for dead jobs is the default on purpose: they wait for somebody. Maintain removes the surplus, those that
	// finished first going first, and counts it as MaintainReport.Evicted.
	Count     int
	DeadCount int
}

// LogRetention says whose logs are kept after the job finished.
type LogRetention string

// Whose logs are kept. LogsOfFailed keeps the logs of jobs that had at least one failed attempt.
const (
	LogsOfFailed LogRetention = "failed"
	LogsOfAll    LogRetention = "all"
	LogsOfNone   LogRetention = "none"
)

// Defaults of Retention.
const (
	RetentionSucceededDefault = 24 * time.Hour
	RetentionDeadDefault      = 30 * 24 * time.Hour
)

// DeadLetters works on dead jobs.
type DeadLetters interface {
	// CountDead counts matching dead jobs.
	CountDead(ctx context.Context, f DeadFilter) (int, error)
	// ReplayDead starts a new run of up to limit matching jobs, oldest first, at the tail of their queue, or of toQueue
	// when that is not empty. Jobs whose unique key is held, and erased ones, are skipped.
	ReplayDead(ctx context.Context, f DeadFilter, toQueue string, limit int) (DeadChunk, error)
	// PurgeDead removes up to limit matching jobs.
	PurgeDead(ctx context.Context, f DeadFilter, limit int) (DeadChunk, error)
}

// DeadFilter selects dead jobs of one tenant. Zero fields do not filter.
type DeadFilter struct {
	Tenant           string    `json:"tenant"`
	IDs              []string  `json:"ids,omitempty"`
	Queue            string    `json:"queue,omitempty"`
	Type             string    `json:"type,omitempty"`
	ErrorFingerprint string    `json:"error_fingerprint,omitempty"` // ErrorFingerprint of the last error
	DeadBefore       time.Time `json:"dead_before,omitzero"`        // finished before
	After            string    `json:"after,omitempty"`             // continue behind DeadChunk.Last
}

// DeadChunk is what one bounded step did. Last continues the next one; Done says that nothing is left.
type DeadChunk struct {
	Changed int
	Skipped int
	Last    string
	Done    bool
}

// Leaser grants named leases: who leads maintenance, who fires a schedule.
type Leaser interface {
	// AcquireLease takes or renews the lease for holder; false when another holds it.
	AcquireLease(ctx context.Context, name, holder string, ttl time.Duration) (bool, error)
	ReleaseLease(ctx context.Context, name, holder string) error
}

// Records is durable storage for what is not a job: handler versions, modules, operations. Values are opaque.
type Records interface {
	GetRecord(ctx context.Context, kind, key string) (Record, error) // ErrNotFound
	// PutRecord writes value if the stored revision is ifRevision (0 = must not exist, AnyRevision = whatever), else
	// ErrConflict. It returns the new revision, which is larger than any before it.
	PutRecord(ctx context.Context, kind, key string, value []byte, ifRevision int64) (int64, error)
	DeleteRecord(ctx context.Context, kind, key string) error
	// ListRecords returns up to limit records (0 = 1000) of a kind whose key starts with prefix and is greater than
	// after, by key.
	ListRecords(ctx context.Context, kind, prefix, after string, limit int) ([]Record, error)
}

// RecordWatcher tells of changes of records, so that hosts which share a store need not ask for them every few seconds.
type RecordWatcher interface {
	// WatchRecords signals on C once at first, and after anybody changed records of a kind. It returns when no change can be missed
	// any more, or with the context's cause. A signal is lost with a connection that is broken without anybody's knowing: look every minute
	// or so all the same. C is closed when the store is.
	WatchRecords(ctx context.Context, kind string) (Watch, error)
}

// AnyRevision as the ifRevision of PutRecord writes whatever is stored.
const AnyRevision = -1

// Record is one stored value. Revision rises with every write of the store.
type Record struct {
	Key      string
	Value    []byte
	Revision int64
}

// Auditor checks the books: every job in exactly one place, no index without a body, no body without an index.
type Auditor interface {
	Audit(ctx context.Context) (AuditReport, error)
}

// AuditReport counts jobs by state and lists what is wrong; Faults is empty in a healthy store.
type AuditReport struct {
	Counts   map[State]int64
	Enqueued int64 // ever created
	Removed  int64 // deleted, purged or retained away
	Faults   []string
}

package schedules

import (
	"fmt"
	"maps"
	"time"

	"github.com/taskhost/taskhost/queue"
)

// Bounds of a schedule.
const (
	PayloadMax   = 64 << 10 // bytes of a payload: every host keeps those of all schedules in memory
	PerTenantMax = 1000     // schedules of a tenant
)

// CatchUp says what becomes of due times that fell into a downtime; see the package documentation.
type CatchUp string

// What becomes of missed due times.
const (
	CatchUpNone CatchUp = "none" // the default: go on with the next one
	CatchUpOne  CatchUp = "one"  // the latest of them
	CatchUpAll  CatchUp = "all"  // all of them, oldest first; of more than CatchUpMax the newest
)

// Definition is what is enqueued, and when. Zero values of the job mean the default, as in queue.JobSpec.
type Definition struct {
	Tenant  string  `json:"tenant"`
	Name    string  `json:"name"` // unique in the tenant; the alphabet of a queue's
	Cron    string  `json:"cron"` // see Spec
	TZ      string  `json:"tz,omitempty"`
	CatchUp CatchUp `json:"catch_up,omitempty"`
	Paused  bool    `json:"paused,omitempty"`
	Job     Job     `json:"job"`
}

// Job is the job of a schedule. It gets the label "schedule" with the schedule's name unless it has one of its own, and the
// headers HeaderSchedule and HeaderDueAt.
type Job struct {
	Type        string            `json:"type"`
	Queue       string            `json:"queue,omitempty"` // "" = "default"
	Payload     []byte            `json:"payload,omitempty"`
	PayloadJSON bool              `json:"payload_json,omitempty"`
	Priority    *int              `json:"priority,omitempty"`
	ExpiresIn   time.Duration     `json:"expires_in_ns,omitempty"` // from its enqueue
	Timeout     time.Duration     `json:"timeout_ns,omitempty"`
	MaxAttempts int               `json:"max_attempts,omitempty"`
	Backoff     queue.Backoff     `json:"backoff,omitzero"`
	Labels      map[string]string `json:"labels,omitempty"`
	Headers     map[string]string `json:"headers,omitempty"`
	Unique      queue.Unique      `json:"unique,omitzero"`

	ConcurrencyKey string `json:"concurrency_key,omitempty"`
}

// What every job of a schedule carries.
const (
	LabelSchedule  = "schedule"
	HeaderSchedule = "taskhost-schedule" // name of the schedule
	HeaderDueAt    = "taskhost-due-at"   // due time in RFC 3339, UTC; of a run by hand the time of the request
)

// DefaultQueue is where the jobs of a schedule go that names no queue.
const DefaultQueue = "default"

// spec is the job for one due time.
func (d *Definition) spec(due time.Time, defaults Defaults) queue.JobSpec {
	j := &d.Job
	s := queue.JobSpec{
		Tenant: d.Tenant, Queue: j.Queue, Type: j.Type, Payload: j.Payload, PayloadJSON: j.PayloadJSON, Priority: j.Priority,
		ExpiresIn: j.ExpiresIn, Timeout: j.Timeout, MaxAttempts: j.MaxAttempts, Backoff: j.Backoff, Unique: j.Unique,
		ConcurrencyKey: j.ConcurrencyKey,
		Labels:         map[string]string{LabelSchedule: d.Name}, Headers: map[string]string{},
	}
	maps.Copy(s.Labels, j.Labels)
	maps.Copy(s.Headers, j.Headers)
	s.Headers[HeaderSchedule], s.Headers[HeaderDueAt] = d.Name, due.UTC().Format(time.RFC3339)
	if s.Queue == "" {
		s.Queue = DefaultQueue
	}
	if s.MaxAttempts == 0 {
		s.MaxAttempts = defaults.MaxAttempts
	}
	if s.Backoff == (queue.Backoff{}) {
		s.Backoff = defaults.Backoff
	}
	return s
}

// idempotencyKey names the job of one due time. Keys are per tenant, so that it need not say which.
func idempotencyKey(name string, due time.Time) string {
	return fmt.Sprintf("schedule/%s/%d", name, due.Unix())
}

// validate checks the definition as a whole.
func (d *Definition) validate(limits queue.Limits) error {
	if err := queue.ValidName("tenant", d.Tenant); err != nil {
		return err
	}
	if err := queue.ValidName("name", d.Name); err != nil {
		return err
	}
	if _, err := Parse(d.Cron, d.TZ); err != nil {
		return err
	}
	switch d.CatchUp {
	case "", CatchUpNone, CatchUpOne, CatchUpAll:
	default:
		return &queue.InvalidError{Field: "catch_up", Reason: fmt.Sprintf("must be none, one or all, got %.40q", string(d.CatchUp))}
	}
	limits.PayloadBytes = min(limits.PayloadBytes, PayloadMax)
	s := d.spec(time.Unix(0, 0), Defaults{MaxAttempts: 1})
	return s.Validate(limits)
}

// Origin says who owns a schedule.
type Origin string

// Who owns a schedule.
const (
	OriginConfig Origin = "config" // the configuration; only pause and resume can be asked for elsewhere
	OriginAPI    Origin = "api"
)

// State is what became of a schedule so far. Times are store time.
type State struct {
	LastDue     time.Time `json:"last_due,omitzero"` // the latest due time for which a job was enqueued or refused
	LastJob     string    `json:"last_job,omitempty"`
	LastAt      time.Time `json:"last_at,omitzero"` // when it was enqueued
	Enqueued    int64     `json:"enqueued,omitempty"`
	Refused     int64     `json:"refused,omitempty"` // due times whose job the store refused
	Skipped     int64     `json:"skipped,omitempty"` // due times that were missed and not caught up; of one downtime at most SkippedCountMax are counted
	LastError   string    `json:"last_error,omitempty"`
	LastErrorAt time.Time `json:"last_error_at,omitzero"`
}

// Info is a schedule as it is shown.
type Info struct {
	Definition
	State
	Origin    Origin
	CreatedAt time.Time
	UpdatedAt time.Time
	Next      []time.Time // the next due times, at most NextShown; none while it is paused
}

// NextShown is how many due times Info.Next has.
const NextShown = 5

// ManagedError refuses to change a schedule that the configuration owns.
type ManagedError struct{ Name string }

func (e *ManagedError) Error() string {
	return fmt.Sprintf("schedule %q is managed by the configuration; it can be paused and resumed here, and changed there", e.Name)
}

// Is makes errors.Is(err, queue.ErrConflict) true.
func (e *ManagedError) Is(target error) bool { return target == queue.ErrConflict }

// ExistsError refuses to create what is there.
type ExistsError struct{ Name string }

func (e *ExistsError) Error() string { return fmt.Sprintf("schedule %q exists already", e.Name) }

// Is makes errors.Is(err, queue.ErrConflict) true.
func (e *ExistsError) Is(target error) bool { return target == queue.ErrConflict }

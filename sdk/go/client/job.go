package client

import (
	"encoding/json"
	"time"
)

// State is where a job is in its life.
type State string

// The states of a job.
const (
	StateScheduled State = "scheduled"
	StateReady     State = "ready"
	StateRunning   State = "running"
	StateSucceeded State = "succeeded"
	StateDead      State = "dead" // in the dead-letter queue
	StateCancelled State = "cancelled"
	StateExpired   State = "expired"
)

// Terminal reports whether the job is finished.
func (s State) Terminal() bool {
	switch s {
	case StateSucceeded, StateDead, StateCancelled, StateExpired:
		return true
	}
	return false
}

// Job is a job as the server shows it. What is not known (yet) is nil, zero or empty.
type Job struct {
	ID              string            `json:"id"`
	Tenant          string            `json:"tenant"`
	Type            string            `json:"type"`
	Queue           string            `json:"queue"`
	State           State             `json:"state"`
	Reason          string            `json:"reason"` // why it is scheduled: delay, retry or defer
	Run             int               `json:"run"`
	Attempt         int               `json:"attempt"`
	MaxAttempts     int               `json:"max_attempts"`
	Crashes         int               `json:"crashes"`
	Interruptions   int               `json:"interruptions"`
	Priority        int               `json:"priority"`
	Payload         json.RawMessage   `json:"payload"` // when it was sent as JSON; white space may differ, see Client.Payload
	PayloadBase64   []byte            `json:"payload_base64"`
	PayloadBytes    int               `json:"payload_bytes"`
	Result          json.RawMessage   `json:"result"` // when it is JSON; see Client.Result
	ResultBase64    []byte            `json:"result_base64"`
	ResultBytes     int               `json:"result_bytes"`
	LastError       *JobError         `json:"last_error"`
	CreatedAt       time.Time         `json:"created_at"`
	StartedAt       *time.Time        `json:"started_at"`
	NextRunAt       *time.Time        `json:"next_run_at"`
	FinishedAt      *time.Time        `json:"finished_at"`
	ExpiresAt       *time.Time        `json:"expires_at"`
	ErasedAt        *time.Time        `json:"erased_at"` // when payload and result were erased
	TimeoutMS       *int64            `json:"timeout_ms"`
	Handler         *Handler          `json:"handler"`
	Worker          string            `json:"worker"`
	Progress        *Progress         `json:"progress"`
	CancelRequested bool              `json:"cancel_requested"`
	RetriedFrom     string            `json:"retried_from"`
	IdempotencyKey  string            `json:"idempotency_key"`
	ConcurrencyKey  string            `json:"concurrency_key"`
	Labels          map[string]string `json:"labels"`
	Headers         map[string]string `json:"headers"`
	WaitingOn       []WaitingOn       `json:"waiting_on"`
	Attempts        []Attempt         `json:"attempts"`
}

// Err is nil for a succeeded job and one that is not finished, else a *FailedError.
func (j *Job) Err() error {
	if !j.State.Terminal() || j.State == StateSucceeded {
		return nil
	}
	return &FailedError{ID: j.ID, State: j.State, LastError: j.LastError}
}

// JobError is a failure.
type JobError struct {
	Kind        string `json:"kind"`
	Message     string `json:"message"`
	Retryable   bool   `json:"retryable"`
	Fingerprint string `json:"fingerprint"`
}

// Handler names the handler version that ran an attempt.
type Handler struct {
	Runtime string `json:"runtime"`
	Version int    `json:"version"`
}

// Progress is what a handler last reported; Total 0 = not known.
type Progress struct {
	Done    int64     `json:"done"`
	Total   int64     `json:"total"`
	Message string    `json:"message"`
	At      time.Time `json:"at"`
}

// Attempt is one recorded attempt.
type Attempt struct {
	Run             int       `json:"run"`
	Attempt         int       `json:"attempt"`
	Outcome         string    `json:"outcome"`
	Error           *JobError `json:"error"`
	StartedAt       time.Time `json:"started_at"`
	DurationMS      int64     `json:"duration_ms"`
	Fuel            int64     `json:"fuel"`
	PeakMemoryBytes int64     `json:"peak_memory_bytes"`
	Worker          string    `json:"worker"`
	Handler         *Handler  `json:"handler"`
}

// WaitingOn is one thing a job waits for.
type WaitingOn struct {
	Code    string     `json:"code"`
	Until   *time.Time `json:"until"`
	Limit   int        `json:"limit"`   // of a cap: how many may run at once …
	Running int        `json:"running"` // … and how many do
	AtMost  int64      `json:"at_most"`
}

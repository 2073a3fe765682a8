package apiclient

import (
	"encoding/json"
	"time"
)

// Job is what the commands read of a job. Times that have not come are nil.
type Job struct {
	ID            string          `json:"id"`
	Type          string          `json:"type"`
	Queue         string          `json:"queue"`
	State         string          `json:"state"`
	Reason        string          `json:"reason"`
	Run           int             `json:"run"`
	Attempt       int             `json:"attempt"`
	MaxAttempts   int             `json:"max_attempts"`
	Crashes       int             `json:"crashes"`
	Interruptions int             `json:"interruptions"`
	Priority      int             `json:"priority"`
	PayloadBytes  int64           `json:"payload_bytes"`
	Result        json.RawMessage `json:"result"`
	ResultBytes   int64           `json:"result_bytes"`
	LastError     *JobError       `json:"last_error"`
	CreatedAt     *time.Time      `json:"created_at"`
	StartedAt     *time.Time      `json:"started_at"`
	NextRunAt     *time.Time      `json:"next_run_at"`
	FinishedAt    *time.Time      `json:"finished_at"`
	Cancel        bool            `json:"cancel_requested"`
	Handler       *HandlerRef     `json:"handler"`
	Worker        string          `json:"worker"`
	Progress      *Progress       `json:"progress"`
	WaitingOn     []WaitingOn     `json:"waiting_on"`
	Attempts      []Attempt       `json:"attempts"`
	Warnings      []string        `json:"warnings"`
}

// Terminal reports whether the job is over.
func (j *Job) Terminal() bool {
	switch j.State {
	case "succeeded", "dead", "cancelled", "expired":
		return true
	}
	return false
}

// HandlerRef names the version that ran a job.
type HandlerRef struct {
	Runtime string `json:"runtime"`
	Version int    `json:"version"`
}

// JobError is why an attempt failed.
type JobError struct {
	Kind        string `json:"kind"`
	Message     string `json:"message"`
	Retryable   bool   `json:"retryable"`
	Fingerprint string `json:"fingerprint"`
}

// Attempt is one recorded attempt.
type Attempt struct {
	Run             int        `json:"run"`
	Attempt         int        `json:"attempt"`
	Outcome         string     `json:"outcome"`
	Error           *JobError  `json:"error"`
	StartedAt       *time.Time `json:"started_at"`
	DurationMS      int64      `json:"duration_ms"`
	PeakMemoryBytes int64      `json:"peak_memory_bytes"`
	Worker          string     `json:"worker"`
}

// Progress is what a handler last reported.
type Progress struct {
	Done    int64  `json:"done"`
	Total   int64  `json:"total"`
	Message string `json:"message"`
}

// WaitingOn is one thing a job waits for.
type WaitingOn struct {
	Code    string     `json:"code"`
	Until   *time.Time `json:"until"`
	Limit   int        `json:"limit"`
	Running int        `json:"running"`
	AtMost  int64      `json:"at_most"`
}

// Queue is what the commands read of a queue.
type Queue struct {
	Name        string          `json:"name"`
	Weight      float64         `json:"weight"`
	Priority    int             `json:"priority"`
	Paused      bool            `json:"paused"`
	MaxRunning  *int            `json:"max_running"`
	Rate        string          `json:"rate"`
	Waiting     string          `json:"waiting"`
	Override    json.RawMessage `json:"override"`
	Scheduled   int64           `json:"scheduled"`
	Ready       int64           `json:"ready"`
	Running     int64           `json:"running"`
	Dead        int64           `json:"dead"`
	OldestAgeMS *int64          `json:"oldest_ready_age_ms"`
}

// HandlerVersion is what the commands read of a version.
type HandlerVersion struct {
	Type      string     `json:"type"`
	Version   int        `json:"version"`
	State     string     `json:"state"`
	SHA256    string     `json:"sha256"`
	SizeBytes int64      `json:"size_bytes"`
	Kind      string     `json:"kind"`
	Imports   []string   `json:"imports"`
	CompileMS int64      `json:"compile_ms"`
	Instance  Instance   `json:"instance"`
	Warnings  []string   `json:"warnings"`
	Refusal   string     `json:"refusal"`
	CreatedAt *time.Time `json:"created_at"`

	Quarantine *Quarantine `json:"quarantine"`
}

// Quarantine says why jobs do not run with a version.
type Quarantine struct {
	Since       *time.Time `json:"since"`
	JobsCrashed int        `json:"jobs_crashed"`
	LastError   string     `json:"last_error"`
}

// Instance says how instances of a version are made.
type Instance struct {
	Mode   string `json:"mode"`
	Reason string `json:"reason"`
}

// Operation is what the commands read of a long operation.
type Operation struct {
	ID         string     `json:"id"`
	Action     string     `json:"action"`
	State      string     `json:"state"`
	Matched    int64      `json:"matched"`
	Done       int64      `json:"done"`
	Skipped    int64      `json:"skipped"`
	Failed     int64      `json:"failed"`
	Error      string     `json:"error"`
	CreatedAt  *time.Time `json:"created_at"`
	FinishedAt *time.Time `json:"finished_at"`
	DryRun     bool       `json:"dry_run"`
	DeadBefore *time.Time `json:"dead_before"`
}

// Terminal reports whether the operation is over.
func (o *Operation) Terminal() bool { return o.State != "running" }

// Worker is a host of the store.
type Worker struct {
	ID       string     `json:"id"`
	Live     bool       `json:"live"`
	Since    *time.Time `json:"since"`
	LastSeen *time.Time `json:"last_seen"`
	Queues   []string   `json:"queues"`
	Slots    int        `json:"slots"`
	Running  int        `json:"running"`
	Version  string     `json:"version"`
}

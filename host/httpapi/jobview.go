package httpapi

import (
	"bytes"
	"encoding/json"

	"github.com/taskhost/taskhost/queue"
)

// Job is a job in an answer.
type Job struct {
	ID            string            `json:"id" example:"job_01kb6x3v9se5h9r3t7d4m1n8qa"`
	Tenant        string            `json:"tenant"`
	Type          string            `json:"type"`
	Queue         string            `json:"queue"`
	State         queue.State       `json:"state" enum:"scheduled,ready,running,succeeded,dead,cancelled,expired"`
	Reason        Text              `json:"reason" doc:"why it is scheduled: delay, retry or defer"`
	Run           int               `json:"run" doc:"1, and one more after every replay"`
	Attempt       int               `json:"attempt" doc:"attempts counted in this run; while running, the number of the one that runs"`
	MaxAttempts   int               `json:"max_attempts"`
	Crashes       int               `json:"crashes"`
	Interruptions int               `json:"interruptions"`
	Priority      int               `json:"priority"`
	Payload       Value             `json:"payload" doc:"the payload when it was sent as JSON; null in lists"`
	PayloadBase64 *Base64           `json:"payload_base64,omitempty" doc:"the payload when it was not sent as JSON"`
	PayloadBytes  int               `json:"payload_bytes"`
	Result        Value             `json:"result" doc:"the result when it is JSON; null in lists"`
	ResultBase64  *Base64           `json:"result_base64,omitempty" doc:"the result when it is not JSON"`
	ResultBytes   int               `json:"result_bytes"`
	LastError     *JobError         `json:"last_error" doc:"of the last failed attempt, or why it is dead"`
	CreatedAt     Timestamp         `json:"created_at"`
	StartedAt     Timestamp         `json:"started_at" doc:"of the last attempt"`
	NextRunAt     Timestamp         `json:"next_run_at" doc:"while scheduled: when it becomes ready"`
	FinishedAt    Timestamp         `json:"finished_at"`
	ExpiresAt     Timestamp         `json:"expires_at" doc:"when it expires unless it has started"`
	ErasedAt      Timestamp         `json:"erased_at" doc:"when payload and result were erased"`
	Timeout       *int64            `json:"timeout_ms" doc:"of one attempt; null = the handler's"`
	Backoff       Backoff           `json:"backoff"`
	Handler       *queue.Handler    `json:"handler" doc:"the handler version of the last attempt"`
	Worker        Text              `json:"worker" doc:"while running: who runs it"`
	LeaseUntil    Timestamp         `json:"lease_until"`
	Progress      *Progress         `json:"progress"`
	Cancel        bool              `json:"cancel_requested"`
	RetriedFrom   Text              `json:"retried_from" doc:"the job this one is an edited copy of"`
	Idempotency   Text              `json:"idempotency_key"`
	Unique        *UniqueView       `json:"unique"`
	Concurrency   Text              `json:"concurrency_key"`
	Labels        map[string]string `json:"labels,omitempty"`
	Headers       map[string]string `json:"headers,omitempty"`
	WaitingOn     []WaitingOn       `json:"waiting_on,omitempty" doc:"of a single job that waits: what for"`
	Attempts      *[]AttemptView    `json:"attempts,omitempty" doc:"of a single job: oldest first, at most the last 100"`
}

// JobError is a failure in an answer.
type JobError struct {
	Kind        string `json:"kind" example:"trap"`
	Message     string `json:"message"`
	Retryable   bool   `json:"retryable"`
	Fingerprint string `json:"fingerprint" doc:"equal for errors that differ in numbers only; error_fingerprint of a filter"`
}

// Backoff is how retries are spread.
type Backoff struct {
	BaseMS int64        `json:"base_ms"`
	MaxMS  int64        `json:"max_ms"`
	Jitter queue.Jitter `json:"jitter" enum:"full,none"`
}

// UniqueView is a unique key in an answer.
type UniqueView struct {
	Key        string               `json:"key"`
	Until      queue.UniqueUntil    `json:"until" enum:"finished,started,window"`
	WindowMS   int64                `json:"window_ms,omitempty" doc:"of until = window"`
	OnConflict queue.UniqueConflict `json:"on_conflict" enum:"reject,existing"`
}

// Progress is what a handler last reported.
type Progress struct {
	Done    int64     `json:"done"`
	Total   int64     `json:"total" doc:"0 = not known"`
	Message string    `json:"message,omitempty"`
	At      Timestamp `json:"at"`
}

// AttemptView is one recorded attempt in an answer.
type AttemptView struct {
	Run             int                  `json:"run"`
	Attempt         int                  `json:"attempt"`
	Outcome         queue.AttemptOutcome `json:"outcome" enum:"succeeded,failed,deferred,crashed,interrupted,cancelled"`
	Error           *JobError            `json:"error"`
	StartedAt       Timestamp            `json:"started_at"`
	DurationMS      int64                `json:"duration_ms"`
	Fuel            int64                `json:"fuel,omitempty"`
	PeakMemoryBytes int64                `json:"peak_memory_bytes,omitempty"`
	Worker          string               `json:"worker,omitempty"`
	Handler         *queue.Handler       `json:"handler,omitempty"`
}

// WaitingOn is one thing a job waits for.
type WaitingOn struct {
	Code    string    `json:"code" enum:"delay,retry_backoff,defer,no_handler,quarantined,paused,max_running,tenant_max_running,rate,concurrency_key,ahead"`
	Until   Timestamp `json:"until,omitzero" doc:"of delay, retry_backoff, defer, rate; of no_handler, quarantined: when a host looks again"`
	Limit   int       `json:"limit,omitempty" doc:"of max_running, tenant_max_running, concurrency_key: how many may run at once"`
	Running int       `json:"running,omitempty" doc:"… and how many do"`
	AtMost  int64     `json:"at_most,omitempty" doc:"of ahead: how many other ready jobs of the queue have its priority or a higher one"`
}

// viewJob shows a job as it is in lists.
func viewJob(j *queue.Job) Job {
	v := Job{
		ID: j.ID, Tenant: j.Tenant, Type: j.Type, Queue: j.Queue, State: j.State, Reason: Text(j.Reason),
		Run: j.Run, Attempt: j.Attempt, MaxAttempts: j.MaxAttempts, Crashes: j.Crashes, Interruptions: j.Interruptions,
		Priority: j.Priority, PayloadBytes: j.PayloadBytes, ResultBytes: j.ResultBytes, LastError: viewError(j.LastError),
		CreatedAt: Timestamp{j.CreatedAt}, StartedAt: Timestamp{j.StartedAt}, NextRunAt: Timestamp{j.NextRunAt},
		FinishedAt: Timestamp{j.FinishedAt}, ExpiresAt: Timestamp{j.ExpiresAt}, ErasedAt: Timestamp{j.ErasedAt}, LeaseUntil: Timestamp{j.LeaseUntil},
		Backoff: viewBackoff(j.Backoff), Handler: viewHandler(j.Handler), Worker: Text(j.Worker),
		Cancel: j.CancelRequested, RetriedFrom: Text(j.RetriedFrom), Idempotency: Text(j.IdempotencyKey),
		Unique: viewUnique(j.Unique), Concurrency: Text(j.ConcurrencyKey), Labels: j.Labels, Headers: j.Headers,
	}
	if j.Timeout > 0 {
		ms := j.Timeout.Milliseconds()
		v.Timeout = &ms
	}
	if p := j.Progress; p != nil {
		v.Progress = &Progress{Done: p.Done, Total: p.Total, Message: p.Message, At: Timestamp{p.At}}
	}
	return v
}

// viewWhole shows a single job with its payload, result and attempts.
func viewWhole(j *queue.Job) Job {
	v := viewJob(j)
	if j.PayloadJSON && isJSON(j.Payload) {
		v.Payload = Value(j.Payload)
	} else {
		v.PayloadBase64 = bytesView(j.Payload)
	}
	switch {
	case j.State != queue.StateSucceeded:
	case isJSON(j.Result):
		v.Result = Value(j.Result)
	default:
		v.ResultBase64 = bytesView(j.Result)
	}
	attempts := make([]AttemptView, len(j.Attempts))
	for i, a := range j.Attempts {
		attempts[i] = AttemptView{
			Run: a.Run, Attempt: a.Attempt, Outcome: a.Outcome, Error: viewError(a.Error), StartedAt: Timestamp{a.StartedAt},
			DurationMS: a.DurationMS, Fuel: a.Fuel, PeakMemoryBytes: a.PeakMemoryBytes, Worker: a.Worker, Handler: viewHandler(a.Handler),
		}
	}
	v.Attempts = &attempts
	return v
}

// bytesView is never nil, so that no bytes are shown as "".
func bytesView(b []byte) *Base64 {
	v := Base64(b)
	if v == nil {
		v = Base64{}
	}
	return &v
}

func viewError(e *queue.JobError) *JobError {
	if e == nil {
		return nil
	}
	return &JobError{Kind: e.Kind, Message: e.Message, Retryable: e.Retryable, Fingerprint: queue.ErrorFingerprint(e)}
}

func viewHandler(h queue.Handler) *queue.Handler {
	if h == (queue.Handler{}) {
		return nil
	}
	return &h
}

// viewBackoff shows what is in force, defaults filled in.
func viewBackoff(b queue.Backoff) Backoff {
	v := Backoff{BaseMS: b.Base.Milliseconds(), MaxMS: b.Max.Milliseconds(), Jitter: b.Jitter}
	if b.Base <= 0 {
		v.BaseMS = queue.BackoffBaseDefault.Milliseconds()
	}
	if b.Max <= 0 {
		v.MaxMS = queue.BackoffMaxDefault.Milliseconds()
	}
	if b.Jitter == "" {
		v.Jitter = queue.JitterFull
	}
	return v
}

func viewUnique(u queue.Unique) *UniqueView {
	if u.Key == "" {
		return nil
	}
	v := &UniqueView{Key: u.Key, Until: u.Until, WindowMS: u.Window.Milliseconds(), OnConflict: u.OnConflict}
	if v.Until == "" {
		v.Until = queue.UniqueUntilFinished
	}
	if v.OnConflict == "" {
		v.OnConflict = queue.UniqueReject
	}
	return v
}

// marshalPlain is json.Marshal without the escapes that only HTML needs.
func marshalPlain(v any) ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return nil, err
	}
	return bytes.TrimRight(b.Bytes(), "\n"), nil
}

package client

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"time"
)

// NewJob is a job to enqueue. Zero fields mean the server's defaults.
type NewJob struct {
	Type  string // required
	Queue string

	// Payload is what the handler gets: a json.RawMessage is sent as it stands, byte for byte; a []byte is sent as bytes;
	// anything else as its JSON (nil as null).
	Payload any

	Priority    *int
	Delay       time.Duration // not before so long
	ExpiresIn   time.Duration // expires unless it has started by then
	Timeout     time.Duration // of one attempt
	MaxAttempts int
	Backoff     *Backoff

	// IdempotencyKey makes repeated enqueues one job, for 24 h. Without one the client makes one that is used for the
	// resends of this call only.
	IdempotencyKey string

	Unique *Unique

	// ConcurrencyKey bounds how many jobs of the queue with the same key run at once: the queue's max_per_key, 1 unless set.
	ConcurrencyKey string

	Labels  map[string]string
	Headers map[string]string
}

// Backoff is exponential, from Base up to Max. Jitter is "full" (default) or "none".
type Backoff struct {
	Base   time.Duration
	Max    time.Duration
	Jitter string
}

// Unique holds a key while the job is unfinished. Until is "finished" (default), "started", or "window": from the
// creation for the time in Window (such as "10m"), whatever becomes of the job. OnConflict is "reject" (default) or "existing".
type Unique struct {
	Key        string `json:"key"`
	Until      string `json:"until,omitempty"`
	Window     string `json:"window,omitempty"`
	OnConflict string `json:"on_conflict,omitempty"`
}

// Enqueued is what became of a job. Outcome is "created", or "duplicate" when a job with the idempotency or unique key was
// there: ID is that job's then.
type Enqueued struct {
	Outcome  string   `json:"outcome"`
	ID       string   `json:"id"`
	Warnings []string `json:"warnings"`
}

// BatchResult is what became of a batch.
type BatchResult struct {
	Created   int       `json:"created"`
	Duplicate int       `json:"duplicate"`
	Rejected  int       `json:"rejected"`
	Unknown   int       `json:"unknown"`
	Outcomes  []Outcome `json:"outcomes"` // Outcomes[i] belongs to jobs[i]
}

// Outcome is what became of one job of a batch: "created", "duplicate", "rejected" (Error says why) or "unknown" (the store
// did not answer, also not when asked again).
type Outcome struct {
	Outcome  string   `json:"outcome"`
	ID       string   `json:"id"`
	Warnings []string `json:"warnings"`
	Error    *Error   `json:"error"`
}

// Outcomes of an enqueue.
const (
	Created   = "created"
	Duplicate = "duplicate"
	Rejected  = "rejected"
	Unknown   = "unknown"
)

// Enqueue stores a job durably. It is stored once however often the request had to be sent.
func (c *Client) Enqueue(ctx context.Context, job NewJob) (Enqueued, error) {
	own := job.IdempotencyKey == ""
	if own {
		job.IdempotencyKey = newKey()
	}
	body, err := job.encode()
	if err != nil {
		return Enqueued{}, err
	}
	resp, err := c.do(ctx, request{method: http.MethodPost, path: "/v1/jobs", body: body})
	if err != nil {
		return Enqueued{}, err
	}
	var e Enqueued
	if err := resp.into(&e); err != nil {
		return Enqueued{}, err
	}
	if own && resp.resends > 0 && e.Outcome == Duplicate && job.Unique == nil {
		e.Outcome = Created // by an earlier sending of this very call: nobody else has the key
	}
	return e, nil
}

// EnqueueBatch stores at most 1,000 jobs, independent of each other. Jobs whose outcome is not known are sent again. An
// error does not undo what earlier sendings brought: the result has an outcome for every job also then, Unknown where none
// is known.
func (c *Client) EnqueueBatch(ctx context.Context, jobs []NewJob) (BatchResult, error) {
	encoded := make([]json.RawMessage, len(jobs))
	own := make([]bool, len(jobs))
	for i, job := range jobs {
		if own[i] = job.IdempotencyKey == "" && job.Unique == nil; job.IdempotencyKey == "" {
			job.IdempotencyKey = newKey()
		}
		body, err := job.encode()
		if err != nil {
			return BatchResult{}, fmt.Errorf("jobs[%d]: %w", i, err)
		}
		encoded[i] = body
	}
	outcomes := make([]Outcome, len(jobs))
	open := make([]int, len(jobs))
	for i := range open {
		open[i], outcomes[i].Outcome = i, Unknown
	}
	for round := 0; ; round++ {
		resp, err := c.do(ctx, request{method: http.MethodPost, path: "/v1/jobs", body: batchBody(encoded, open)})
		if err != nil {
			return summarise(outcomes), err // what is known is worth keeping
		}
		var r BatchResult
		if err := resp.into(&r); err != nil {
			return summarise(outcomes), err
		}
		if len(r.Outcomes) != len(open) {
			return summarise(outcomes), fmt.Errorf("the server answered %d outcomes for %d jobs", len(r.Outcomes), len(open))
		}
		var still []int
		for n, i := range open {
			outcomes[i] = r.Outcomes[n]
			outcomes[i].Error.renumber(n, i)
			switch {
			case outcomes[i].Outcome == Unknown:
				still = append(still, i)
			case outcomes[i].Outcome == Duplicate && own[i] && (round > 0 || resp.resends > 0):
				outcomes[i].Outcome = Created
			}
		}
		if open = still; len(open) == 0 || round >= c.retries {
			return summarise(outcomes), nil
		}
		if err := c.pause(ctx, pauseBefore(round, nil)); err != nil {
			return summarise(outcomes), err
		}
	}
}

// renumber names the job at fault by its place in the whole batch rather than in the part that was sent.
func (e *Error) renumber(sent, whole int) {
	if e == nil {
		return
	}
	if rest, ok := strings.CutPrefix(e.Field, fmt.Sprintf("jobs[%d]", sent)); ok {
		e.Field = fmt.Sprintf("jobs[%d]%s", whole, rest)
	}
}

func summarise(outcomes []Outcome) BatchResult {
	r := BatchResult{Outcomes: outcomes}
	for _, o := range outcomes {
		switch o.Outcome {
		case Created:
			r.Created++
		case Duplicate:
			r.Duplicate++
		case Rejected:
			r.Rejected++
		default:
			r.Unknown++
		}
	}
	return r
}

// batchBody joins the jobs by hand: json.Marshal would rewrite the white space of payloads.
func batchBody(encoded []json.RawMessage, which []int) []byte {
	b := []byte(`{"jobs":[`)
	for n, i := range which {
		if n > 0 {
			b = append(b, ',')
		}
		b = append(b, encoded[i]...)
	}
	return append(b, `]}`...)
}

// jobBody is a job in a request, but for its payload.
type jobBody struct {
	Type           string            `json:"type"`
	Queue          string            `json:"queue,omitempty"`
	PayloadBase64  *[]byte           `json:"payload_base64,omitempty"`
	Priority       *int              `json:"priority,omitempty"`
	Delay          string            `json:"delay,omitempty"`
	ExpiresIn      string            `json:"expires_in,omitempty"`
	Timeout        string            `json:"timeout,omitempty"`
	MaxAttempts    int               `json:"max_attempts,omitempty"`
	Backoff        *backoffBody      `json:"backoff,omitempty"`
	IdempotencyKey string            `json:"idempotency_key,omitempty"`
	Unique         *Unique           `json:"unique,omitempty"`
	ConcurrencyKey string            `json:"concurrency_key,omitempty"`
	Labels         map[string]string `json:"labels,omitempty"`
	Headers        map[string]string `json:"headers,omitempty"`
}

type backoffBody struct {
	Base   string `json:"base,omitempty"`
	Max    string `json:"max,omitempty"`
	Jitter string `json:"jitter,omitempty"`
}

// encode writes the job as the server reads it.
func (j *NewJob) encode() ([]byte, error) {
	body := jobBody{
		Type: j.Type, Queue: j.Queue, Priority: j.Priority, Delay: duration(j.Delay), ExpiresIn: duration(j.ExpiresIn),
		Timeout: duration(j.Timeout), MaxAttempts: j.MaxAttempts, IdempotencyKey: j.IdempotencyKey, Unique: j.Unique,
		ConcurrencyKey: j.ConcurrencyKey, Labels: j.Labels, Headers: j.Headers,
	}
	if j.Backoff != nil {
		body.Backoff = &backoffBody{Base: duration(j.Backoff.Base), Max: duration(j.Backoff.Max), Jitter: j.Backoff.Jitter}
	}
	text, raw, err := encodePayload(j.Payload)
	if err != nil {
		return nil, err
	}
	body.PayloadBase64 = raw
	b, err := json.Marshal(body)
	if err != nil || text == nil {
		return b, err
	}
	b = append(b[:len(b)-1], `,"payload":`...)
	return append(append(b, text...), '}'), nil
}

// encodePayload returns JSON text or bytes.
func encodePayload(payload any) (text []byte, raw *[]byte, err error) {
	switch p := payload.(type) {
	case json.RawMessage:
		if !json.Valid(p) {
			return nil, nil, fmt.Errorf("payload: the json.RawMessage is not JSON; send bytes as []byte")
		}
		return p, nil, nil
	case []byte:
		if p == nil {
			p = []byte{}
		}
		return nil, &p, nil
	}
	text, err = json.Marshal(payload)
	if err != nil {
		return nil, nil, fmt.Errorf("payload: %w", err)
	}
	return text, nil, nil
}

func duration(d time.Duration) string {
	if d == 0 {
		return ""
	}
	return d.String()
}

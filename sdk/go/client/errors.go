package client

import (
	"encoding/json"
	"errors"
	"fmt"
	"mime"
	"net/http"
	"strconv"
	"time"
)

// Codes of an Error. A server may answer codes that are not listed here.
const (
	CodeInvalid              = "invalid"
	CodeUnauthorized         = "unauthorized"
	CodeForbidden            = "forbidden"
	CodeNotFound             = "not_found"
	CodeConflict             = "conflict"
	CodeIdempotencyMismatch  = "idempotency_mismatch"
	CodeUniqueHeld           = "unique_held"
	CodeCountChanged         = "count_changed"
	CodeManagedByConfig      = "managed_by_config"
	CodeTooLarge             = "too_large"
	CodeUnsupportedMediaType = "unsupported_media_type"
	CodeModuleRefused        = "module_refused"
	CodeLimitExceeded        = "limit_exceeded"
	CodeUnavailable          = "unavailable"
	CodeInternal             = "internal"
)

// Error is an error that the server answered (application/problem+json), or what can be said of an answer that a proxy
// made: then Code is empty.
type Error struct {
	Type      string   `json:"type"`
	Code      string   `json:"code"`
	Status    int      `json:"status"` // HTTP status
	Title     string   `json:"title"`
	Detail    string   `json:"detail"`  // what is wrong, where, and what is allowed
	Field     string   `json:"field"`   // the field at fault, such as "jobs[2].queue"
	Limit     string   `json:"limit"`   // the limit that was met
	JobID     string   `json:"job_id"`  // the job in the way
	State     string   `json:"state"`   // its state
	Details   []string `json:"details"` // particulars
	RequestID string   `json:"request_id"`

	RetryAfter time.Duration `json:"-"` // 0 = not said
}

func (e *Error) Error() string {
	s := e.Detail
	if s == "" {
		s = e.Title
	}
	if e.Code != "" {
		s = e.Code + ": " + s
	}
	if e.RequestID != "" {
		s += " (request " + e.RequestID + ")"
	}
	return s
}

// CodeOf is the code of the *Error in err, "" when there is none.
func CodeOf(err error) string {
	if e := (*Error)(nil); errors.As(err, &e) {
		return e.Code
	}
	return ""
}

// readError makes an Error of any answer that is not a success.
func readError(resp *http.Response, body []byte) *Error {
	e := &Error{}
	kind, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type"))
	if kind != "application/problem+json" || json.Unmarshal(body, e) != nil {
		const shown = 200
		e = &Error{Title: http.StatusText(resp.StatusCode), Detail: fmt.Sprintf("status %d: %.*q", resp.StatusCode, shown, body)}
	}
	e.Status = resp.StatusCode
	var said struct {
		RetryAfterMS int64 `json:"retry_after_ms"`
	}
	if json.Unmarshal(body, &said) == nil && said.RetryAfterMS > 0 {
		e.RetryAfter = time.Duration(said.RetryAfterMS) * time.Millisecond
	} else if seconds, err := strconv.ParseInt(resp.Header.Get("Retry-After"), 10, 32); err == nil && seconds > 0 {
		e.RetryAfter = time.Duration(seconds) * time.Second
	}
	return e
}

// FailedError says that a job ended otherwise than by success. Job.Err returns it.
type FailedError struct {
	ID        string
	State     State
	LastError *JobError // nil for a cancelled or expired job that never failed
}

func (e *FailedError) Error() string {
	s := fmt.Sprintf("%s is %s", e.ID, e.State)
	if e.LastError != nil {
		s += ": " + e.LastError.Kind + ": " + e.LastError.Message
	}
	return s
}

package httpapi

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/taskhost/taskhost/handlers"
	"github.com/taskhost/taskhost/host/httpapi/jsonin"
	"github.com/taskhost/taskhost/host/lifecycle"
	"github.com/taskhost/taskhost/queue"
)

// problemType is the content type of every error (RFC 9457).
const problemType = "application/problem+json"

// Code is the stable name of a kind of error; clients branch on it.
type Code string

// The codes. A new kind of error gets a new code; a code never changes its status.
const (
	CodeInvalid              Code = "invalid"
	CodeUnauthorized         Code = "unauthorized"
	CodeForbidden            Code = "forbidden"
	CodeNotFound             Code = "not_found"
	CodeMethodNotAllowed     Code = "method_not_allowed"
	CodeTimeout              Code = "timeout" // the body did not arrive in time
	CodeConflict             Code = "conflict"
	CodeIdempotencyMismatch  Code = "idempotency_mismatch"
	CodeUniqueHeld           Code = "unique_held"
	CodeCountChanged         Code = "count_changed"
	CodeManagedByConfig      Code = "managed_by_config"
	CodeLeaseLost            Code = "lease_lost"
	CodeTooLarge             Code = "too_large"
	CodeUnsupportedMediaType Code = "unsupported_media_type"
	CodeModuleRefused        Code = "module_refused"
	CodeLimitExceeded        Code = "limit_exceeded"
	CodeInternal             Code = "internal"
	CodeUnavailable          Code = "unavailable"
)

// kind is what is fixed about a code.
type kind struct {
	status int
	title  string
}

func (c Code) kind() kind {
	switch c {
	case CodeInvalid:
		return kind{http.StatusBadRequest, "Request not valid"}
	case CodeUnauthorized:
		return kind{http.StatusUnauthorized, "Login needed"}
	case CodeForbidden:
		return kind{http.StatusForbidden, "Not allowed"}
	case CodeNotFound:
		return kind{http.StatusNotFound, "Not found"}
	case CodeMethodNotAllowed:
		return kind{http.StatusMethodNotAllowed, "Method not allowed"}
	case CodeTimeout:
		return kind{http.StatusRequestTimeout, "Request body too slow"}
	case CodeConflict:
		return kind{http.StatusConflict, "Conflict with the current state"}
	case CodeIdempotencyMismatch:
		return kind{http.StatusConflict, "Idempotency key used for a different request"}
	case CodeUniqueHeld:
		return kind{http.StatusConflict, "Unique key held by another job"}
	case CodeCountChanged:
		return kind{http.StatusConflict, "Number of matching jobs changed"}
	case CodeManagedByConfig:
		return kind{http.StatusConflict, "Managed by the configuration"}
	case CodeLeaseLost:
		return kind{http.StatusConflict, "Lease lost"}
	case CodeTooLarge:
		return kind{http.StatusRequestEntityTooLarge, "Too large"}
	case CodeUnsupportedMediaType:
		return kind{http.StatusUnsupportedMediaType, "Content type not supported"}
	case CodeModuleRefused:
		return kind{http.StatusUnprocessableEntity, "Module refused"}
	case CodeLimitExceeded:
		return kind{http.StatusTooManyRequests, "Over a limit"}
	case CodeUnavailable:
		return kind{http.StatusServiceUnavailable, "Temporarily unavailable"}
	case CodeInternal:
	}
	return kind{http.StatusInternalServerError, "Internal error"}
}

// Problem is an error answer.
type Problem struct {
	Type         string   `json:"type" doc:"urn:taskhost:error: and the code" example:"urn:taskhost:error:invalid"`
	Code         Code     `json:"code" doc:"stable name of the kind of error" example:"invalid"`
	Status       int      `json:"status" doc:"HTTP status" example:"400"`
	Title        string   `json:"title" doc:"the kind of error for people"`
	Detail       string   `json:"detail" doc:"what is wrong, where, and what is allowed"`
	Field        string   `json:"field,omitempty" doc:"the field or parameter at fault" example:"jobs[2].queue"`
	Limit        string   `json:"limit,omitempty" doc:"name of the limit that was met"`
	JobID        string   `json:"job_id,omitempty" doc:"the job in the way"`
	State        string   `json:"state,omitempty" doc:"state of the job in the way"`
	Details      []string `json:"details,omitempty" doc:"particulars, such as every import that is refused"`
	RetryAfterMS int64    `json:"retry_after_ms,omitempty" doc:"when to try again; also in the Retry-After header"`
	RequestID    string   `json:"request_id" doc:"names this request in the server's log; also in X-Request-Id"`
}

// Error makes a Problem an error.
func (p *Problem) Error() string { return string(p.Code) + ": " + p.Detail }

// GetStatus makes a Problem a huma.StatusError.
func (p *Problem) GetStatus() int { return p.Status }

// ContentType makes huma send a Problem as what it is.
func (p *Problem) ContentType(string) string { return problemType }

// newProblem makes a Problem of a code.
func newProblem(code Code, format string, args ...any) *Problem {
	k := code.kind()
	return &Problem{
		Type: "urn:taskhost:error:" + string(code), Code: code, Status: k.status, Title: k.title,
		Detail: fmt.Sprintf(format, args...),
	}
}

// invalid is a request field at fault.
func invalid(field, format string, args ...any) error {
	return &queue.InvalidError{Field: field, Reason: fmt.Sprintf(format, args...)}
}

// retryAfterDefault is what an unavailable store is given to recover.
const retryAfterDefault = time.Second

// retryAfterBusy is what the compiler of uploads is given to finish one.
const retryAfterBusy = 5 * time.Second

// problemOf is the one place where errors become answers. The detail of an error that is not the caller's to mend is
// not shown but logged under the request's id.
func (s *Server) problemOf(ctx context.Context, err error) *Problem {
	p := classify(err)
	if p == nil {
		s.log.ErrorContext(ctx, "request failed", slog.String("request_id", requestID(ctx)), slog.Any("error", err))
		p = newProblem(CodeInternal, "the server failed; its log has the reason under this request id")
	}
	if p.Code == CodeUnavailable && !errors.Is(err, context.Canceled) { // a caller who hung up is no fault
		s.log.WarnContext(ctx, "request refused: unavailable", slog.String("request_id", requestID(ctx)), slog.Any("error", err))
	}
	p.RequestID = requestID(ctx)
	return p
}

// classify returns nil for an error that is the server's own.
func classify(err error) *Problem {
	if p := (*Problem)(nil); errors.As(err, &p) {
		own := *p // a Problem may be shared; the request id is not
		return &own
	}
	if m := (*huma.ErrorModel)(nil); errors.As(err, &m) {
		return fromHuma(m)
	}
	if p := classifyInput(err); p != nil {
		return p
	}
	if p := classifyConflict(err); p != nil {
		return p
	}
	if refusal := (*handlers.Refusal)(nil); errors.As(err, &refusal) {
		p := newProblem(CodeModuleRefused, "%s", refusal.Reason)
		p.Details = refusal.Details
		return p
	}
	switch {
	case errors.Is(err, handlers.ErrBusy):
		p := newProblem(CodeLimitExceeded, "%s", err)
		p.Limit = "uploads_waiting"
		p.RetryAfterMS = retryAfterBusy.Milliseconds()
		return p
	case errors.Is(err, handlers.ErrSandbox):
		p := newProblem(CodeUnavailable, "%s; nothing is uploaded until it is mended (see taskhost doctor on the server)", handlers.ErrSandbox)
		p.RetryAfterMS = retryAfterBusy.Milliseconds()
		return p
	case errors.Is(err, queue.ErrNotFound):
		return newProblem(CodeNotFound, "no such resource")
	case errors.Is(err, queue.ErrUnavailable), errors.Is(err, queue.ErrClosed), errors.Is(err, errStopping), errors.Is(err, handlers.ErrStopped), errors.Is(err, lifecycle.ErrStopped),
		errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		p := newProblem(CodeUnavailable, "the store did not answer; whether the request took effect is not known")
		p.RetryAfterMS = retryAfterDefault.Milliseconds()
		return p
	case errors.Is(err, queue.ErrInvalid):
		return newProblem(CodeInvalid, "%s", err)
	}
	return nil
}

// classifyInput maps what is wrong with the request itself.
func classifyInput(err error) *Problem {
	if e := (*queue.InvalidError)(nil); errors.As(err, &e) {
		p := newProblem(CodeInvalid, "%s", e)
		p.Field = e.Field
		return p
	}
	if e := (*queue.LimitError)(nil); errors.As(err, &e) {
		code := CodeInvalid
		if e.Unit == "bytes" {
			code = CodeTooLarge
		}
		p := newProblem(code, "%s", e)
		p.Field, p.Limit = e.Field, e.Limit
		return p
	}
	if e := (*bodySizeError)(nil); errors.As(err, &e) {
		p := newProblem(CodeTooLarge, "%s", e)
		p.Field, p.Limit = "body", "body"
		return p
	}
	if e := (*jsonin.SyntaxError)(nil); errors.As(err, &e) {
		p := newProblem(CodeInvalid, "%s", e)
		p.Field = "body"
		return p
	}
	if e := net.Error(nil); errors.As(err, &e) && e.Timeout() && !errors.Is(err, context.DeadlineExceeded) {
		return newProblem(CodeTimeout, "the request body did not arrive within its time")
	}
	if errors.Is(err, errBodyBroken) {
		return newProblem(CodeInvalid, "the request body ended early: %s", err)
	}
	return nil
}

// classifyConflict maps what the present state does not allow.
func classifyConflict(err error) *Problem {
	if e := (*queue.UniqueHeldError)(nil); errors.As(err, &e) {
		p := newProblem(CodeUniqueHeld, "%s", e)
		p.Field, p.JobID, p.State = "unique.key", e.JobID, string(e.State)
		return p
	}
	if e := (*queue.IdempotencyMismatchError)(nil); errors.As(err, &e) {
		p := newProblem(CodeIdempotencyMismatch, "%s", e)
		p.Field, p.JobID = "idempotency_key", e.JobID
		return p
	}
	if e := (*queue.StateError)(nil); errors.As(err, &e) {
		p := newProblem(CodeConflict, "%s", e)
		p.JobID, p.State = e.JobID, string(e.State)
		return p
	}
	switch {
	case errors.Is(err, queue.ErrLeaseLost):
		return newProblem(CodeLeaseLost, "%s", err)
	case errors.Is(err, queue.ErrConflict):
		return newProblem(CodeConflict, "%s", err)
	}
	return nil
}

// fromHuma maps what huma found wrong with parameters. Its first error is shown; errors of this package travel inside it
// unchanged, as Problems.
func fromHuma(m *huma.ErrorModel) *Problem {
	if len(m.Errors) == 0 {
		if m.Status >= http.StatusInternalServerError {
			return nil
		}
		return newProblem(CodeInvalid, "%s", m.Detail)
	}
	first := m.Errors[0]
	_, field, _ := strings.Cut(first.Location, ".") // "query.limit" → "limit"
	if field == "" {
		return newProblem(CodeInvalid, "%s", first.Message)
	}
	p := newProblem(CodeInvalid, "%s: %s, got %s", field, first.Message, quoteValue(first.Value))
	p.Field = field
	return p
}

func quoteValue(v any) string {
	if s, ok := v.(string); ok {
		return fmt.Sprintf("%.80q", s)
	}
	return fmt.Sprintf("%.80v", v)
}

// setRetryAfter adds the header that belongs to a Problem: whole seconds, rounded up.
func (p *Problem) setRetryAfter(set func(name, value string)) {
	if p.RetryAfterMS > 0 {
		set("Retry-After", strconv.FormatInt((p.RetryAfterMS+999)/1000, 10))
	}
}

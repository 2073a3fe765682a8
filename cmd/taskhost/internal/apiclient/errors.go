package apiclient

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net"
	"net/http"
	"os"
	"strings"
	"syscall"
)

// Problem is a refusal by the server, application/problem+json (RFC 9457).
type Problem struct {
	Code         string   `json:"code"`
	Status       int      `json:"status"`
	Title        string   `json:"title,omitempty"`
	Detail       string   `json:"detail,omitempty"`
	Field        string   `json:"field,omitempty"`
	Limit        string   `json:"limit,omitempty"`
	JobID        string   `json:"job_id,omitempty"`
	State        string   `json:"state,omitempty"`
	Details      []string `json:"details,omitempty"`
	RetryAfterMS int64    `json:"retry_after_ms,omitempty"`
	RequestID    string   `json:"request_id,omitempty"`
}

func (p *Problem) Error() string {
	text := p.Detail
	if text == "" {
		text = p.Title
	}
	for _, d := range p.Details {
		text += "\n  " + d
	}
	return text
}

// UnreachableError says that the server did not answer.
type UnreachableError struct {
	Server string
	Err    error
}

func (e *UnreachableError) Error() string {
	why := e.Err.Error()
	var dns *net.DNSError
	switch {
	case errors.Is(e.Err, syscall.ECONNREFUSED):
		why = "connection refused"
	case errors.Is(e.Err, io.EOF), errors.Is(e.Err, io.ErrUnexpectedEOF), errors.Is(e.Err, syscall.ECONNRESET):
		why = "the connection was closed before the answer"
	case errors.As(e.Err, &dns):
		why = "no such host: " + dns.Name
	case errors.Is(e.Err, os.ErrDeadlineExceeded), isTimeout(e.Err):
		why = "no answer in time"
	}
	return fmt.Sprintf("cannot reach %s: %s", e.Server, why)
}

func (e *UnreachableError) Unwrap() error { return e.Err }

func isTimeout(err error) bool {
	t, ok := errors.AsType[net.Error](err)
	return ok && t.Timeout()
}

// problem reads the body of an answer that is not 2xx. What is not a problem document comes from something else than a
// taskhost server, and is said so.
func (c *Client) problem(resp *http.Response) error {
	body, _ := io.ReadAll(io.LimitReader(resp.Body, 1<<20))
	media, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type"))
	var p Problem
	if media == "application/problem+json" && json.Unmarshal(body, &p) == nil && p.Code != "" {
		p.Status = resp.StatusCode
		return &p
	}
	code := "unexpected"
	switch resp.StatusCode {
	case http.StatusUnauthorized:
		code = "unauthorized"
	case http.StatusForbidden:
		code = "forbidden"
	case http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		code = "unavailable"
	}
	what := strings.TrimSpace(strings.ToValidUTF8(string(body), "?"))
	if len(what) > 200 || strings.ContainsAny(what, "\x1b\x00<") {
		what = fmt.Sprintf("%d bytes of %q", len(body), media)
	}
	return &Problem{
		Code: code, Status: resp.StatusCode, Title: resp.Status,
		Detail: fmt.Sprintf("%s answered %s, not as a taskhost server does: %s", c.server, resp.Status, what),
	}
}

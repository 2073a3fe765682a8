package cli

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"syscall"

	"github.com/taskhost/taskhost/cmd/taskhost/internal/apiclient"
	"github.com/taskhost/taskhost/config"
)

// Exit codes, a promise to scripts.
const (
	ExitOK          = 0
	ExitFailed      = 1   // it did not work
	ExitUsage       = 2   // the command line, the configuration or the request is wrong; trying again will not help
	ExitNotFound    = 3   //
	ExitAuth        = 4   // no or not enough rights
	ExitConflict    = 5   // the state of things does not allow it
	ExitUnreachable = 6   // no server, or one that cannot answer now
	ExitJobFailed   = 7   // the awaited job ended, but not succeeded
	ExitPartial     = 8   // a bulk of things was done in part
	ExitTimeout     = 124 // the time to wait is over
	ExitInterrupted = 130 // SIGINT; a second signal to a server that drains
	ExitTerminated  = 143 // SIGTERM likewise
)

// exitError is an error that knows its exit code, and what to do next.
type exitError struct {
	code int
	err  error
	hint string // a next step for people; "" = none
}

func (e *exitError) Error() string { return e.err.Error() }
func (e *exitError) Unwrap() error { return e.err }

func failf(code int, format string, args ...any) error {
	return &exitError{code: code, err: fmt.Errorf(format, args...)}
}

func usagef(format string, args ...any) error { return failf(ExitUsage, format, args...) }

// errQuiet ends a command whose output says everything already.
type errQuiet struct{ code int }

func (e *errQuiet) Error() string { return fmt.Sprintf("exit %d", e.code) }

// interrupted is the cause with which a signal ends a command.
type interrupted struct{ signal os.Signal }

func (e *interrupted) Error() string { return "interrupted" }

// errWaitTimeout is the cause with which --wait-timeout ends a wait.
var errWaitTimeout = errors.New("the time to wait is over")

// exitCode finds the code of an error.
func exitCode(err error) int {
	if err == nil {
		return ExitOK
	}
	if e, ok := errors.AsType[*errQuiet](err); ok {
		return e.code
	}
	if e, ok := errors.AsType[*exitError](err); ok {
		return e.code
	}
	if e, ok := errors.AsType[*interrupted](err); ok {
		return signalCode(e.signal)
	}
	if e, ok := errors.AsType[*apiclient.Problem](err); ok {
		return problemCode(e)
	}
	if _, ok := errors.AsType[*apiclient.UnreachableError](err); ok {
		return ExitUnreachable
	}
	if _, ok := errors.AsType[*config.Error](err); ok {
		return ExitUsage
	}
	if errors.Is(err, errWaitTimeout) || errors.Is(err, context.DeadlineExceeded) {
		return ExitTimeout
	}
	return ExitFailed
}

func signalCode(s os.Signal) int {
	if s == syscall.SIGTERM {
		return ExitTerminated
	}
	return ExitInterrupted
}

func problemCode(p *apiclient.Problem) int {
	switch p.Status {
	case http.StatusBadRequest:
		return ExitUsage
	case http.StatusUnauthorized, http.StatusForbidden:
		return ExitAuth
	case http.StatusNotFound:
		return ExitNotFound
	case http.StatusConflict:
		return ExitConflict
	case http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		return ExitUnreachable
	}
	return ExitFailed
}

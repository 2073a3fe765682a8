package engine

import (
	"errors"
	"fmt"
	"strings"

	"github.com/taskhost/taskhost/abi"
	"github.com/taskhost/taskhost/abi/pluginpb"
	"github.com/taskhost/taskhost/handlers"
	"github.com/taskhost/taskhost/handlers/wasm/engine/attempt"
)

// byPolicy leaves the delay before the next attempt to the retry policy.
const byPolicy = -1

func failure(kind handlers.OutcomeKind, errKind, format string, args ...any) handlers.Outcome {
	return handlers.Outcome{Kind: kind, RetryAfter: byPolicy,
		Error: &handlers.Error{Kind: errKind, Message: attempt.Cut(fmt.Sprintf(format, args...), pluginpb.MaxErrorMessage)}}
}

// outcome tells how an attempt ended, from what the call returned and what the state has seen. What the host imposed (stop, deadline,
// result limit) goes before what the guest says.
func (m *Module) outcome(s *attempt.State, mem *memory, ret uint32, err error) handlers.Outcome {
	end, code := s.Ended()
	switch {
	case errors.Is(err, errMinMemory):
		return failure(handlers.OutcomePermanent, abi.KindMemoryLimit, "the module begins with %s of memory, the limit is %s",
			size(m.minBytes), size(s.Limits.Memory))
	case errors.Is(err, errNoMemory), errors.Is(err, errNotMetered):
		return failure(handlers.OutcomeUnavailable, abi.KindUnavailable, "%v", err)
	case end == attempt.EndStopped:
		reason, _ := s.StopReason()
		return failure(handlers.OutcomeInterrupted, abi.KindInterrupted, "%s", reason)
	case end == attempt.EndDeadline:
		return failure(handlers.OutcomeRetry, abi.KindDeadline, "deadline exceeded%s", m.where(err))
	case end == attempt.EndFuel:
		return failure(handlers.OutcomePermanent, abi.KindOutOfFuel, "out of fuel: the limit is %d units%s", s.Limits.Fuel, m.where(err))
	case s.Oversize() > 0:
		return failure(handlers.OutcomePermanent, abi.KindResultSize, "the result has at least %d bytes, the limit is %d bytes", s.Oversize(), s.Limits.Result)
	case end == attempt.EndExit:
		return m.exited(s, mem, code)
	case err != nil:
		return m.trapped(s, mem, err)
	case m.kind == handlers.KindCommand:
		return succeeded(s)
	}
	return returned(s, ret)
}

func succeeded(s *attempt.State) handlers.Outcome {
	return handlers.Outcome{Kind: handlers.OutcomeSucceeded, Result: s.Result()}
}

// returned judges the value of taskhost_handle.
func returned(s *attempt.State, ret uint32) handlers.Outcome {
	told := s.Failure
	if told == nil {
		told = &attempt.Failure{RetryAfter: byPolicy}
	}
	message := func(otherwise string) string {
		if told.Message != "" {
			return told.Message
		}
		if c := s.Complaint(); c != "" {
			return c
		}
		return otherwise
	}
	var out handlers.Outcome
	switch ret {
	case abi.HandleDone:
		return succeeded(s)
	case abi.HandleRetry:
		out = failure(handlers.OutcomeRetry, abi.KindRetryable, "%s", message("the handler asked for a retry"))
		out.RetryAfter = told.RetryAfter
	case abi.HandlePermanent:
		out = failure(handlers.OutcomePermanent, abi.KindPermanent, "%s", message("the handler failed for good"))
	case abi.HandleDefer:
		out = failure(handlers.OutcomeDefer, abi.KindRetryable, "%s", message("the handler asked to be run again"))
		out.RetryAfter = max(told.RetryAfter, 0)
	default:
		out = failure(handlers.OutcomePermanent, abi.KindBadReturn, "%s returned %d, which means nothing", abi.ExportHandle, int32(ret))
	}
	return out
}

// exited judges the code given to proc_exit. In a reactor a success by exit is one as well: the guest ended its run by itself.
func (m *Module) exited(s *attempt.State, mem *memory, code uint32) handlers.Outcome {
	message := fmt.Sprintf("exit code %d", int32(code))
	if c := s.Complaint(); c != "" {
		message += ": " + c
	}
	switch code {
	case abi.ExitDone:
		return succeeded(s)
	case abi.ExitRetry:
		return failure(handlers.OutcomeRetry, abi.KindRetryable, "%s", message)
	case abi.ExitUsage, abi.ExitDataError, abi.ExitConfigFail:
		return failure(handlers.OutcomePermanent, abi.KindPermanent, "%s", message)
	}
	if mem.refused {
		return failure(handlers.OutcomeRetry, abi.KindMemoryLimit, "%s: %s", memoryLimit(mem), message)
	}
	return failure(handlers.OutcomeRetry, abi.KindExit, "%s", message)
}

// where is the stack of a guest that the host has ended, on lines of its own.
func (m *Module) where(err error) string {
	t := parseTrap(err)
	t.locate(m.lines)
	if stack := t.stack(maxFrames); stack != "" {
		return "\n" + stack
	}
	return ""
}

// trapped judges an error of the engine. A stack that is too long for the message is in the log as a whole.
func (m *Module) trapped(s *attempt.State, mem *memory, err error) handlers.Outcome {
	t := parseTrap(err)
	t.locate(m.lines)
	what, message := t.what, t.what
	if c := s.Complaint(); c != "" {
		message = c + " (" + what + ")"
	}
	if stack := t.stack(maxFrames); stack != "" {
		message += "\n" + stack
	}
	if len(t.frames) > maxFrames {
		for line := range strings.Lines("trap: " + what + "\n" + t.stack(-1)) {
			line = strings.TrimSuffix(line, "\n")
			s.Log(abi.LevelError, line, len(line))
		}
	}
	switch {
	case strings.HasPrefix(what, stackOverflow):
		return failure(handlers.OutcomeRetry, abi.KindStackOverflow, "%s", message)
	case mem.refused:
		return failure(handlers.OutcomeRetry, abi.KindMemoryLimit, "%s: %s", memoryLimit(mem), message)
	}
	return failure(handlers.OutcomeRetry, abi.KindTrap, "%s", message)
}

func memoryLimit(mem *memory) string {
	if mem.err != nil {
		return fmt.Sprintf("the runner has no more memory (%v)", mem.err)
	}
	return "memory limit of " + size(int64(mem.limit)) + " reached"
}

// size formats bytes for people, exactly.
func size(n int64) string {
	if n > 0 && n%(1<<20) == 0 {
		return fmt.Sprintf("%d MiB", n>>20)
	}
	return fmt.Sprintf("%d KiB", n>>10)
}

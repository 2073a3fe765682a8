package session

import (
	"context"
	"errors"
	"math"
	"sync"
	"time"

	"github.com/taskhost/taskhost/abi"
	"github.com/taskhost/taskhost/abi/pluginpb"
	"github.com/taskhost/taskhost/handlers"
	"github.com/taskhost/taskhost/handlers/wasm/link"
)

// Attempt is one attempt in flight. The readers of the streams call its methods, each stream from one goroutine.
type Attempt struct {
	s     *Session
	id    uint64
	inv   *handlers.Invocation
	began time.Time

	output []byte         // work stream
	done   *pluginpb.Done // work stream
	logged int            // logs stream

	call      []byte // calls stream: what has come of the open call
	announced int    // calls stream: -1 = no call open
	ctx       context.Context
	cancel    context.CancelFunc
	answering sync.WaitGroup

	mu       sync.Mutex
	callOpen bool
	closed   bool // nothing of inv may be used any more

	outcome chan handlers.Outcome // capacity 1
}

// Outcome gives the end of the attempt, once: what the handler said, or what Session.Close was told about lost ones.
func (a *Attempt) Outcome() <-chan handlers.Outcome { return a.outcome }

// Ended reports whether the handler said how the attempt ended; only after Outcome.
func (a *Attempt) Ended() bool { return a.done != nil }

// Began is when the attempt was sent.
func (a *Attempt) Began() time.Time { return a.began }

// Invocation is what the attempt runs.
func (a *Attempt) Invocation() *handlers.Invocation { return a.inv }

// Stop asks the handler to stop soon.
func (a *Attempt) Stop(reason string) { a.s.work.Add(cancelItem{a.id, reason}) }

// AwaitLogs waits a moment for the log lines that the handler sent before it ended; only after Outcome, if Ended.
func (a *Attempt) AwaitLogs() { a.s.logs.wait(a.done.GetLogLines(), a.s.gone) }

// startItem sends an attempt's input in parts, the first one with Start.
type startItem struct {
	id    uint64
	start *pluginpb.Start
	begun bool
	parts link.Parts
}

func (s *startItem) Next() (*pluginpb.HostFrame, bool, bool) {
	part, last := s.parts.Next()
	f := &pluginpb.HostFrame{Id: s.id}
	if !s.begun {
		s.begun = true
		s.start.Body = part
		f.Kind = &pluginpb.HostFrame_Start{Start: s.start}
	} else {
		f.Kind = &pluginpb.HostFrame_Body{Body: part}
	}
	return f, !last, true
}

// cancelItem asks an attempt to stop.
type cancelItem struct {
	id     uint64
	reason string
}

func (c cancelItem) Next() (*pluginpb.HostFrame, bool, bool) {
	return &pluginpb.HostFrame{Id: c.id, Kind: &pluginpb.HostFrame_Cancel{Cancel: &pluginpb.Cancel{Reason: c.reason}}}, false, true
}

func (a *Attempt) addOutput(part []byte) error {
	switch {
	case a.done != nil:
		return violated("output of attempt %d after its end", a.id)
	case len(part) == 0:
		return violated("an empty part of the result of attempt %d", a.id)
	case len(a.output)+len(part) > a.inv.Limits.ResultBytes:
		return violated("a result of %d bytes or more of attempt %d, over its limit of %d bytes", len(a.output)+len(part), a.id, a.inv.Limits.ResultBytes)
	}
	a.output = append(a.output, part...)
	return nil
}

func (a *Attempt) progress(p *pluginpb.Progress) error {
	if a.done != nil || p.GetDone() < 0 || p.GetTotal() < 0 || len(p.GetMessage()) > pluginpb.MaxLogMessage {
		return violated("progress %d of %d of attempt %d with %d bytes of text", p.GetDone(), p.GetTotal(), a.id, len(p.GetMessage()))
	}
	a.report(func(e handlers.Events) { e.Progress(p.GetDone(), p.GetTotal(), p.GetMessage()) })
	return nil
}

// outcomes are the ends the far side may report.
var outcomes = map[pluginpb.Outcome]handlers.OutcomeKind{
	pluginpb.Outcome_OUTCOME_SUCCEEDED:   handlers.OutcomeSucceeded,
	pluginpb.Outcome_OUTCOME_RETRY:       handlers.OutcomeRetry,
	pluginpb.Outcome_OUTCOME_PERMANENT:   handlers.OutcomePermanent,
	pluginpb.Outcome_OUTCOME_DEFER:       handlers.OutcomeDefer,
	pluginpb.Outcome_OUTCOME_INTERRUPTED: handlers.OutcomeInterrupted,
	pluginpb.Outcome_OUTCOME_UNAVAILABLE: handlers.OutcomeUnavailable,
}

// maxKind bounds the name of a kind of failure, in bytes.
const maxKind = 64

func (a *Attempt) finish(d *pluginpb.Done) error {
	if a.done != nil {
		return violated("attempt %d ended twice", a.id)
	}
	if len(d.GetOutput()) > 0 {
		if err := a.addOutput(d.GetOutput()); err != nil {
			return err
		}
	}
	kind, known := outcomes[d.GetOutcome()]
	switch {
	case int(d.GetOutputBytes()) != len(a.output):
		return violated("attempt %d has a result of %d bytes, %d were announced", a.id, len(a.output), d.GetOutputBytes())
	case !known:
		return violated("attempt %d ended with outcome %d", a.id, d.GetOutcome())
	case (kind == handlers.OutcomeSucceeded) != (d.GetErrorKind() == ""), len(d.GetErrorKind()) > maxKind, len(d.GetErrorMessage()) > pluginpb.MaxErrorMessage:
		return violated("attempt %d ended as %s with error kind %.80q and %d bytes of text", a.id, kind, d.GetErrorKind(), len(d.GetErrorMessage()))
	}
	a.done = d
	out := handlers.Outcome{
		Kind:       kind,
		RetryAfter: -1,
		Duration:   min(time.Duration(min(d.GetDurationNano(), math.MaxInt64)), time.Since(a.began)),
		PeakMemory: min(int64(min(d.GetPeakMemoryBytes(), math.MaxInt64)), a.inv.Limits.MemoryBytes),
		Fuel:       int64(min(d.GetFuel(), math.MaxInt64)),
	}
	if ms := d.GetRetryAfterMs(); ms >= 0 {
		out.RetryAfter = time.Duration(min(ms, math.MaxInt64/int64(time.Millisecond))) * time.Millisecond
	}
	if kind == handlers.OutcomeSucceeded {
		out.Result = a.output
	} else {
		out.Error = &handlers.Error{Kind: d.GetErrorKind(), Message: d.GetErrorMessage()}
	}
	a.s.mu.Lock()
	a.s.landed++
	a.s.mu.Unlock()
	a.outcome <- out
	return nil
}

// logSlack is what may be sent beyond the log limit: the line that says that the log was truncated.
const (
	logSlack    = 256
	minLineCost = 16
)

func (a *Attempt) log(line *pluginpb.LogLine) error {
	a.logged += max(len(line.GetMessage()), minLineCost)
	switch {
	case line.GetLevel() > abi.LevelError, len(line.GetMessage()) > pluginpb.MaxLogMessage:
		return violated("a log line of attempt %d of level %d with %d bytes", a.id, line.GetLevel(), len(line.GetMessage()))
	case a.logged > a.inv.Limits.LogBytes+logSlack:
		return violated("a log of %d bytes or more of attempt %d, over its limit of %d bytes", a.logged, a.id, a.inv.Limits.LogBytes)
	}
	at, now := time.Unix(0, line.GetAtUnixNano()), time.Now()
	if at.Before(a.began) || at.After(now) {
		at = now
	}
	a.report(func(e handlers.Events) { e.Log(at, abi.LevelName(int32(line.GetLevel())), line.GetMessage()) })
	return nil
}

func (a *Attempt) beginCheckpoint(size int, data []byte) error {
	a.mu.Lock()
	open := a.callOpen
	a.callOpen = true
	a.mu.Unlock()
	switch {
	case open:
		return violated("attempt %d calls while it waits for an answer", a.id)
	case size > a.inv.Limits.CheckpointBytes:
		return violated("a checkpoint of %d bytes of attempt %d, over its limit of %d bytes", size, a.id, a.inv.Limits.CheckpointBytes)
	}
	a.announced, a.call = size, make([]byte, 0, min(size, pluginpb.MaxMessage))
	return a.addCheckpoint(data)
}

func (a *Attempt) addCheckpoint(data []byte) error {
	switch {
	case a.announced < 0 || len(a.call)+len(data) > a.announced:
		return violated("%d bytes of a call of attempt %d that were not announced", len(data), a.id)
	case len(data) == 0 && a.announced > 0:
		return violated("an empty part of a call of attempt %d", a.id)
	}
	a.call = append(a.call, data...)
	if len(a.call) < a.announced {
		return nil
	}
	checkpoint := a.call
	a.announced, a.call = -1, nil
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.closed {
		return nil
	}
	// Making it durable takes time; the stream must go on. There is one at a time for each attempt.
	a.answering.Go(func() {
		errno := checkpointErrno(a.inv.Events.Checkpoint(a.ctx, checkpoint))
		a.mu.Lock()
		a.callOpen = false
		a.mu.Unlock()
		a.s.calls.Add(replyItem{a.id, errno})
	})
	return nil
}

func checkpointErrno(err error) abi.Errno {
	switch {
	case err == nil:
		return 0
	case errors.Is(err, context.Canceled), errors.Is(err, handlers.ErrCancelled), errors.Is(err, handlers.ErrLeaseLost):
		return abi.ErrCancelled
	}
	return abi.ErrUnavailable
}

type replyItem struct {
	id    uint64
	errno abi.Errno
}

func (i replyItem) Next() (*pluginpb.Reply, bool, bool) {
	return &pluginpb.Reply{Id: i.id, Errno: int32(i.errno)}, false, true
}

// Close ends what the attempt still does on this side. After it, nothing of the invocation is used.
func (a *Attempt) Close() {
	a.s.mu.Lock()
	delete(a.s.attempts, a.id)
	a.s.mu.Unlock()
	a.mu.Lock()
	a.closed = true
	a.mu.Unlock()
	a.cancel()
	a.answering.Wait()
}

// report passes a report on, unless the invocation is over.
func (a *Attempt) report(to func(handlers.Events)) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if !a.closed {
		to(a.inv.Events)
	}
}

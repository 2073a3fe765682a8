package pool

import (
	"context"
	"errors"
	"math"
	"sync"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/taskhost/taskhost/abi"
	"github.com/taskhost/taskhost/abi/pluginpb"
	"github.com/taskhost/taskhost/handlers"
	"github.com/taskhost/taskhost/handlers/wasm/link"
)

// flight is one attempt in a runner. The readers of the runner's streams call its methods, each stream from one goroutine.
type flight struct {
	r     *runner
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

// begin sends an attempt to the runner. It fails when the runner is on its way out.
func (r *runner) begin(ctx context.Context, inv *handlers.Invocation, artifact Artifact) (*flight, error) {
	meta, err := proto.Marshal(&pluginpb.Metadata{
		JobId: inv.JobID, Tenant: inv.Tenant, Queue: inv.Queue, Type: inv.Type,
		Attempt: uint32(inv.Attempt), MaxAttempts: uint32(inv.MaxAttempts), Headers: inv.Headers, Config: inv.Version.Config,
	})
	if err != nil {
		return nil, err
	}
	f := &flight{r: r, inv: inv, began: time.Now(), announced: -1, outcome: make(chan handlers.Outcome, 1)}
	f.ctx, f.cancel = context.WithCancel(ctx)
	start := &pluginpb.Start{
		Version: &pluginpb.Version{Sha256: inv.Version.SHA256, Kind: string(artifact.Kind), Artifact: artifact.Dir},
		Limits: &pluginpb.Limits{MemoryBytes: uint64(inv.Limits.MemoryBytes), ResultBytes: uint32(inv.Limits.ResultBytes),
			LogBytes: uint32(inv.Limits.LogBytes), CheckpointBytes: uint32(inv.Limits.CheckpointBytes), Fuel: uint64(max(inv.Limits.Fuel, 0))},
		DeadlineUnixNano: inv.Deadline.UnixNano(),
		MetadataBytes:    uint32(len(meta)), PayloadBytes: uint32(len(inv.Payload)), CheckpointBytes: uint32(len(inv.Checkpoint)),
		HasCheckpoint: inv.Checkpoint != nil,
	}
	r.mu.Lock()
	if r.ended {
		r.mu.Unlock()
		f.cancel()
		return nil, errRunnerEnded
	}
	r.lastID++
	f.id = r.lastID
	r.flights[f.id] = f
	r.mu.Unlock()
	r.work.Add(&startItem{id: f.id, start: start, parts: link.NewParts(meta, inv.Payload, inv.Checkpoint)})
	return f, nil
}

var errRunnerEnded = errors.New("the runner has ended")

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

func (f *flight) addOutput(part []byte) error {
	switch {
	case f.done != nil:
		return violated("output of attempt %d after its end", f.id)
	case len(part) == 0:
		return violated("an empty part of the result of attempt %d", f.id)
	case len(f.output)+len(part) > f.inv.Limits.ResultBytes:
		return violated("a result of %d bytes or more of attempt %d, over its limit of %d bytes", len(f.output)+len(part), f.id, f.inv.Limits.ResultBytes)
	}
	f.output = append(f.output, part...)
	return nil
}

func (f *flight) progress(p *pluginpb.Progress) error {
	if f.done != nil || p.GetDone() < 0 || p.GetTotal() < 0 || len(p.GetMessage()) > pluginpb.MaxLogMessage {
		return violated("progress %d of %d of attempt %d with %d bytes of text", p.GetDone(), p.GetTotal(), f.id, len(p.GetMessage()))
	}
	f.report(func(e handlers.Events) { e.Progress(p.GetDone(), p.GetTotal(), p.GetMessage()) })
	return nil
}

// outcomes are the ends a runner may report.
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

func (f *flight) finish(d *pluginpb.Done) error {
	if f.done != nil {
		return violated("attempt %d ended twice", f.id)
	}
	if len(d.GetOutput()) > 0 {
		if err := f.addOutput(d.GetOutput()); err != nil {
			return err
		}
	}
	kind, known := outcomes[d.GetOutcome()]
	switch {
	case int(d.GetOutputBytes()) != len(f.output):
		return violated("attempt %d has a result of %d bytes, %d were announced", f.id, len(f.output), d.GetOutputBytes())
	case !known:
		return violated("attempt %d ended with outcome %d", f.id, d.GetOutcome())
	case (kind == handlers.OutcomeSucceeded) != (d.GetErrorKind() == ""), len(d.GetErrorKind()) > maxKind, len(d.GetErrorMessage()) > pluginpb.MaxErrorMessage:
		return violated("attempt %d ended as %s with error kind %.80q and %d bytes of text", f.id, kind, d.GetErrorKind(), len(d.GetErrorMessage()))
	}
	f.done = d
	out := handlers.Outcome{
		Kind:       kind,
		RetryAfter: -1,
		Duration:   min(time.Duration(min(d.GetDurationNano(), math.MaxInt64)), time.Since(f.began)),
		PeakMemory: min(int64(min(d.GetPeakMemoryBytes(), math.MaxInt64)), f.inv.Limits.MemoryBytes),
		Fuel:       int64(min(d.GetFuel(), math.MaxInt64)),
	}
	if ms := d.GetRetryAfterMs(); ms >= 0 {
		out.RetryAfter = time.Duration(min(ms, math.MaxInt64/int64(time.Millisecond))) * time.Millisecond
	}
	if kind == handlers.OutcomeSucceeded {
		out.Result = f.output
	} else {
		out.Error = &handlers.Error{Kind: d.GetErrorKind(), Message: d.GetErrorMessage()}
	}
	f.r.mu.Lock()
	f.r.landed++
	f.r.mu.Unlock()
	f.outcome <- out
	return nil
}

// logSlack is what a runner may send beyond the log limit: the line that says that the log was truncated.
const (
	logSlack    = 256
	minLineCost = 16
)

func (f *flight) log(line *pluginpb.LogLine) error {
	f.logged += max(len(line.GetMessage()), minLineCost)
	switch {
	case line.GetLevel() > abi.LevelError, len(line.GetMessage()) > pluginpb.MaxLogMessage:
		return violated("a log line of attempt %d of level %d with %d bytes", f.id, line.GetLevel(), len(line.GetMessage()))
	case f.logged > f.inv.Limits.LogBytes+logSlack:
		return violated("a log of %d bytes or more of attempt %d, over its limit of %d bytes", f.logged, f.id, f.inv.Limits.LogBytes)
	}
	at, now := time.Unix(0, line.GetAtUnixNano()), time.Now()
	if at.Before(f.began) || at.After(now) {
		at = now
	}
	f.report(func(e handlers.Events) { e.Log(at, abi.LevelName(int32(line.GetLevel())), line.GetMessage()) })
	return nil
}

func (f *flight) beginCheckpoint(size int, data []byte) error {
	f.mu.Lock()
	open := f.callOpen
	f.callOpen = true
	f.mu.Unlock()
	switch {
	case open:
		return violated("attempt %d calls while it waits for an answer", f.id)
	case size > f.inv.Limits.CheckpointBytes:
		return violated("a checkpoint of %d bytes of attempt %d, over its limit of %d bytes", size, f.id, f.inv.Limits.CheckpointBytes)
	}
	f.announced, f.call = size, make([]byte, 0, min(size, pluginpb.MaxMessage))
	return f.addCheckpoint(data)
}

func (f *flight) addCheckpoint(data []byte) error {
	switch {
	case f.announced < 0 || len(f.call)+len(data) > f.announced:
		return violated("%d bytes of a call of attempt %d that were not announced", len(data), f.id)
	case len(data) == 0 && f.announced > 0:
		return violated("an empty part of a call of attempt %d", f.id)
	}
	f.call = append(f.call, data...)
	if len(f.call) < f.announced {
		return nil
	}
	checkpoint := f.call
	f.announced, f.call = -1, nil
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.closed {
		return nil
	}
	// Making it durable takes time; the stream must go on. There is one at a time for each attempt.
	f.answering.Go(func() {
		errno := checkpointErrno(f.inv.Events.Checkpoint(f.ctx, checkpoint))
		f.mu.Lock()
		f.callOpen = false
		f.mu.Unlock()
		f.r.calls.Add(replyItem{f.id, errno})
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

// close ends what the attempt still does on this side. After it, nothing of the invocation is used.
func (f *flight) close() {
	f.r.mu.Lock()
	delete(f.r.flights, f.id)
	f.r.mu.Unlock()
	f.mu.Lock()
	f.closed = true
	f.mu.Unlock()
	f.cancel()
	f.answering.Wait()
}

// report passes a report on, unless the invocation is over.
func (f *flight) report(to func(handlers.Events)) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if !f.closed {
		to(f.inv.Events)
	}
}

// lost gives the attempt its outcome when its runner is gone.
func (f *flight) lost(why fate, err error) {
	if f.done != nil {
		return
	}
	out := handlers.Outcome{RetryAfter: -1, Duration: time.Since(f.began)}
	switch why {
	case fateKilled:
		out.Kind, out.Error = handlers.OutcomeInterrupted, &handlers.Error{Kind: abi.KindInterrupted, Message: "its runner was killed: " + err.Error()}
	case fateStopped:
		out.Kind, out.Error = handlers.OutcomeInterrupted, &handlers.Error{Kind: abi.KindInterrupted, Message: err.Error()}
	default:
		out.Kind, out.Error = handlers.OutcomeCrashed, &handlers.Error{Kind: abi.KindCrash, Message: err.Error()}
	}
	f.outcome <- out
}

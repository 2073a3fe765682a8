package runner

import (
	"context"
	"fmt"
	"math"
	"runtime/debug"
	"sync"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/taskhost/taskhost/abi"
	"github.com/taskhost/taskhost/abi/pluginpb"
	"github.com/taskhost/taskhost/handlers"
	"github.com/taskhost/taskhost/handlers/wasm/engine/attempt"
	"github.com/taskhost/taskhost/handlers/wasm/link"
)

// job is one attempt in this runner.
type job struct {
	r     *runner
	id    uint64
	start *pluginpb.Start
	total int
	body  []byte // metadata, payload and checkpoint; complete when it has total bytes

	mu        sync.Mutex
	state     *attempt.State // set when it runs
	cancelled *string        // the reason, if the host cancelled it before that
	progress  *pluginpb.Progress
	queued    bool // a progressItem is in the outbox

	replies  chan abi.Errno // of the open call
	callOpen bool           // used by the worker only
}

var _ attempt.Reports = (*job)(nil)

func newJob(r *runner, id uint64, start *pluginpb.Start) *job {
	j := &job{r: r, id: id, start: start, replies: make(chan abi.Errno, 1)}
	j.total = int(start.GetMetadataBytes()) + int(start.GetPayloadBytes()) + int(start.GetCheckpointBytes())
	if j.body = start.GetBody(); len(j.body) < j.total {
		j.body = append(make([]byte, 0, j.total), j.body...)
	}
	return j
}

func (j *job) missing() int { return j.total - len(j.body) }

func (j *job) cancel(reason string) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.state != nil {
		j.state.Stop(reason)
	} else if j.cancelled == nil {
		j.cancelled = &reason
	}
}

// run runs a job on the calling worker and sends its end.
func (r *runner) run(ctx context.Context, j *job) {
	began := time.Now()
	out := r.attempt(ctx, j)
	if out.Duration == 0 {
		out.Duration = time.Since(began)
	}
	r.finish(j, newDone(j, out, r.logs.sequence()))
}

func (r *runner) attempt(ctx context.Context, j *job) handlers.Outcome {
	in, err := j.input()
	if err != nil {
		return unavailable(err)
	}
	version := j.start.GetVersion()
	module, done, err := r.modules.use(ctx, version.GetArtifact(), handlers.Kind(version.GetKind()))
	if err != nil {
		return unavailable(err)
	}
	state := attempt.New(in, j)
	if reason, cancelled := j.begin(state); cancelled {
		return finished(done, handlers.Outcome{Kind: handlers.OutcomeInterrupted, Error: &handlers.Error{Kind: abi.KindInterrupted, Message: reason}})
	}
	out := module.Run(ctx, state)
	if mayHaveBeenDeep(&out) {
		r.freeSoon()
	}
	return finished(done, out)
}

// mayHaveBeenDeep reports whether a guest may have ended in the middle of a deep recursion: its stack overflowed, or the host ended it wherever
// it was.
func mayHaveBeenDeep(out *handlers.Outcome) bool {
	if out.Error == nil {
		return false
	}
	switch out.Error.Kind {
	case abi.KindStackOverflow, abi.KindDeadline, abi.KindOutOfFuel, abi.KindInterrupted:
		return true
	}
	return false
}

// freeSoon gives memory back to the system, once for all that ended so within a while: a guest's stack is Go memory, up to 130 MB of it, the next
// collection may be far away, and each is felt by the others in this runner.
func (r *runner) freeSoon() {
	if r.freeing.CompareAndSwap(false, true) {
		time.AfterFunc(freeAfter, func() {
			r.freeing.Store(false)
			debug.FreeOSMemory()
		})
	}
}

const freeAfter = time.Second

func finished(done func() error, out handlers.Outcome) handlers.Outcome {
	if err := done(); err != nil {
		return unavailable(err)
	}
	return out
}

func unavailable(err error) handlers.Outcome {
	return handlers.Outcome{Kind: handlers.OutcomeUnavailable, Error: &handlers.Error{Kind: abi.KindUnavailable, Message: err.Error()}}
}

// begin makes the state reachable for cancel; true if that has come before.
func (j *job) begin(state *attempt.State) (string, bool) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.state = state
	if j.cancelled != nil {
		return *j.cancelled, true
	}
	return "", false
}

func (j *job) input() (attempt.Input, error) {
	limits := j.start.GetLimits()
	if limits.GetMemoryBytes() > uint64(j.r.config.MemoryPerSlot) {
		return attempt.Input{}, fmt.Errorf("memory limit of %d bytes: this runner has %d bytes for each of its slots", limits.GetMemoryBytes(), j.r.config.MemoryPerSlot)
	}
	n, p := int(j.start.GetMetadataBytes()), int(j.start.GetPayloadBytes())
	meta := &pluginpb.Metadata{}
	if err := proto.Unmarshal(j.body[:n], meta); err != nil {
		return attempt.Input{}, fmt.Errorf("metadata: %w", err)
	}
	in := attempt.Input{
		JobID: meta.GetJobId(), Tenant: meta.GetTenant(), Queue: meta.GetQueue(), Type: meta.GetType(),
		Attempt: int(meta.GetAttempt()), MaxAttempts: int(meta.GetMaxAttempts()),
		Headers: meta.GetHeaders(), Config: meta.GetConfig(),
		Payload:  j.body[n : n+p : n+p],
		Deadline: time.Unix(0, j.start.GetDeadlineUnixNano()),
		Limits: attempt.Limits{Memory: int64(limits.GetMemoryBytes()), Result: int(limits.GetResultBytes()),
			Log: int(limits.GetLogBytes()), Checkpoint: int(limits.GetCheckpointBytes()), Fuel: int64(min(limits.GetFuel(), math.MaxInt64))},
	}
	if j.start.GetHasCheckpoint() {
		in.Checkpoint = j.body[n+p:]
	}
	return in, nil
}

// Log sends a line, without waiting.
func (j *job) Log(level int32, message string) {
	j.r.logs.add(&pluginpb.LogLine{Id: j.id, AtUnixNano: time.Now().UnixNano(), Level: uint32(level), Message: message})
}

// Progress sends a report. While one waits to be sent, it is replaced: only the latest is of interest.
func (j *job) Progress(done, total int64, message string) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.progress = &pluginpb.Progress{Done: done, Total: total, Message: message}
	if !j.queued {
		j.queued = true
		j.r.work.Add(progressItem{j})
	}
}

// progressItem sends the latest report of a job.
type progressItem struct{ j *job }

func (p progressItem) Next() (*pluginpb.HandlerFrame, bool, bool) {
	p.j.mu.Lock()
	defer p.j.mu.Unlock()
	p.j.queued = false
	return &pluginpb.HandlerFrame{Id: p.j.id, Kind: &pluginpb.HandlerFrame_Progress{Progress: p.j.progress}}, false, true
}

// Checkpoint asks the host to make data durable and waits for its answer, not longer than the attempt may last. An answer that did not
// come in time leaves the call open: there can be no other one.
func (j *job) Checkpoint(data []byte) abi.Errno {
	if j.callOpen {
		return abi.ErrCancelled
	}
	j.callOpen = true
	j.r.calls.Add(&callItem{id: j.id, announced: len(data), parts: link.NewParts(data)})
	timer := time.NewTimer(time.Until(j.state.Deadline) + attempt.StopGrace)
	defer timer.Stop()
	stopping := j.state.Stopping()
	for {
		select {
		case errno := <-j.replies:
			j.callOpen = false
			return errno
		case <-timer.C:
			return abi.ErrCancelled
		case <-stopping:
			stopping = nil
			timer.Reset(attempt.StopGrace)
		}
	}
}

// reply hands over the host's answer; what nobody waits for is dropped.
func (j *job) reply(reply *pluginpb.Reply) {
	select {
	case j.replies <- abi.Errno(reply.GetErrno()):
	default:
	}
}

// callItem sends a checkpoint_put in parts.
type callItem struct {
	id        uint64
	announced int
	begun     bool
	parts     link.Parts
}

func (c *callItem) Next() (*pluginpb.Call, bool, bool) {
	part, last := c.parts.Next()
	call := &pluginpb.Call{Id: c.id, Kind: &pluginpb.Call_Data{Data: part}}
	if !c.begun {
		c.begun = true
		call.Kind = &pluginpb.Call_CheckpointPut{CheckpointPut: &pluginpb.CheckpointPut{Bytes: uint32(c.announced), Data: part}}
	}
	return call, !last, true
}

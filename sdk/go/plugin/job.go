package plugin

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	pb "github.com/taskhost/taskhost/sdk/go/plugin/internal/handlerpb"
)

// Job is the attempt at hand. Its methods may be called from several goroutines until the handler returns; after that they do nothing.
type Job struct {
	s        *server
	id       uint64
	meta     *pb.Metadata
	limits   *pb.Limits
	payload  []byte
	deadline time.Time
	ctx      context.Context // of the attempt

	mu            sync.Mutex
	checkpoint    []byte
	hasCheckpoint bool
	progress      *pb.Progress
	queued        bool // a report of progress waits to be sent
	logged        int  // bytes of log limit used
	truncated     bool
	over          bool // the handler has returned

	calling sync.Mutex // one call at a time
	replies chan Errno // of the open call; capacity 1
	lost    bool       // a reply did not come in time; there can be no further call
}

// Payload returns the job's payload, byte for byte as it was enqueued. Do not change it.
func (j *Job) Payload() []byte { return j.payload }

// Decode reads the payload as JSON into v. Its error is permanent: the same payload will not become JSON.
func (j *Job) Decode(v any) error {
	if len(j.payload) == 0 {
		return Permanent(errors.New("payload is empty, want JSON"))
	}
	if err := json.Unmarshal(j.payload, v); err != nil {
		return Permanent(fmt.Errorf("payload: %w", err))
	}
	return nil
}

// ID is the job's id. It is the same for all attempts: use it to guard effects outside taskhost.
func (j *Job) ID() string { return j.meta.GetJobId() }

// Tenant is the tenant the job belongs to.
func (j *Job) Tenant() string { return j.meta.GetTenant() }

// Queue is the queue the job was taken from.
func (j *Job) Queue() string { return j.meta.GetQueue() }

// Type is the task type.
func (j *Job) Type() string { return j.meta.GetType() }

// Attempt counts the attempts of this run of the job, from 1.
func (j *Job) Attempt() int { return int(j.meta.GetAttempt()) }

// MaxAttempts is how many attempts the job has.
func (j *Job) MaxAttempts() int { return int(j.meta.GetMaxAttempts()) }

// Header returns a header the producer set, and whether it did.
func (j *Job) Header(name string) (string, bool) {
	v, ok := j.meta.GetHeaders()[name]
	return v, ok
}

// Config returns a value of the plugin's "config" in the host's configuration, and whether there is one.
func (j *Job) Config(name string) (string, bool) {
	v, ok := j.meta.GetConfig()[name]
	return v, ok
}

// Deadline is when the attempt ends. The process is killed some time after it if the handler has not returned, and every other job in it
// is then interrupted.
func (j *Job) Deadline() time.Time { return j.deadline }

// ShouldStop reports whether the handler should return soon; the same as ctx.Err() != nil.
func (j *Job) ShouldStop() bool { return j.ctx.Err() != nil }

// Bounds of the protocol, in bytes. They are part of abi/pluginpb/handler.proto.
const (
	maxMessage      = 64 << 10
	maxPart         = 32 << 10
	maxErrorMessage = 8 << 10
	maxLogMessage   = 4 << 10
	minLineCost     = 16 // of the log limit, for each line
	window          = 4 << 20
)

// Progress reports how far the work is; the latest report is shown with the job. Total 0 means unknown; numbers below 0 are taken as 0,
// and messages beyond 4 KiB are cut.
func (j *Job) Progress(done, total int64, message string) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.over {
		return
	}
	j.progress = &pb.Progress{Done: max(done, 0), Total: max(total, 0), Message: cut(message, maxLogMessage)}
	if !j.queued { // else the waiting report is replaced: only the latest is of interest
		j.queued = true
		j.s.work.add(&progressItem{j: j})
	}
}

// SaveCheckpoint stores data durably: when it returns nil, the next attempt finds it in [Job.Checkpoint], also after a crash of the
// process or the host. It replaces the last one. The error wraps an [Errno]: ErrTooLarge, ErrCancelled when the lease was lost or the
// attempt is over, ErrUnavailable when the store did not answer.
func (j *Job) SaveCheckpoint(data []byte) error {
	if errno := j.put(data); errno != 0 {
		return fmt.Errorf("save checkpoint of %d bytes: %w", len(data), errno)
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	j.checkpoint, j.hasCheckpoint = append([]byte{}, data...), true
	return nil
}

// replyGrace is how long after the end of its attempt a call may still wait for its answer.
const replyGrace = 100 * time.Millisecond

func (j *Job) put(data []byte) Errno {
	if len(data) > int(j.limits.GetCheckpointBytes()) {
		return ErrTooLarge
	}
	j.calling.Lock()
	defer j.calling.Unlock()
	j.mu.Lock()
	over := j.over || j.lost
	j.mu.Unlock()
	if over {
		return ErrCancelled
	}
	j.s.calls.add(&callItem{id: j.id, announced: len(data), parts: parts{append([]byte(nil), data...)}})
	select {
	case errno := <-j.replies:
		return errno
	case <-j.ctx.Done():
	}
	timer := time.NewTimer(replyGrace)
	defer timer.Stop()
	select {
	case errno := <-j.replies:
		return errno
	case <-timer.C:
		j.mu.Lock()
		j.lost = true
		j.mu.Unlock()
		return ErrCancelled
	}
}

// Checkpoint returns what an earlier attempt, or this one, saved last; nil when there is none.
func (j *Job) Checkpoint() []byte {
	j.mu.Lock()
	defer j.mu.Unlock()
	if !j.hasCheckpoint {
		return nil
	}
	return append([]byte{}, j.checkpoint...)
}

// cut returns valid UTF-8 of at most n bytes.
func cut(s string, n int) string {
	s = strings.ToValidUTF8(s, "\uFFFD")
	if len(s) <= n {
		return s
	}
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n]
}

package guest

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"
)

// Job is the attempt at hand: what the producer sent, and the way back to the host. It is valid until the handler returns.
type Job struct {
	host      Host
	payload   []byte
	read      bool
	outputErr error
}

// Payload returns the job's payload, byte for byte as it was enqueued. It is read once and kept; do not change it. For a
// payload that need not be in memory as a whole, use [Job.Input].
func (j *Job) Payload() []byte {
	if !j.read {
		p := make([]byte, max(j.host.InputLen(), 0))
		n, _ := io.ReadFull(j.Input(), p) // memory of the host: the only end is the payload's
		j.payload, j.read = p[:n], true
	}
	return j.payload
}

// Decode reads the payload as JSON into v. Its error is permanent: the same payload will not become JSON.
func (j *Job) Decode(v any) error {
	p := j.Payload()
	if len(p) == 0 {
		return Permanent(errors.New("payload is empty, want JSON"))
	}
	if err := json.Unmarshal(p, v); err != nil {
		return Permanent(fmt.Errorf("payload: %w", err))
	}
	return nil
}

// Input reads the payload from its start. Every call returns a reader of its own.
func (j *Job) Input() io.Reader { return &input{host: j.host} }

type input struct {
	host Host
	off  int64
}

func (r *input) Read(p []byte) (int, error) {
	if len(p) == 0 {
		return 0, nil
	}
	n := r.host.InputRead(r.off, p)
	if n < 0 {
		return 0, Errno(n)
	}
	if n == 0 {
		return 0, io.EOF
	}
	r.off += n
	return int(n), nil
}

// Output writes the job's result piece by piece. Going over the result limit fails the job for good.
func (j *Job) Output() io.Writer { return output{j} }

type output struct{ job *Job }

func (w output) Write(p []byte) (int, error) {
	if len(p) == 0 {
		return 0, nil
	}
	if n := w.job.host.OutputWrite(p); n < 0 {
		w.job.outputErr = Permanent(fmt.Errorf("write %d bytes of result: %w", len(p), Errno(n)))
		return 0, w.job.outputErr
	}
	return len(p), nil
}

// ID is the job's id. It is the same for all attempts: use it to guard effects outside taskhost.
func (j *Job) ID() string { return j.meta("job_id") }

// Tenant is the tenant the job belongs to.
func (j *Job) Tenant() string { return j.meta("tenant") }

// Queue is the queue the job was taken from.
func (j *Job) Queue() string { return j.meta("queue") }

// Type is the task type. A module pushed for several types tells them apart by it.
func (j *Job) Type() string { return j.meta("type") }

// Attempt counts the attempts of this run of the job, from 1.
func (j *Job) Attempt() int { return j.number("attempt") }

// MaxAttempts is how many attempts the job has.
func (j *Job) MaxAttempts() int { return j.number("max_attempts") }

// Header returns a header the producer set, and whether it did.
func (j *Job) Header(name string) (string, bool) {
	v, err := j.text(j.host.MetaGet, "header."+name)
	return v, err == nil
}

// Config returns a configuration value granted to the handler, and whether there is one.
func (j *Job) Config(name string) (string, bool) {
	v, err := j.text(j.host.ConfigGet, name)
	return v, err == nil
}

func (j *Job) meta(key string) string {
	v, _ := j.text(j.host.MetaGet, key) // the keys asked for are part of the contract
	return v
}

func (j *Job) number(key string) int {
	n, _ := strconv.Atoi(j.meta(key))
	return n
}

func (j *Job) text(get func(string, []byte) int64, key string) (string, error) {
	b, err := readAll(128, func(buf []byte) int64 { return get(key, buf) })
	return string(b), err
}

// Deadline is when the attempt ends; it is killed 250 ms later. Zero when there is none.
func (j *Job) Deadline() time.Time {
	ms := j.host.DeadlineMS()
	if ms <= 0 {
		return time.Time{}
	}
	return time.UnixMilli(ms)
}

// ShouldStop asks the host whether the handler should return soon: the job was cancelled, its lease lost, its deadline
// passed or its host is going away.
func (j *Job) ShouldStop() bool { return j.host.ShouldStop() != 0 }

// Progress reports how far the work is; the latest report is shown with the job. Total 0 means unknown. Numbers below 0 and
// messages over the host's limit are refused by the host and the report is lost.
func (j *Job) Progress(done, total int64, message string) {
	j.host.Progress(done, total, strings.ToValidUTF8(message, "\uFFFD"))
}

// SaveCheckpoint stores data durably: when it returns nil, the next attempt finds it in [Job.Checkpoint], also after a crash
// of the host. It replaces the last one. The error is an [Errno]: ErrTooLarge, ErrCancelled when the lease was lost,
// ErrUnavailable when the store did not answer.
func (j *Job) SaveCheckpoint(data []byte) error {
	if n := j.host.CheckpointPut(data); n < 0 {
		return fmt.Errorf("save checkpoint of %d bytes: %w", len(data), Errno(n))
	}
	return nil
}

// Checkpoint returns what an earlier attempt, or this one, saved last. Without one it returns nil and no error.
func (j *Job) Checkpoint() ([]byte, error) {
	b, err := readAll(1024, j.host.CheckpointGet)
	if errors.Is(err, ErrNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read checkpoint: %w", err)
	}
	return b, nil
}

// HostHas reports whether the host offers a function of the contract by its name there, for handlers that can do without.
func (j *Job) HostHas(function string) bool { return j.host.HostHas(function) == 1 }

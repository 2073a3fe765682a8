package guesttest

import (
	"maps"
	"strconv"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/taskhost/taskhost/sdk/go/guest"
)

// Job is what the host gives to a handler. The zero value is a job with an empty payload on its first of one attempts.
type Job struct {
	Payload     []byte
	ID          string            // default "job_test"
	Tenant      string            // default "default"
	Queue       string            // default "default"
	Type        string            // default "test"
	Attempt     int               // default 1
	MaxAttempts int               // default the larger of Attempt and 1
	Headers     map[string]string // set by the producer
	Config      map[string]string // granted to the handler
	Checkpoint  []byte            // of an earlier attempt; nil = none
	Deadline    time.Time         // default a minute from now

	// Stop makes the host ask the handler to stop; it is called at every question. Nil = never.
	Stop func() bool

	// Limits in bytes; 0 = the product's default: 1 MiB of result and checkpoint, 256 KiB of log.
	ResultLimit, CheckpointLimit, LogLimit int
}

// Outcome is how the attempt ended.
type Outcome string

// The outcomes.
const (
	Done      Outcome = "done"
	Retry     Outcome = "retry"
	Permanent Outcome = "permanent"
	Deferred  Outcome = "defer"
)

// Result is what an attempt left with the host.
type Result struct {
	Outcome    Outcome
	Output     []byte        // the job's result if Done
	Message    string        // of the failure
	RetryAfter time.Duration // of Retry and Deferred; guest.ByPolicy = by policy
	Log        []LogLine
	Progress   Progress // the latest report
	Checkpoint []byte   // the latest; nil = none
}

// LogLine is a line of the job's log.
type LogLine struct {
	Level   guest.Level
	Message string
}

// Progress is a progress report.
type Progress struct {
	Done, Total int64
	Message     string
}

// Run runs one attempt of h.
func Run(h guest.Handler, job Job) Result {
	host := NewHost(job)
	return host.Result(guest.Serve(host, h))
}

// Host is an in-memory host for one attempt. It implements guest.Host and can be used from several goroutines.
type Host struct {
	job  Job
	meta map[string]string

	mu          sync.Mutex
	output      []byte
	overLimit   bool
	after       int64
	message     string
	log         []LogLine
	logBytes    int
	logOverflow bool
	progress    Progress
	checkpoint  []byte
}

// NewHost makes a host that holds job.
func NewHost(job Job) *Host {
	setDefault := func(s *string, v string) {
		if *s == "" {
			*s = v
		}
	}
	setDefault(&job.ID, "job_test")
	setDefault(&job.Tenant, "default")
	setDefault(&job.Queue, "default")
	setDefault(&job.Type, "test")
	job.Attempt = max(job.Attempt, 1)
	job.MaxAttempts = max(job.MaxAttempts, job.Attempt)
	if job.Deadline.IsZero() {
		job.Deadline = time.Now().Add(time.Minute)
	}
	for limit, bytes := range map[*int]int{&job.ResultLimit: 1 << 20, &job.CheckpointLimit: 1 << 20, &job.LogLimit: 256 << 10} {
		if *limit == 0 {
			*limit = bytes
		}
	}
	meta := map[string]string{
		"job_id": job.ID, "tenant": job.Tenant, "queue": job.Queue, "type": job.Type,
		"attempt": strconv.Itoa(job.Attempt), "max_attempts": strconv.Itoa(job.MaxAttempts),
	}
	for name, value := range job.Headers {
		meta["header."+name] = value
	}
	job.Config = maps.Clone(job.Config)
	return &Host{job: job, meta: meta, checkpoint: job.Checkpoint, after: -1}
}

var _ guest.Host = (*Host)(nil)

// Result is what the attempt left, given the code taskhost_handle returned.
func (h *Host) Result(code int32) Result {
	h.mu.Lock()
	defer h.mu.Unlock()
	r := Result{Log: h.log, Progress: h.progress, Checkpoint: h.checkpoint, RetryAfter: guest.ByPolicy, Message: h.message}
	switch {
	case h.overLimit:
		r.Outcome = Permanent
		r.Message = "result over the limit of " + strconv.Itoa(h.job.ResultLimit) + " bytes"
	case code == 0:
		r.Outcome, r.Output, r.Message = Done, h.output, ""
	case code == 1:
		r.Outcome = Retry
	case code == 2:
		r.Outcome = Permanent
	case code == 3:
		r.Outcome = Deferred
	default:
		r.Outcome, r.Message = Permanent, "taskhost_handle returned "+strconv.Itoa(int(code))
	}
	if h.after >= 0 && (r.Outcome == Retry || r.Outcome == Deferred) {
		r.RetryAfter = time.Duration(h.after) * time.Millisecond
	}
	return r
}

// The rest is guest.Host; see the contract.

func (h *Host) InputLen() int64 { return int64(len(h.job.Payload)) }

func (h *Host) InputRead(off int64, buf []byte) int64 {
	if off < 0 {
		return int64(guest.ErrInvalid)
	}
	if off >= int64(len(h.job.Payload)) {
		return 0
	}
	return int64(copy(buf, h.job.Payload[off:]))
}

func (h *Host) OutputWrite(p []byte) int64 {
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(h.output)+len(p) > h.job.ResultLimit {
		h.overLimit = true
		return int64(guest.ErrTooLarge)
	}
	h.output = append(h.output, p...)
	return int64(len(h.output))
}

func (h *Host) Fail(kind int32, retryAfterMS int64, message string) int32 {
	if kind < 1 || kind > 3 || !utf8.ValidString(message) {
		return int32(guest.ErrInvalid)
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.after, h.message = retryAfterMS, message
	return 0
}

func (h *Host) Log(level int32, message string) int32 {
	if !utf8.ValidString(message) {
		return int32(guest.ErrInvalid)
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.logBytes += len(message)
	switch {
	case h.logBytes <= h.job.LogLimit:
		h.log = append(h.log, LogLine{guest.Level(level), message})
	case !h.logOverflow:
		h.logOverflow = true
		h.log = append(h.log, LogLine{guest.LevelWarn, "log truncated at " + strconv.Itoa(h.job.LogLimit) + " bytes"})
	}
	return 0
}

func (h *Host) Progress(done, total int64, message string) int32 {
	if !utf8.ValidString(message) {
		return int32(guest.ErrInvalid)
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.progress = Progress{done, total, message}
	return 0
}

func (h *Host) CheckpointPut(p []byte) int32 {
	if len(p) > h.job.CheckpointLimit {
		return int32(guest.ErrTooLarge)
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.checkpoint = append([]byte{}, p...)
	return 0
}

func (h *Host) CheckpointGet(buf []byte) int64 {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.checkpoint == nil {
		return int64(guest.ErrNotFound)
	}
	copy(buf, h.checkpoint)
	return int64(len(h.checkpoint))
}

func (h *Host) MetaGet(key string, buf []byte) int64   { return get(h.meta, key, buf) }
func (h *Host) ConfigGet(key string, buf []byte) int64 { return get(h.job.Config, key, buf) }

func get(values map[string]string, key string, buf []byte) int64 {
	if !utf8.ValidString(key) {
		return int64(guest.ErrInvalid)
	}
	v, ok := values[key]
	if !ok {
		return int64(guest.ErrNotFound)
	}
	copy(buf, v)
	return int64(len(v))
}

func (h *Host) ShouldStop() int32 {
	if time.Now().UnixMilli() >= h.DeadlineMS() || (h.job.Stop != nil && h.job.Stop()) {
		return 1
	}
	return 0
}

func (h *Host) DeadlineMS() int64 { return h.job.Deadline.UnixMilli() }

func (h *Host) HostHas(name string) int32 {
	if !utf8.ValidString(name) {
		return int32(guest.ErrInvalid)
	}
	if strings.Contains(offered, " "+name+" ") && !strings.Contains(name, " ") && name != "" {
		return 1
	}
	return 0
}

const offered = " input_len input_read output_write fail log progress checkpoint_put checkpoint_get meta_get config_get" +
	" should_stop deadline_ms host_has "

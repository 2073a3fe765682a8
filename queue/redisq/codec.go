package redisq

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"math/bits"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/taskhost/taskhost/queue"
)

// inlineMax is the largest payload in bytes that is kept in a job's record; a larger one has a key of its own, and is not
// carried through scripts.
const inlineMax = 4 << 10

// A record is what lua/lib/record.lua describes: five characters of priority (written by the script), six of the head's length,
// the head, and the rest. The rest is ours: a version byte, then strings and numbers with their lengths as uvarints:
//
//	flags (1 = PayloadJSON) · type · headers · labels · timeout · backoff base, max, jitter · unique until, on conflict ·
//	retried from · payload (when it is inline)
const recordVersion = 1

// bandBytes is the length of the priority that a record begins with, and headBytes that with the length of the head.
const (
	bandBytes = 5
	headBytes = bandBytes + 6
)

// encodeRecord writes the record of a spec, without its priority.
func encodeRecord(s *queue.JobSpec) []byte { return encodeBanded(s)[bandBytes:] }

// encodeBanded writes the record of a spec; where the spec leaves the priority to its queue, it is 0.
func encodeBanded(s *queue.JobSpec) []byte {
	inline := s.Payload
	if len(inline) > inlineMax {
		inline = nil
	}
	var space [128]byte
	rest := appendRest(space[:0], s)
	b := make([]byte, headBytes, 64+len(s.Tenant)+len(s.Queue)+len(s.IdempotencyKey)+len(s.Unique.Key)+len(rest)+len(inline))
	band := 0
	if s.Priority != nil {
		band = *s.Priority
	}
	putBand(b, band)
	p := newPacker(b)
	p.str("t", s.Tenant)
	p.str("q", s.Queue)
	p.int("m", int64(s.MaxAttempts))
	p.int("z", int64(len(s.Payload)))
	if len(s.Payload) > inlineMax {
		p.int("B", 1)
	}
	p.str("i", s.IdempotencyKey)
	p.str("u", s.Unique.Key)
	p.str("k", s.ConcurrencyKey)
	if s.Unique.Key != "" && s.Unique.Until == queue.UniqueUntilStarted {
		p.int("us", 1)
	}
	if s.Unique.Until == queue.UniqueUntilWindow {
		p.int("us", 2)
	}
	if s.ExpiresIn > 0 {
		p.int("x", ceilMillis(s.ExpiresIn))
	}
	p.int("l", int64(len(rest)+len(inline)))
	b = p.end()
	for i, n := headBytes-1, len(b)-headBytes; i >= bandBytes; i, n = i-1, n>>4 {
		b[i] = "0123456789abcdef"[n&15]
	}
	return append(append(b, rest...), inline...)
}

// putBand writes a priority as '%+05d' does.
func putBand(b []byte, p int) {
	b[0] = '+'
	if p < 0 {
		b[0], p = '-', -p
	}
	for i := bandBytes - 1; i > 0; i, p = i-1, p/10 {
		b[i] = '0' + byte(p%10)
	}
}

// appendRest writes the part of a record that no script reads, but for the payload.
func appendRest(b []byte, s *queue.JobSpec) []byte {
	flags := byte(0)
	if s.PayloadJSON {
		flags = 1
	}
	if s.Unique.Window > 0 {
		flags |= 2
	}
	b = append(b, recordVersion, flags)
	b = putString(b, s.Type)
	b = putTable(b, s.Headers)
	b = putTable(b, s.Labels)
	for _, d := range [...]time.Duration{s.Timeout, s.Backoff.Base, s.Backoff.Max} {
		b = binary.AppendVarint(b, int64(d))
	}
	for _, v := range [...]string{string(s.Backoff.Jitter), string(s.Unique.Until), string(s.Unique.OnConflict), s.RetriedFrom} {
		b = putString(b, v)
	}
	if s.Unique.Window > 0 {
		b = binary.AppendVarint(b, int64(s.Unique.Window))
	}
	return b
}

// mark is the size class and the flag of a new job's line entry: see entry in lua/lib/record.lua.
func mark(s *queue.JobSpec) string {
	class := 0
	if n := len(s.Payload); n > 64 {
		class = bits.Len(uint(n-1)) - 6
	}
	flag := byte('p')
	switch {
	case s.ConcurrencyKey != "":
		flag = 'k'
	case s.ExpiresIn > 0, s.Unique.Key != "" && s.Unique.Until == queue.UniqueUntilStarted:
		flag = 'x'
	case s.Unique.Key != "", len(s.Payload) > inlineMax:
		flag = 's'
	}
	return string([]byte{'a' + byte(class), flag})
}

func ceilMillis(d time.Duration) int64 { return int64((d + time.Millisecond - 1) / time.Millisecond) }

func putString(b []byte, s string) []byte {
	return append(binary.AppendUvarint(b, uint64(len(s))), s...)
}

func putTable(b []byte, m map[string]string) []byte {
	b = binary.AppendUvarint(b, uint64(len(m)))
	for k, v := range m {
		b = putString(putString(b, k), v)
	}
	return b
}

var errRecord = errors.New("a damaged job record")

// reader reads what putString and its kin wrote; the first fault stays.
type reader struct {
	s   string
	bad bool
}

func (r *reader) uint() uint64 {
	n, shift := uint64(0), 0
	for i := range len(r.s) {
		c := r.s[i]
		if shift > 63 {
			break
		}
		n |= uint64(c&0x7f) << shift
		if c < 0x80 {
			r.s = r.s[i+1:]
			return n
		}
		shift += 7
	}
	r.bad = true
	return 0
}

func (r *reader) int() int64 {
	n := r.uint()
	return int64(n>>1) ^ -int64(n&1)
}

func (r *reader) str() string {
	n := r.uint()
	if r.bad || n > uint64(len(r.s)) {
		r.bad = true
		return ""
	}
	s := r.s[:n]
	r.s = r.s[n:]
	return s
}

func (r *reader) table() map[string]string {
	n := r.uint()
	if r.bad || n > uint64(len(r.s)) || n == 0 {
		r.bad = r.bad || n != 0
		return nil
	}
	m := make(map[string]string, n)
	for range n {
		k := r.str()
		m[k] = r.str()
	}
	return m
}

// decodeRecord reads a record. Fields that only a batch knows are left out.
func decodeRecord(id, s string) (*queue.Job, fields, error) {
	bad := func(what string) (*queue.Job, fields, error) {
		return nil, nil, fmt.Errorf("%w: %s: %s", errRecord, id, what)
	}
	if len(s) < 11 {
		return bad("it is too short")
	}
	priority, err := strconv.Atoi(s[:5])
	if err != nil {
		return bad("its priority is no number")
	}
	n, err := strconv.ParseUint(s[5:11], 16, 32)
	if err != nil || n > uint64(len(s)-11) {
		return bad("the length of its head is wrong")
	}
	head, err := unpackMap(s[11 : 11+n])
	if err != nil {
		return bad(err.Error())
	}
	stop := int(11+n) + int(head.int("l"))
	if stop < int(11+n) || stop > len(s) {
		return bad("its length is wrong")
	}
	r := reader{s: s[11+n : stop]}
	if len(r.s) < 2 || r.s[0] != recordVersion {
		return bad("its version is unknown")
	}
	j := &queue.Job{ID: queue.JobIDPrefix + "_" + id, Priority: priority, PayloadJSON: r.s[1]&1 != 0}
	windowed := r.s[1]&2 != 0
	r.s = r.s[2:]
	j.Type = r.str()
	j.Headers = r.table()
	j.Labels = r.table()
	j.Timeout = time.Duration(r.int())
	j.Backoff.Base = time.Duration(r.int())
	j.Backoff.Max = time.Duration(r.int())
	j.Backoff.Jitter = queue.Jitter(r.str())
	j.Unique.Until = queue.UniqueUntil(r.str())
	j.Unique.OnConflict = queue.UniqueConflict(r.str())
	j.RetriedFrom = r.str()
	if windowed {
		j.Unique.Window = time.Duration(r.int())
	}
	if r.bad {
		return bad("it ends early")
	}
	if head.int("B") == 0 {
		j.Payload = []byte(r.s)
	}
	if err := decodeHead(j, id, head); err != nil {
		return bad(err.Error())
	}
	if stop < len(s) {
		if err := finished(j, s[stop:]); err != nil {
			return bad(err.Error())
		}
	}
	return j, head, nil
}

// finished reads the tail of an acknowledged job: see lua/lib/record.lua.
func finished(j *queue.Job, tail string) error {
	const fixed = 18
	if len(tail) < fixed {
		return errors.New("its end is too short")
	}
	n := int(binary.BigEndian.Uint16([]byte(tail[16:fixed])))
	if len(tail) < fixed+n {
		return errors.New("its end is too short")
	}
	info, err := unpackMap(tail[fixed+n:])
	if err != nil {
		return err
	}
	ms := func(s string) time.Time {
		return millis(int64(math.Float64frombits(binary.BigEndian.Uint64([]byte(s)))))
	}
	j.State, j.StartedAt, j.FinishedAt = queue.StateSucceeded, ms(tail[:8]), ms(tail[8:16])
	j.Attempt++
	if h := (queue.Handler{Runtime: info.str("hr"), Version: int(info.int("hv"))}); h != (queue.Handler{}) {
		j.Handler = h
	}
	j.Attempts = queue.AppendAttempt(j.Attempts, queue.Attempt{
		Run: j.Run, Attempt: j.Attempt, Outcome: queue.AttemptSucceeded, StartedAt: j.StartedAt, DurationMS: info.int("d"), Fuel: info.int("f"),
		PeakMemoryBytes: info.int("p"), Worker: tail[fixed : fixed+n], Handler: queue.Handler{Runtime: info.str("hr"), Version: int(info.int("hv"))},
	})
	return nil
}

func decodeHead(j *queue.Job, id string, h fields) error {
	u, ok := queue.ParseID(queue.JobIDPrefix, j.ID)
	if !ok {
		return errors.New("its id is malformed")
	}
	j.CreatedAt = millis(int64(u[0])<<40 | int64(u[1])<<32 | int64(u[2])<<24 | int64(u[3])<<16 | int64(u[4])<<8 | int64(u[5]))
	j.Tenant, j.Queue = h.str("t"), h.str("q")
	if j.Tenant == "" || j.Queue == "" {
		return errors.New("it names no queue")
	}
	j.MaxAttempts = int(h.int("m"))
	j.IdempotencyKey, j.Unique.Key, j.ConcurrencyKey = h.str("i"), h.str("u"), h.str("k")
	j.Run = max(int(h.int("r")), 1)
	j.Attempt, j.Crashes, j.Interruptions = int(h.int("a")), int(h.int("c")), int(h.int("n"))
	j.PayloadBytes, j.ResultBytes = int(h.int("z")), int(h.int("rl"))
	if x := h.int("x"); x > 0 {
		j.ExpiresAt = j.CreatedAt.Add(time.Duration(x) * time.Millisecond)
	}
	j.StartedAt, j.FinishedAt, j.NextRunAt = millis(h.int("st")), millis(h.int("f")), millis(h.int("nx"))
	j.ErasedAt = millis(h.int("er"))
	j.LastError = jobError(h.sub("e"))
	if m := h.sub("h"); m != nil {
		j.Handler = queue.Handler{Runtime: m.str("r"), Version: int(m.int("v"))}
	}
	for _, v := range h.list("at") {
		m, _ := v.(fields)
		j.Attempts = append(j.Attempts, attempt(m))
	}
	if p := h.sub("p"); p != nil {
		done, _ := strconv.ParseInt(p.str("d"), 10, 64)
		total, _ := strconv.ParseInt(p.str("t"), 10, 64)
		j.Progress = &queue.Progress{Done: done, Total: total, Message: p.str("m"), At: millis(p.int("a"))}
	}
	state, ok := stateOfLetter[h.str("s")]
	if !ok {
		return fmt.Errorf("its state %.4q is unknown", h.str("s"))
	}
	j.State = state
	if state == queue.StateScheduled {
		j.Reason = reasonOfLetter[h.str("rs")]
	}
	return nil
}

// States as records and settle replies write them. A record without one is ready or running.
var stateOfLetter = map[string]queue.State{
	"": queue.StateReady, "R": queue.StateReady, "r": queue.StateRunning, "w": queue.StateScheduled, "W": queue.StateScheduled,
	"S": queue.StateSucceeded, "D": queue.StateDead, "C": queue.StateCancelled, "E": queue.StateExpired,
}

var reasonOfLetter = map[string]queue.Reason{"d": queue.ReasonDelay, "r": queue.ReasonRetry, "f": queue.ReasonDefer}

var outcomeOfLetter = map[string]queue.AttemptOutcome{
	"S": queue.AttemptSucceeded, "F": queue.AttemptFailed, "D": queue.AttemptDeferred, "C": queue.AttemptCrashed,
	"I": queue.AttemptInterrupted, "X": queue.AttemptCancelled,
}

func jobError(m fields) *queue.JobError {
	if m == nil {
		return nil
	}
	return &queue.JobError{Kind: m.str("k"), Message: m.str("m"), Retryable: m.int("y") == 1}
}

func attempt(m fields) queue.Attempt {
	return queue.Attempt{
		Run:             int(m.int("r")),
		Attempt:         int(m.int("a")),
		Outcome:         outcomeOfLetter[m.str("o")],
		Error:           jobError(m.sub("e")),
		StartedAt:       millis(m.int("s")),
		DurationMS:      m.int("d"),
		Fuel:            m.int("f"),
		PeakMemoryBytes: m.int("p"),
		Worker:          m.str("w"),
		Handler:         queue.Handler{Runtime: m.str("hr"), Version: int(m.int("hv"))},
	}
}

// running adds what its batch knows of a running job; value and header are those of lua/lib/batch.lua.
func running(j *queue.Job, value, header string) error {
	h, err := unpackMap(header)
	if err != nil {
		return err
	}
	parts := strings.Split(value, ",")
	until := h.int("u")
	if len(parts) > 1 && parts[1] != "" {
		if until, err = strconv.ParseInt(parts[1], 10, 64); err != nil {
			return fmt.Errorf("%w: %s: the end of its lease is no number", errRecord, j.ID)
		}
	}
	start(j, millis(h.int("s")), millis(until), h.str("w"))
	j.CancelRequested = slices.Contains(parts[1:], "c")
	return nil
}

// start puts a waiting job under a lease.
func start(j *queue.Job, at, until time.Time, worker string) {
	j.State = queue.StateRunning
	j.Attempt++
	j.StartedAt, j.LeaseUntil, j.Worker = at, until, worker
}

// millis is the time of a number of milliseconds; 0 is no time.
func millis(ms int64) time.Time {
	if ms == 0 {
		return time.Time{}
	}
	return time.UnixMilli(ms).UTC()
}

// short is the part of a job id that keys and scripts use; false for what is no job id.
func short(id string) (string, bool) {
	if _, ok := queue.ParseID(queue.JobIDPrefix, id); !ok {
		return "", false
	}
	return id[len(queue.JobIDPrefix)+1:], true
}

package queue

import (
	"fmt"
	"time"
)

// Range of a job's priority. Beyond it -p·2^40 + seq, the sort key of the Redis engine, no longer fits a double.
const (
	PriorityMin = -4095
	PriorityMax = 4095
)

// Range of the weight of a queue or a tenant.
const (
	WeightMin     = 0.001
	WeightMax     = 10000
	WeightDefault = 1.0
)

// Other bounds of a request.
const (
	NameMax        = 128 // bytes of a tenant, queue or type
	KeyMax         = 256 // bytes of an idempotency, unique or concurrency key
	MaxAttemptsMax = 1000
	DelayMax       = 5 * 365 * 24 * time.Hour
	TimeoutMax     = 7 * 24 * time.Hour
	LabelsMax      = 64
	BatchMax       = 1000 // jobs in one Enqueue of the API
	RunningCapMax  = 1_000_000
)

// Limits bounds what one job may store.
type Limits struct {
	PayloadBytes    int
	ResultBytes     int
	HeaderBytes     int // names and values of headers and labels together
	LogBytes        int // per attempt
	CheckpointBytes int
	IdempotencyTTL  time.Duration
}

// DefaultLimits are the limits in force unless configured.
func DefaultLimits() Limits {
	return Limits{
		PayloadBytes:    1 << 20,
		ResultBytes:     1 << 20,
		HeaderBytes:     16 << 10,
		LogBytes:        256 << 10,
		CheckpointBytes: 1 << 20,
		IdempotencyTTL:  24 * time.Hour,
	}
}

// ValidName checks a tenant, queue or type name: 1–128 of [A-Za-z0-9._-], the first alphanumeric. field names it in the
// error.
func ValidName(field, name string) error {
	if name == "" {
		return &InvalidError{Field: field, Reason: "must not be empty"}
	}
	if len(name) > NameMax {
		return &InvalidError{Field: field, Reason: fmt.Sprintf("must be at most %d bytes, got %d", NameMax, len(name))}
	}
	for i := range len(name) {
		c := name[i]
		alnum := c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9'
		if !alnum && (i == 0 || c != '.' && c != '_' && c != '-') {
			return &InvalidError{Field: field, Reason: fmt.Sprintf(
				"%.140q has a character that is not allowed at byte %d; use A-Z a-z 0-9 . _ - and begin with a letter or digit", name, i)}
		}
	}
	return nil
}

// ValidWeight checks a weight.
func ValidWeight(field string, w float64) error {
	if w >= WeightMin && w <= WeightMax { // false for NaN
		return nil
	}
	return &InvalidError{Field: field, Reason: fmt.Sprintf("must be in [%v, %v], got %v", WeightMin, WeightMax, w)}
}

// ValidPriority checks a priority.
func ValidPriority(field string, p int) error {
	if p >= PriorityMin && p <= PriorityMax {
		return nil
	}
	return &InvalidError{Field: field, Reason: fmt.Sprintf("must be in [%d, %d], got %d", PriorityMin, PriorityMax, p)}
}

// ValidRunningCap checks a cap of how many jobs run at once.
func ValidRunningCap(field string, n int) error {
	if n >= 1 && n <= RunningCapMax {
		return nil
	}
	return &InvalidError{Field: field, Reason: fmt.Sprintf("must be between 1 and %d jobs, got %d", RunningCapMax, n)}
}

// Validate checks a spec against the bounds of this package and the limits.
func (s *JobSpec) Validate(l Limits) error {
	for _, n := range [...]struct{ field, name string }{{"tenant", s.Tenant}, {"queue", s.Queue}, {"type", s.Type}} {
		if err := ValidName(n.field, n.name); err != nil {
			return err
		}
	}
	if len(s.Payload) > l.PayloadBytes {
		return &LimitError{Field: "payload", Limit: "payload", Max: int64(l.PayloadBytes), Got: int64(len(s.Payload)), Unit: "bytes"}
	}
	if s.Priority != nil {
		if err := ValidPriority("priority", *s.Priority); err != nil {
			return err
		}
	}
	for _, d := range [...]struct {
		field string
		d     time.Duration
		max   time.Duration
	}{{"delay", s.Delay, DelayMax}, {"expires_in", s.ExpiresIn, DelayMax}, {"timeout", s.Timeout, TimeoutMax}} {
		if d.d < 0 || d.d > d.max {
			return &InvalidError{Field: d.field, Reason: fmt.Sprintf("must be between 0s and %s, got %s", d.max, d.d)}
		}
	}
	if s.MaxAttempts < 0 || s.MaxAttempts > MaxAttemptsMax {
		return &InvalidError{Field: "max_attempts", Reason: fmt.Sprintf("must be between 1 and %d, got %d", MaxAttemptsMax, s.MaxAttempts)}
	}
	return s.validateAttributes(l)
}

func (s *JobSpec) validateAttributes(l Limits) error {
	size := 0
	for k, v := range s.Headers {
		size += len(k) + len(v)
	}
	for k, v := range s.Labels {
		size += len(k) + len(v)
	}
	if size > l.HeaderBytes {
		return &LimitError{Field: "headers", Limit: "headers", Max: int64(l.HeaderBytes), Got: int64(size), Unit: "bytes"}
	}
	if len(s.Labels) > LabelsMax {
		return &LimitError{Field: "labels", Limit: "labels", Max: LabelsMax, Got: int64(len(s.Labels)), Unit: "labels"}
	}
	for _, k := range [...]struct{ field, key string }{{"idempotency_key", s.IdempotencyKey}, {"unique.key", s.Unique.Key}, {"concurrency_key", s.ConcurrencyKey}} {
		if len(k.key) > KeyMax {
			return &InvalidError{Field: k.field, Reason: fmt.Sprintf("must be at most %d bytes, got %d", KeyMax, len(k.key))}
		}
	}
	switch s.Unique.Until {
	case "", UniqueUntilFinished, UniqueUntilStarted:
		if s.Unique.Window != 0 {
			return &InvalidError{Field: "unique.window", Reason: fmt.Sprintf("belongs to until = window only, got %s", s.Unique.Window)}
		}
	case UniqueUntilWindow:
		if s.Unique.Window <= 0 || s.Unique.Window > DelayMax {
			return &InvalidError{Field: "unique.window", Reason: fmt.Sprintf("must be between 1ms and %s, got %s", DelayMax, s.Unique.Window)}
		}
	default:
		return &InvalidError{Field: "unique.until", Reason: fmt.Sprintf("must be finished, started or window, got %q", s.Unique.Until)}
	}
	switch s.Unique.OnConflict {
	case "", UniqueReject, UniqueExisting:
	default:
		return &InvalidError{Field: "unique.on_conflict", Reason: fmt.Sprintf("must be reject or existing, got %q", s.Unique.OnConflict)}
	}
	return nil
}

package queue

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// LeaseMin and LeaseMax bound a lease.
const (
	LeaseMin = 10 * time.Millisecond
	LeaseMax = 24 * time.Hour
)

// AsideMax is how many jobs one Reserve lets step aside for their concurrency keys before it ends with what it has.
const AsideMax = 1000

// ViewNamesMax is how many queue names a view may list.
const ViewNamesMax = 1000

// ValidLease checks the length of a lease.
func ValidLease(d time.Duration) error {
	if d >= LeaseMin && d <= LeaseMax {
		return nil
	}
	return &InvalidError{Field: "lease", Reason: fmt.Sprintf("must be between %s and %s, got %s", LeaseMin, LeaseMax, d)}
}

// Validate checks the names.
func (v View) Validate() error {
	if len(v.Queues) > ViewNamesMax {
		return &LimitError{Field: "view", Limit: "view", Max: ViewNamesMax, Got: int64(len(v.Queues)), Unit: "queues"}
	}
	for _, name := range v.Queues {
		if err := ValidName("view", name); err != nil {
			return err
		}
	}
	return nil
}

// Key is one string for all views with the same set of queues: the sorted names, each once, joined by commas; "" for all
// queues.
func (v View) Key() string {
	return strings.Join(slices.Compact(slices.Sorted(slices.Values(v.Queues))), ",")
}

// Validate checks the arguments of Reserve.
func (p ReserveParams) Validate() error {
	if p.Max < 1 {
		return &InvalidError{Field: "max", Reason: fmt.Sprintf("must be 1 or more jobs, got %d", p.Max)}
	}
	if p.MaxBytes < 0 {
		return &InvalidError{Field: "max_bytes", Reason: fmt.Sprintf("must be 0 (no limit) or more bytes, got %d", p.MaxBytes)}
	}
	if err := ValidLease(p.Lease); err != nil {
		return err
	}
	return p.View.Validate()
}

// Validate checks one settlement; an error makes its outcome SettleRejected. Fields that do not belong to the verb are
// ignored. A crash may come without an error (LeaseRanOut is recorded then), a nack or dead may not.
func (s *Settlement) Validate(l Limits) error {
	switch s.Verb {
	case VerbAck:
		if len(s.Result) > l.ResultBytes {
			return &LimitError{Field: "result", Limit: "result", Max: int64(l.ResultBytes), Got: int64(len(s.Result)), Unit: "bytes"}
		}
	case VerbNack, VerbDead:
		if s.Error == nil {
			return &InvalidError{Field: "error", Reason: fmt.Sprintf("must be given with %s", s.Verb)}
		}
	case VerbDefer, VerbYield, VerbRelease, VerbCrash:
	default:
		return &InvalidError{Field: "verb", Reason: fmt.Sprintf("must be one of ack, nack, dead, defer, yield, release, crash; got %q", string(s.Verb))}
	}
	if s.Verb == VerbNack || s.Verb == VerbDefer {
		if s.Delay < 0 || s.Delay > DelayMax {
			return &InvalidError{Field: "delay", Reason: fmt.Sprintf("must be between 0s and %s, got %s", DelayMax, s.Delay)}
		}
	}
	return nil
}

// ValidLogLevel checks the level of a log line. Empty counts as info.
func ValidLogLevel(level string) error {
	switch level {
	case "", "debug", "info", "warn", "error":
		return nil
	}
	return &InvalidError{Field: "level", Reason: fmt.Sprintf("must be debug, info, warn or error, got %q", level)}
}

// JobIDPrefix is what the id of a job begins with, before "_".
const JobIDPrefix = "job"

// Validate checks a filter of DeadLetters.
func (f *DeadFilter) Validate() error {
	if err := ValidName("tenant", f.Tenant); err != nil {
		return err
	}
	if f.After != "" {
		if _, ok := ParseID(JobIDPrefix, f.After); !ok {
			return &InvalidError{Field: "after", Reason: fmt.Sprintf("must be the last id of an earlier chunk, got %.64q", f.After)}
		}
	}
	return nil
}

// ValidChunk checks the limit of one bounded step over dead jobs.
func ValidChunk(limit int) error {
	if limit >= 1 {
		return nil
	}
	return &InvalidError{Field: "limit", Reason: fmt.Sprintf("must be 1 or more jobs, got %d", limit)}
}

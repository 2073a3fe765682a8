package queue

import (
	"errors"
	"strings"
	"testing"
	"time"
)

func TestAppendAttempt(t *testing.T) {
	t.Parallel()
	var list []Attempt
	for i := range AttemptsKept + 5 {
		list = AppendAttempt(list, Attempt{Attempt: i + 1})
	}
	if len(list) != AttemptsKept || list[0].Attempt != 6 || list[AttemptsKept-1].Attempt != AttemptsKept+5 {
		t.Errorf("%d records from %d to %d, want the last %d", len(list), list[0].Attempt, list[len(list)-1].Attempt, AttemptsKept)
	}
	if AttemptBudget(0) != 1 || AttemptBudget(7) != 7 {
		t.Error("no maximum counts as one attempt")
	}
}

func TestCrashBudgetSpent(t *testing.T) {
	t.Parallel()
	e := CrashBudgetSpent(3, LeaseRanOut())
	if e.Kind != ErrorKindCrash || e.Retryable || !strings.HasPrefix(e.Message, "crashed worker 3 times; last: the lease ran out") {
		t.Errorf("%+v", e)
	}
	if got := CrashBudgetSpent(1, nil).Message; got != "crashed worker 1 time" {
		t.Errorf("%q", got)
	}
}

func TestStoreTime(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 3, 1, 12, 0, 0, 1_999_999, time.FixedZone("x", 3600))
	if got := Millis(now); got.Nanosecond() != 1_000_000 || got.Location() != time.UTC || !Millis(time.Time{}).IsZero() {
		t.Errorf("Millis = %s", got)
	}
	for d, want := range map[time.Duration]time.Duration{0: 0, 1: time.Millisecond, time.Millisecond: time.Millisecond, 1500 * time.Microsecond: 2 * time.Millisecond} {
		if got := After(now, d).Sub(Millis(now)); got != want {
			t.Errorf("After %s is %s later, want %s", d, got, want)
		}
	}
}

func TestRequests(t *testing.T) {
	t.Parallel()
	if a, b := (View{Queues: []string{"b", "a", "b"}}).Key(), (View{Queues: []string{"a", "b"}}).Key(); a != b || a != "a,b" || (View{}).Key() != "" {
		t.Errorf("keys %q and %q of the same set", a, b)
	}
	l := DefaultLimits()
	good := []Settlement{
		{Verb: VerbAck, Result: make([]byte, l.ResultBytes)}, {Verb: VerbNack, Error: &JobError{}, Delay: DelayMax}, {Verb: VerbDead, Error: &JobError{}},
		{Verb: VerbDefer}, {Verb: VerbYield, Delay: -1}, {Verb: VerbRelease, Result: make([]byte, l.ResultBytes+1)}, {Verb: VerbCrash},
	}
	for _, s := range good {
		if err := s.Validate(l); err != nil {
			t.Errorf("%s: %v", s.Verb, err)
		}
	}
	bad := []Settlement{
		{}, {Verb: "ACK"}, {Verb: VerbNack}, {Verb: VerbDead}, {Verb: VerbDefer, Delay: -1}, {Verb: VerbNack, Error: &JobError{}, Delay: DelayMax + 1},
		{Verb: VerbAck, Result: make([]byte, l.ResultBytes+1)},
	}
	for _, s := range bad {
		if err := s.Validate(l); !errors.Is(err, ErrInvalid) {
			t.Errorf("%q with %d bytes, delay %s: %v, want ErrInvalid", s.Verb, len(s.Result), s.Delay, err)
		}
	}
}

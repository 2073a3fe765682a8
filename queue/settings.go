package queue

import (
	"fmt"
	"time"
)

// EffectiveSettings are the settings of a queue as they are in force.
type EffectiveSettings struct {
	Weight     float64
	Priority   int
	Paused     bool
	MaxRunning int  // 0 = no cap
	MaxPerKey  int  // ≥ 1
	Rate       Rate // zero = no bound
}

// MaxPerKeyDefault is how many jobs of one concurrency key run at once unless QueueSettings.MaxPerKey says otherwise.
const MaxPerKeyDefault = 1

// Effective merges the settings of one queue: the override (SetQueue) wins over the template (Scheduling.Queues), and that over the
// defaults: weight 1, priority 0, not paused, no cap, one job per concurrency key, no rate.
func Effective(override, template QueueSettings) EffectiveSettings {
	e := EffectiveSettings{Weight: WeightDefault, MaxPerKey: MaxPerKeyDefault}
	for _, s := range [...]QueueSettings{template, override} {
		if s.Weight != nil {
			e.Weight = *s.Weight
		}
		if s.Priority != nil {
			e.Priority = *s.Priority
		}
		if s.Paused != nil {
			e.Paused = *s.Paused
		}
		if s.MaxRunning != nil {
			e.MaxRunning = *s.MaxRunning
		}
		if s.MaxPerKey != nil {
			e.MaxPerKey = *s.MaxPerKey
		}
		if s.Rate != nil {
			e.Rate = *s.Rate
		}
	}
	return e
}

// Validate checks the ranges. prefix names the queue in the error, e.g. "queues.low"; empty is allowed.
func (s QueueSettings) Validate(prefix string) error {
	if prefix != "" {
		prefix += "."
	}
	if s.Weight != nil {
		if err := ValidWeight(prefix+"weight", *s.Weight); err != nil {
			return err
		}
	}
	if s.Priority != nil {
		if err := ValidPriority(prefix+"priority", *s.Priority); err != nil {
			return err
		}
	}
	if s.MaxRunning != nil {
		if err := ValidRunningCap(prefix+"max_running", *s.MaxRunning); err != nil {
			return err
		}
	}
	if s.MaxPerKey != nil {
		if err := ValidRunningCap(prefix+"max_per_key", *s.MaxPerKey); err != nil {
			return err
		}
	}
	if s.Rate != nil {
		return s.Rate.Validate(prefix + "rate")
	}
	return nil
}

// Validate checks the ranges. prefix names the tenant in the error, e.g. "tenants.acme"; empty is allowed.
func (t TenantSettings) Validate(prefix string) error {
	if prefix != "" {
		prefix += "."
	}
	if t.Weight != nil {
		if err := ValidWeight(prefix+"weight", *t.Weight); err != nil {
			return err
		}
	}
	if t.MaxRunning != nil {
		return ValidRunningCap(prefix+"max_running", *t.MaxRunning)
	}
	return nil
}

// Clone returns a copy that shares nothing with t.
func (t TenantSettings) Clone() TenantSettings {
	return TenantSettings{Weight: clonePtr(t.Weight), MaxRunning: clonePtr(t.MaxRunning)}
}

// Empty reports whether nothing is set.
func (s QueueSettings) Empty() bool { return s == QueueSettings{} }

// Clone returns a copy that shares nothing with s.
func (s QueueSettings) Clone() QueueSettings {
	return QueueSettings{Weight: clonePtr(s.Weight), Priority: clonePtr(s.Priority), Paused: clonePtr(s.Paused),
		MaxRunning: clonePtr(s.MaxRunning), MaxPerKey: clonePtr(s.MaxPerKey), Rate: clonePtr(s.Rate)}
}

func clonePtr[T any](p *T) *T {
	if p == nil {
		return nil
	}
	v := *p
	return &v
}

// Validate checks the ranges, and that no field is set and cleared at once.
func (c QueueChange) Validate() error {
	for _, f := range [...]struct {
		field      string
		set, clear bool
	}{
		{"weight", c.Set.Weight != nil, c.ClearWeight},
		{"priority", c.Set.Priority != nil, c.ClearPriority},
		{"paused", c.Set.Paused != nil, c.ClearPaused},
		{"max_running", c.Set.MaxRunning != nil, c.ClearMaxRunning},
		{"max_per_key", c.Set.MaxPerKey != nil, c.ClearMaxPerKey},
		{"rate", c.Set.Rate != nil, c.ClearRate},
	} {
		if f.set && f.clear {
			return &InvalidError{Field: f.field, Reason: "cannot be set and returned to the configured value at once"}
		}
	}
	return c.Set.Validate("")
}

// Apply returns the override after the change. It shares nothing with its arguments.
func (c QueueChange) Apply(override QueueSettings) QueueSettings {
	o := override.Clone()
	if c.Set.Weight != nil || c.ClearWeight {
		o.Weight = clonePtr(c.Set.Weight)
	}
	if c.Set.Priority != nil || c.ClearPriority {
		o.Priority = clonePtr(c.Set.Priority)
	}
	if c.Set.Paused != nil || c.ClearPaused {
		o.Paused = clonePtr(c.Set.Paused)
	}
	if c.Set.MaxRunning != nil || c.ClearMaxRunning {
		o.MaxRunning = clonePtr(c.Set.MaxRunning)
	}
	if c.Set.MaxPerKey != nil || c.ClearMaxPerKey {
		o.MaxPerKey = clonePtr(c.Set.MaxPerKey)
	}
	if c.Set.Rate != nil || c.ClearRate {
		o.Rate = clonePtr(c.Set.Rate)
	}
	return o
}

// Validate checks every name and range; the first fault (queues by no particular order) is returned with its path.
func (s Scheduling) Validate() error {
	for name, q := range s.Queues {
		if err := ValidName("queues", name); err != nil {
			return err
		}
		if err := q.Validate("queues." + name); err != nil {
			return err
		}
	}
	for name, t := range s.Tenants {
		if err := ValidName("tenants", name); err != nil {
			return err
		}
		if err := t.Validate("tenants." + name); err != nil {
			return err
		}
	}
	if s.MaxConsecutiveHigh < 0 {
		return &InvalidError{Field: "max_consecutive_high", Reason: fmt.Sprintf("must be 0 (strict priority) or more, got %d", s.MaxConsecutiveHigh)}
	}
	if s.MaxCrashes < 0 {
		return &InvalidError{Field: "max_crashes", Reason: fmt.Sprintf("must be 0 (the default, %d) or more, got %d", MaxCrashesDefault, s.MaxCrashes)}
	}
	if d := s.ChargeByTime; d < 0 || d > ChargeByTimeMax || d%time.Millisecond != 0 {
		return &InvalidError{Field: "charge_by_time", Reason: fmt.Sprintf("must be 0 (off) or whole milliseconds from 1ms to %s, got %s", ChargeByTimeMax, d)}
	}
	for field, n := range map[string]int{"retention.count": s.Retention.Count, "retention.dead_count": s.Retention.DeadCount} {
		if n < 0 {
			return &InvalidError{Field: field, Reason: fmt.Sprintf("must be 0 (no bound) or more jobs, got %d", n)}
		}
	}
	switch s.Retention.Logs {
	case "", LogsOfFailed, LogsOfAll, LogsOfNone:
		return nil
	}
	return &InvalidError{Field: "retention.logs", Reason: fmt.Sprintf("must be failed, all or none, got %q", s.Retention.Logs)}
}

// Clone returns a copy that shares nothing with s.
func (s Scheduling) Clone() Scheduling {
	c := s
	c.Queues = make(map[string]QueueSettings, len(s.Queues))
	for name, q := range s.Queues {
		c.Queues[name] = q.Clone()
	}
	c.Tenants = make(map[string]TenantSettings, len(s.Tenants))
	for name, t := range s.Tenants {
		c.Tenants[name] = t.Clone()
	}
	return c
}

// TenantWeight is the weight of a tenant in force.
func (s Scheduling) TenantWeight(tenant string) float64 {
	if w := s.Tenants[tenant].Weight; w != nil {
		return *w
	}
	return WeightDefault
}

// TenantMaxRunning caps how many jobs of a tenant run at once; 0 = no cap.
func (s Scheduling) TenantMaxRunning(tenant string) int {
	if n := s.Tenants[tenant].MaxRunning; n != nil {
		return *n
	}
	return 0
}

// ChargeUnit is what weights are multiplied by where tags are made: ChargeByTime in milliseconds, 1 while every job costs the same.
func (s Scheduling) ChargeUnit() float64 { return max(1, float64(s.ChargeByTime.Milliseconds())) }

// CrashBudget is MaxCrashes with its default applied: the crash with this number, within one run, makes the job dead.
func (s Scheduling) CrashBudget() int {
	if s.MaxCrashes > 0 {
		return s.MaxCrashes
	}
	return MaxCrashesDefault
}

// Age says how long a job that finished in a terminal state is kept. forever wins over age; an age of 0 means that it is
// removed by the very step that finishes it.
func (r Retention) Age(s State) (age time.Duration, forever bool) {
	if s == StateDead {
		switch {
		case r.Dead < 0:
			return 0, true
		case r.Dead == 0:
			return RetentionDeadDefault, false
		}
		return r.Dead, false
	}
	switch {
	case r.Succeeded < 0:
		return 0, false
	case r.Succeeded == 0:
		return RetentionSucceededDefault, false
	}
	return r.Succeeded, false
}

// Most says how many jobs of the kind of a terminal state are kept, dead ones or all others; 0 = no bound.
func (r Retention) Most(s State) int {
	if s == StateDead {
		return r.DeadCount
	}
	return r.Count
}

// KeepsLogs says whether the log of a job outlives its end. failed says that it had a failed or crashed attempt; an engine
// reads it off Job.LastError, which such an attempt sets and nothing clears.
func (r Retention) KeepsLogs(failed bool) bool {
	switch r.Logs {
	case LogsOfAll:
		return true
	case LogsOfNone:
		return false
	case LogsOfFailed, "":
		return failed
	}
	return failed
}

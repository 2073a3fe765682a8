package queue

import (
	"errors"
	"math"
	"testing"
	"time"
)

func TestEffective(t *testing.T) {
	t.Parallel()
	w, w2, p, yes, no := 2.0, 3.0, 5, true, false
	for _, c := range []struct {
		override, template QueueSettings
		want               EffectiveSettings
	}{
		{QueueSettings{}, QueueSettings{}, EffectiveSettings{Weight: 1, MaxPerKey: 1}},
		{QueueSettings{}, QueueSettings{Weight: &w, Priority: &p, Paused: &yes}, EffectiveSettings{Weight: 2, Priority: 5, Paused: true, MaxPerKey: 1}},
		{QueueSettings{Weight: &w2, Paused: &no}, QueueSettings{Weight: &w, Priority: &p, Paused: &yes}, EffectiveSettings{Weight: 3, Priority: 5, MaxPerKey: 1}},
		{QueueSettings{MaxRunning: new(3), Rate: &Rate{Count: 5, Per: time.Minute}}, QueueSettings{MaxRunning: new(9), MaxPerKey: new(2), Rate: &Rate{Count: 1, Per: time.Second}},
			EffectiveSettings{Weight: 1, MaxRunning: 3, MaxPerKey: 2, Rate: Rate{Count: 5, Per: time.Minute}}},
	} {
		if got := Effective(c.override, c.template); got != c.want {
			t.Errorf("Effective(%+v, %+v) = %+v, want %+v", c.override, c.template, got, c.want)
		}
	}
}

func TestQueueChangeApply(t *testing.T) {
	t.Parallel()
	w, p, yes := 2.0, 5, true
	have := QueueSettings{Weight: &w, Priority: &p}
	got := QueueChange{Set: QueueSettings{Paused: &yes}, ClearWeight: true}.Apply(have)
	if got.Weight != nil || got.Priority == nil || *got.Priority != 5 || got.Paused == nil || !*got.Paused {
		t.Errorf("Apply = %+v, want the weight cleared, the priority kept, the pause set", got)
	}
	p = 6
	if *got.Priority != 5 || have.Weight == nil {
		t.Error("Apply shares or changes its arguments")
	}
	if !(QueueChange{ClearPriority: true, ClearPaused: true}).Apply(got).Empty() {
		t.Error("clearing what is set leaves something")
	}
}

func TestSchedulingValidate(t *testing.T) {
	t.Parallel()
	w := func(f float64) QueueSettings { return QueueSettings{Weight: &f} }
	high := PriorityMax + 1
	for field, s := range map[string]Scheduling{
		"queues":                {Queues: map[string]QueueSettings{"a b": {}}},
		"queues.q.weight":       {Queues: map[string]QueueSettings{"q": w(math.NaN())}},
		"queues.q.priority":     {Queues: map[string]QueueSettings{"q": {Priority: &high}}},
		"tenants.t.weight":      {Tenants: map[string]TenantSettings{"t": {Weight: new(math.Inf(1))}}},
		"tenants.t.max_running": {Tenants: map[string]TenantSettings{"t": {MaxRunning: new(0)}}},
		"queues.q.max_running":  {Queues: map[string]QueueSettings{"q": {MaxRunning: new(-1)}}},
		"queues.q.max_per_key":  {Queues: map[string]QueueSettings{"q": {MaxPerKey: new(RunningCapMax + 1)}}},
		"queues.q.rate":         {Queues: map[string]QueueSettings{"q": {Rate: &Rate{Count: 1, Per: time.Millisecond}}}},
		"max_consecutive_high":  {MaxConsecutiveHigh: -1},
		"charge_by_time":        {ChargeByTime: 1500 * time.Microsecond},
		"max_crashes":           {MaxCrashes: -1},
		"retention.logs":        {Retention: Retention{Logs: "some"}},
	} {
		var invalid *InvalidError
		if err := s.Validate(); !errors.As(err, &invalid) || invalid.Field != field {
			t.Errorf("Validate = %v, want an error of %s", err, field)
		}
	}
	good := Scheduling{Queues: map[string]QueueSettings{"q": w(WeightMin)}, Tenants: map[string]TenantSettings{"t": {Weight: new(float64(WeightMax)), MaxRunning: new(2)}}}
	if err := good.Validate(); err != nil {
		t.Errorf("Validate: %v", err)
	}
	c := good.Clone()
	*c.Queues["q"].Weight = 9
	*c.Tenants["t"].Weight, *c.Tenants["t"].MaxRunning = 9, 9
	if *good.Queues["q"].Weight != WeightMin || good.TenantWeight("t") != WeightMax || good.TenantMaxRunning("t") != 2 || good.TenantMaxRunning("other") != 0 || good.TenantWeight("other") != WeightDefault {
		t.Error("a clone shares its settings")
	}
}

func TestRetention(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		r       Retention
		state   State
		age     time.Duration
		forever bool
	}{
		{Retention{}, StateSucceeded, RetentionSucceededDefault, false},
		{Retention{}, StateDead, RetentionDeadDefault, false},
		{Retention{Succeeded: -1}, StateCancelled, 0, false},
		{Retention{Succeeded: time.Hour}, StateExpired, time.Hour, false},
		{Retention{Dead: -1}, StateDead, 0, true},
		{Retention{Dead: time.Hour}, StateDead, time.Hour, false},
	} {
		if age, forever := c.r.Age(c.state); age != c.age || forever != c.forever {
			t.Errorf("%+v keeps %s for %s, for ever %t; want %s, %t", c.r, c.state, age, forever, c.age, c.forever)
		}
	}
	for logs, want := range map[LogRetention][2]bool{"": {false, true}, LogsOfFailed: {false, true}, LogsOfAll: {true, true}, LogsOfNone: {false, false}} {
		r := Retention{Logs: logs}
		if got := [2]bool{r.KeepsLogs(false), r.KeepsLogs(true)}; got != want {
			t.Errorf("logs %q: kept %v, want %v", logs, got, want)
		}
	}
}

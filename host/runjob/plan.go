package runjob

import (
	"time"

	"github.com/taskhost/taskhost/abi"
	"github.com/taskhost/taskhost/handlers"
	"github.com/taskhost/taskhost/queue"
)

// plan pins the version and fills in the invocation.
func (a *Attempt) plan(v *handlers.Version, start time.Time) {
	j := a.job
	limits := effectiveLimits(v.Limits, a.r.o.Limits, j.Timeout)
	a.sink.Init(a.r.o.Notes, a.Ref(), limits)
	a.inv = handlers.Invocation{
		JobID: j.ID, Tenant: j.Tenant, Queue: j.Queue, Type: j.Type,
		Run: j.Run, Attempt: j.Attempt, MaxAttempts: queue.AttemptBudget(j.MaxAttempts),
		Payload: j.Payload, Headers: j.Headers, Checkpoint: j.Checkpoint,
		Version: v, Limits: limits, Deadline: start.Add(limits.Timeout), Alone: alone(j), Events: &a.sink,
	}
}

// alone reports whether a job is suspected of taking its neighbours down with it: its host or runner died under it in this
// run, or its last attempt had to be killed. One that ended at its deadline harmed nobody.
func alone(j *queue.Job) bool {
	return j.Crashes > 0 || j.Attempt > 1 && j.LastError != nil && j.LastError.Kind == abi.KindKilled
}

// effectiveLimits lays the version's limits over the defaults, and the job's timeout over both.
func effectiveLimits(version, defaults handlers.Limits, jobTimeout time.Duration) handlers.Limits {
	l := defaults
	if version.MemoryBytes > 0 {
		l.MemoryBytes = version.MemoryBytes
	}
	if version.ResultBytes > 0 {
		l.ResultBytes = version.ResultBytes
	}
	if version.LogBytes > 0 {
		l.LogBytes = version.LogBytes
	}
	if version.CheckpointBytes > 0 {
		l.CheckpointBytes = version.CheckpointBytes
	}
	if version.Fuel > 0 {
		l.Fuel = version.Fuel
	}
	if version.Timeout > 0 {
		l.Timeout = version.Timeout
	}
	if jobTimeout > 0 {
		l.Timeout = jobTimeout
	}
	return l
}

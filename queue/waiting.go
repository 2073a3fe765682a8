package queue

import (
	"context"
	"time"
)

// Explainer says why a job does not run. Every store implements it.
type Explainer interface {
	// WaitingOn lists everything that holds a scheduled or ready job back at this moment, in the order of the codes below;
	// it is empty for a job that runs or has ended, and for one that is next. ErrNotFound for a job that the tenant does not
	// have.
	WaitingOn(ctx context.Context, tenant, id string) ([]WaitReason, error)
}

// WaitCode names what a job, or a queue, waits for.
type WaitCode string

// What a job waits for. WaitPaused to WaitRate are also what holds a whole queue back.
const (
	WaitDelay            WaitCode = "delay"              // its due time: the producer asked for it
	WaitRetry            WaitCode = "retry_backoff"      // its due time: backoff after a failed attempt
	WaitDefer            WaitCode = "defer"              // its due time: the handler asked for it
	WaitPaused           WaitCode = "paused"             // its queue is paused
	WaitMaxRunning       WaitCode = "max_running"        // its queue runs as many jobs as it may
	WaitTenantMaxRunning WaitCode = "tenant_max_running" // its tenant runs as many jobs as it may
	WaitRate             WaitCode = "rate"               // its queue started as many jobs as its rate allows
	WaitKey              WaitCode = "concurrency_key"    // jobs with its concurrency key run, as many as may at once
	WaitAhead            WaitCode = "ahead"              // other jobs of its queue
)

// WaitReason is one thing that holds a job back.
type WaitReason struct {
	Code    WaitCode
	Until   time.Time // WaitDelay, WaitRetry, WaitDefer, WaitRate: store time
	Limit   int       // WaitMaxRunning, WaitTenantMaxRunning, WaitKey: the cap
	Running int       // WaitMaxRunning, WaitTenantMaxRunning, WaitKey: how many run under it
	Key     string    // WaitKey
	AtMost  int64     // WaitAhead: the other ready jobs of its queue that have its priority or a higher one
}

// WaitCodeOf is the code of a scheduled job.
func WaitCodeOf(r Reason) WaitCode {
	switch r {
	case ReasonRetry:
		return WaitRetry
	case ReasonDefer:
		return WaitDefer
	case ReasonDelay, ReasonNone:
	}
	return WaitDelay
}

package queue

import (
	"context"
	"fmt"
)

// Bulk changes many jobs in few steps.
type Bulk interface {
	// ChangeJobs makes one change to up to ChangeMax jobs of a tenant, in the order of ids. outcomes[i] belongs to ids[i]; they are
	// independent of each other. An error means that no outcome is known, and that the call may be made again: what was changed
	// already is then skipped. An ErrInvalid for a malformed change, too many ids, or one that is there twice.
	ChangeJobs(ctx context.Context, tenant string, c Change, ids []string) (outcomes []ChangeOutcome, err error)
}

// Change is what ChangeJobs does to each job.
type Change struct {
	Action  ChangeAction
	ToQueue string // replay only: the queue the job goes to; empty = its own
}

// ChangeAction names a change.
type ChangeAction string

// The changes, and the states they fit. A job in another state is skipped.
//
//	cancel  scheduled, ready     cancelled, as by CancelJob
//	        running              marked, as by CancelJob; skipped when it is marked already
//	retry   scheduled(retry)     ready at the tail of its queue, now instead of later
//	replay  dead                 a new run, as by ReplayDead; skipped while another job holds its unique key, and when it is erased
//	purge   all but running      removed, as by PurgeDead
//	erase   ended states         payload, result, checkpoint and log are removed, the record stays, with ErasedAt set
const (
	ChangeCancel ChangeAction = "cancel"
	ChangeRetry  ChangeAction = "retry"
	ChangeReplay ChangeAction = "replay"
	ChangePurge  ChangeAction = "purge"
	ChangeErase  ChangeAction = "erase"
)

// ChangeActions lists every change.
func ChangeActions() []ChangeAction {
	return []ChangeAction{ChangeCancel, ChangeRetry, ChangeReplay, ChangePurge, ChangeErase}
}

// Fits lists the states of jobs that the change may apply to, in the order of a job's life; nil for an unknown one.
func (a ChangeAction) Fits() []State {
	switch a {
	case ChangeCancel:
		return []State{StateScheduled, StateReady, StateRunning}
	case ChangeRetry:
		return []State{StateScheduled}
	case ChangeReplay:
		return []State{StateDead}
	case ChangePurge:
		return []State{StateScheduled, StateReady, StateSucceeded, StateDead, StateCancelled, StateExpired}
	case ChangeErase:
		return []State{StateSucceeded, StateDead, StateCancelled, StateExpired}
	}
	return nil
}

// ChangeMax is how many jobs one ChangeJobs takes.
const ChangeMax = 500

// ChangeOutcome is what became of one job.
type ChangeOutcome string

// What became of one job.
const (
	Changed       ChangeOutcome = "changed"
	ChangeSkipped ChangeOutcome = "skipped" // its state does not fit, or it needs no change
	ChangeMissing ChangeOutcome = "missing" // the tenant has no such job (any more)
)

// Validate checks the action and the queue.
func (c Change) Validate() error {
	if c.Action.Fits() == nil {
		return &InvalidError{Field: "action", Reason: fmt.Sprintf("must be one of %v, got %.40q", ChangeActions(), string(c.Action))}
	}
	if c.ToQueue == "" {
		return nil
	}
	if c.Action != ChangeReplay {
		return &InvalidError{Field: "to_queue", Reason: fmt.Sprintf("belongs to a replay only, got %.40q for %s", c.ToQueue, c.Action)}
	}
	return ValidName("to_queue", c.ToQueue)
}

// ValidChange checks the arguments of ChangeJobs.
func ValidChange(tenant string, c Change, ids []string) error {
	if err := ValidName("tenant", tenant); err != nil {
		return err
	}
	if len(ids) > ChangeMax {
		return &LimitError{Field: "ids", Limit: "ids", Max: ChangeMax, Got: int64(len(ids)), Unit: "jobs"}
	}
	seen := make(map[string]bool, len(ids))
	for _, id := range ids {
		if seen[id] {
			return &InvalidError{Field: "ids", Reason: fmt.Sprintf("must name each job once, %.64q is there twice", id)}
		}
		seen[id] = true
	}
	return c.Validate()
}

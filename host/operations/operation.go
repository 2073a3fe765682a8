// Package operations does long work on many jobs: cancel, retry, replay, purge and erase of everything a filter selects. An operation is
// a durable record, done in bounded chunks with its progress stored after each, so it survives its host, is resumed where it
// was, and can be watched and cancelled. What it works on is fixed when it is created: jobs that die (dead-letter queue) or are
// created (jobs in any state) later are not swept in.
//
//	running ──► succeeded
//	   ├──────► failed       the store refused a chunk for good
//	   └──────► cancelled    what was done until then stays done
package operations

import (
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/taskhost/taskhost/queue"
)

// Action is what an operation does.
type Action string

// The actions.
const (
	ActionReplay Action = "replay" // start a new run of each job
	ActionPurge  Action = "purge"  // remove each job
	ActionCancel Action = "cancel" // cancel each job that is not finished
	ActionRetry  Action = "retry"  // run each job that waits for its next attempt now
	ActionErase  Action = "erase"  // remove payload and result of each finished job; its record stays
)

// State is where an operation is.
type State string

// The states of an operation.
const (
	StateRunning   State = "running"
	StateSucceeded State = "succeeded"
	StateFailed    State = "failed"
	StateCancelled State = "cancelled"
)

// Operation describes an operation, as the API shows it.
type Operation struct {
	ID         string      `json:"id,omitempty"` // "op_" and 26 characters; empty for a dry run, which is not stored
	Tenant     string      `json:"tenant,omitempty"`
	Action     Action      `json:"action"`
	State      State       `json:"state"`
	Matched    int         `json:"matched"` // when it was created
	Done       int         `json:"done"`
	Skipped    int         `json:"skipped"` // left as they were: a unique key is held by another job, or the state changed meanwhile
	Failed     int         `json:"failed"`  // not reached because the operation failed
	Filter     Filter      `json:"filter"`  // of dead jobs, when Jobs is nil
	Jobs       *JobsFilter `json:"jobs,omitempty"`
	ToQueue    string      `json:"to_queue,omitempty"` // replay only; empty = the job's own queue
	DryRun     bool        `json:"dry_run,omitempty"`
	CreatedAt  time.Time   `json:"created_at"`
	FinishedAt *time.Time  `json:"finished_at"`
	Error      string      `json:"error,omitempty"`
}

// Filter is the part of queue.DeadFilter that people see.
type Filter struct {
	IDs              []string  `json:"ids,omitempty"`
	Queue            string    `json:"queue,omitempty"`
	Type             string    `json:"type,omitempty"`
	ErrorFingerprint string    `json:"error_fingerprint,omitempty"`
	DeadBefore       time.Time `json:"dead_before"` // fixed when it was created
}

// CountChangedError says that another number of jobs matches than the caller expected; nothing was done. It is a
// queue.ErrConflict.
type CountChangedError struct {
	Expected int
	Matched  int
}

func (e *CountChangedError) Error() string {
	return fmt.Sprintf("%d jobs match now, %d were expected; nothing was changed", e.Matched, e.Expected)
}

// Is makes errors.Is(err, queue.ErrConflict) true.
func (e *CountChangedError) Is(target error) bool { return target == queue.ErrConflict }

// StateError says that an operation is over and cannot be cancelled any more. It is a queue.ErrConflict.
type StateError struct {
	ID    string
	State State
}

func (e *StateError) Error() string { return fmt.Sprintf("cannot cancel %s: it is %s", e.ID, e.State) }

// Is makes errors.Is(err, queue.ErrConflict) true.
func (e *StateError) Is(target error) bool { return target == queue.ErrConflict }

// record is a stored operation: what is shown, and where the next chunk begins.
type record struct {
	Operation
	After   string `json:"after,omitempty"`
	Changed int    `json:"changed,omitempty"` // by the pass over the jobs that is under way

	revision int64
}

const kind = "operation"

// key begins with the tenant; ids rise with time, so the records of a tenant are in the order of their creation.
func key(tenant, id string) string { return tenant + "/" + id }

func decode(rec queue.Record) (*record, error) {
	r := &record{revision: rec.Revision}
	if err := json.Unmarshal(rec.Value, r); err != nil {
		return nil, fmt.Errorf("operation record %q cannot be read: %w", rec.Key, err)
	}
	return r, nil
}

// deadFilter selects what is left to do.
func (r *record) deadFilter() queue.DeadFilter {
	return queue.DeadFilter{Tenant: r.Tenant, IDs: r.Filter.IDs, Queue: r.Filter.Queue, Type: r.Filter.Type,
		ErrorFingerprint: r.Filter.ErrorFingerprint, DeadBefore: r.Filter.DeadBefore, After: r.After}
}

func (r *record) finish(s State, at time.Time) {
	r.State = s
	r.FinishedAt = &at
}

var errFinished = errors.New("operation finished elsewhere")

package queue

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// JobFilter selects jobs of one tenant. Zero fields do not filter; those that are set must all match.
type JobFilter struct {
	Tenant           string
	States           []State
	Reason           Reason // of scheduled jobs
	Queue            string
	Type             string
	Labels           map[string]string // all must match
	Query            string            // substring of the last error's message or of the id
	ErrorFingerprint string            // ErrorFingerprint of the last error
	Since            time.Time         // created at or after
	Before           time.Time         // created before
	FinishedSince    time.Time         // finished at or after; only finished jobs match
	FinishedBefore   time.Time         // finished before; only finished jobs match
	OldestFirst      bool              // by creation, up; otherwise down
	Cursor           string            // from JobPage.Next of a list with the same filter
	Limit            int               // 1–500; 0 = 50
}

// JobPage is one page of a list. Next is empty on the last page.
//
// A store looks at a bounded number of jobs per page, so that a page costs the same whatever there is behind it. With a
// filter that few jobs match, a page may therefore hold fewer jobs than the limit, even none, and still have a Next.
type JobPage struct {
	Jobs []*Job
	Next string
}

// Bounds of a page of jobs.
const (
	ListLimitDefault = 50
	ListLimitMax     = 500
)

// CursorMax is the length of a cursor, in bytes.
const CursorMax = 512

// PageLimit is Limit with its default applied.
func (f *JobFilter) PageLimit() int {
	if f.Limit == 0 {
		return ListLimitDefault
	}
	return f.Limit
}

// Validate checks a filter of ListJobs. Whether the cursor is one of the store's is the store's to check (BadCursor).
func (f *JobFilter) Validate() error {
	if err := ValidName("tenant", f.Tenant); err != nil {
		return err
	}
	for _, s := range f.States {
		if !slices.Contains(States(), s) {
			return &InvalidError{Field: "state", Reason: fmt.Sprintf("must be one of %v, got %q", States(), string(s))}
		}
	}
	if f.Limit < 0 || f.Limit > ListLimitMax {
		return &InvalidError{Field: "limit", Reason: fmt.Sprintf("must be between 1 and %d, got %d", ListLimitMax, f.Limit)}
	}
	if len(f.Cursor) > CursorMax {
		return &LimitError{Field: "cursor", Limit: "cursor", Max: CursorMax, Got: int64(len(f.Cursor)), Unit: "bytes"}
	}
	return nil
}

// BadCursor is what a store answers to a cursor that it did not make.
func BadCursor(cursor string) error {
	return &InvalidError{Field: "cursor", Reason: fmt.Sprintf("must come from an earlier page of the same list, got %.64q", cursor)}
}

// Wants reports whether the filter admits one of the states.
func (f *JobFilter) Wants(states ...State) bool {
	if !f.FinishedSince.IsZero() || !f.FinishedBefore.IsZero() {
		states = slices.DeleteFunc(slices.Clone(states), func(s State) bool { return !s.Terminal() })
	}
	if len(f.States) == 0 {
		return len(states) > 0
	}
	return slices.ContainsFunc(states, func(s State) bool { return slices.Contains(f.States, s) })
}

// Matches reports whether a job is selected; cursor and limit do not matter.
func (f *JobFilter) Matches(j *Job) bool {
	for k, v := range f.Labels {
		if got, ok := j.Labels[k]; !ok || got != v {
			return false
		}
	}
	return j.Tenant == f.Tenant &&
		(len(f.States) == 0 || slices.Contains(f.States, j.State)) &&
		(f.Reason == "" || j.Reason == f.Reason) &&
		(f.Queue == "" || j.Queue == f.Queue) &&
		(f.Type == "" || j.Type == f.Type) &&
		(f.Query == "" || strings.Contains(j.ID, f.Query) || j.LastError != nil && strings.Contains(j.LastError.Message, f.Query)) &&
		(f.ErrorFingerprint == "" || ErrorFingerprint(j.LastError) == f.ErrorFingerprint) &&
		within(j.CreatedAt, f.Since, f.Before) &&
		within(j.FinishedAt, f.FinishedSince, f.FinishedBefore)
}

// within reports whether from ≤ at < to, where a zero bound does not bind; a zero at is within no bound.
func within(at, from, to time.Time) bool {
	if from.IsZero() && to.IsZero() {
		return true
	}
	return !at.IsZero() && (from.IsZero() || !at.Before(from)) && (to.IsZero() || at.Before(to))
}

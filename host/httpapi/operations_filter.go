package httpapi

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/taskhost/taskhost/host/operations"
	"github.com/taskhost/taskhost/queue"
)

// Bounds of a filter.
const (
	filterIDsMax = 1000 // jobs that it may name
	queryMax     = 1024 // bytes of a text that is looked for
)

// readFilter reads the filter of an operation; named says that it may select jobs in any state.
func (r *deadRequest) readFilter(f fieldReader, named bool) error {
	known := []string{"ids", "queue", "type", "error_fingerprint"}
	dead := len(known)
	if named {
		known = append(known, "states", "labels", "q", "since", "before", "finished_since", "finished_before")
	}
	return f.s.Object(func(key string) (err error) {
		switch n := slices.Index(known, key); {
		case n < 0:
			return f.unknown(key, nil, known...)
		case n >= dead && r.general == "":
			r.general = f.at(key)
		}
		switch key {
		case "ids":
			if r.filter.IDs, err = f.names(key, filterIDsMax); err == nil && len(r.filter.IDs) == 0 {
				return invalid(f.at(key), "is empty: it would select every job; leave it out for that")
			}
		case "queue":
			r.filter.Queue, err = f.name(key)
		case "type":
			r.filter.Type, err = f.name(key)
		case "error_fingerprint":
			r.filter.ErrorFingerprint, err = f.filled(key, queue.KeyMax)
		case "states":
			var names []string
			if names, err = f.names(key, len(queue.States())); err == nil && len(names) == 0 {
				return invalid(f.at(key), "is empty: leave it out for the states that the action fits")
			}
			for _, name := range names {
				r.jobs.States = append(r.jobs.States, queue.State(name))
			}
		case "labels":
			r.jobs.Labels, err = f.table(key, queue.DefaultLimits().HeaderBytes)
		case "q":
			r.jobs.Query, err = f.filled(key, queryMax)
		case "since":
			r.jobs.Since, err = f.instant(key)
		case "before":
			r.jobs.Before, err = f.instant(key)
		case "finished_since":
			r.jobs.FinishedSince, err = f.instant(key)
		case "finished_before":
			r.jobs.FinishedBefore, err = f.instant(key)
		}
		return err
	})
}

func actionNames() string {
	var names []string
	for _, a := range queue.ChangeActions() {
		names = append(names, string(a))
	}
	return strings.Join(names, ", ")
}

// begin chooses between work on the dead-letter queue and work on jobs in any state.
func (s *Server) begin(ctx context.Context, tenant string, r *deadRequest) (operations.Operation, error) {
	dead := r.action == operations.ActionReplay || r.action == operations.ActionPurge
	if dead && r.general == "" {
		return s.opt.Operations.Create(ctx, tenant, r.action, r.filter, r.toQueue, r.expected, r.dryRun)
	}
	if !r.filter.DeadBefore.IsZero() {
		beside := r.general
		if beside == "" {
			beside = "the action " + string(r.action)
		}
		return operations.Operation{}, invalid("dead_before", "belongs to work on dead jobs and cannot stand beside %s; use filter.finished_before", beside)
	}
	r.jobs.IDs, r.jobs.Queue, r.jobs.Type, r.jobs.ErrorFingerprint = r.filter.IDs, r.filter.Queue, r.filter.Type, r.filter.ErrorFingerprint
	return s.opt.Operations.CreateJobs(ctx, tenant, operations.JobsRequest{Action: r.action, Filter: r.jobs, ToQueue: r.toQueue,
		ExpectedCount: r.expected, DryRun: r.dryRun})
}

func viewFilter(op *operations.Operation) JobsFilterView {
	f := op.Jobs
	if f == nil {
		d := op.Filter
		return JobsFilterView{FilterView: FilterView{IDs: d.IDs, Queue: d.Queue, Type: d.Type, ErrorFingerprint: d.ErrorFingerprint}}
	}
	return JobsFilterView{
		FilterView: FilterView{IDs: f.IDs, Queue: f.Queue, Type: f.Type, ErrorFingerprint: f.ErrorFingerprint},
		States:     f.States, Labels: f.Labels, Query: f.Query, Since: instantText(f.Since), Before: instantText(f.Before),
		FinishedSince: instantText(f.FinishedSince), FinishedBefore: instantText(f.FinishedBefore),
	}
}

// instantText is empty for no time.
func instantText(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format(timestampLayout)
}

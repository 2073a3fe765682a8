package httpapi

import (
	"context"
	"errors"
	"net/http"

	"github.com/taskhost/taskhost/host/httpapi/jsonin"
	"github.com/taskhost/taskhost/host/operations"
	"github.com/taskhost/taskhost/queue"
)

// Operations does long work on many jobs; *operations.Service is one.
type Operations interface {
	// Create begins an operation on dead jobs, CreateJobs one on jobs in any state; a dry run only counts, and its answer has no id.
	Create(ctx context.Context, tenant string, action operations.Action, f queue.DeadFilter, toQueue string, expectedCount *int, dryRun bool) (operations.Operation, error)
	CreateJobs(ctx context.Context, tenant string, req operations.JobsRequest) (operations.Operation, error)
	Get(ctx context.Context, tenant, id string) (operations.Operation, error)
	List(ctx context.Context, tenant string) ([]operations.Operation, error)
	Cancel(ctx context.Context, tenant, id string) (operations.Operation, error)
}

// Operation is long work in an answer.
type Operation struct {
	ID         Text              `json:"id" doc:"null for a dry run"`
	Action     operations.Action `json:"action" enum:"replay,purge,cancel,retry,erase"`
	State      operations.State  `json:"state" enum:"running,succeeded,failed,cancelled"`
	Matched    int               `json:"matched" doc:"jobs that matched when it was created"`
	Done       int               `json:"done"`
	Skipped    int               `json:"skipped" doc:"left alone: another job holds their unique key, or their state changed meanwhile"`
	Failed     int               `json:"failed"`
	Filter     JobsFilterView    `json:"filter"`
	DeadBefore Timestamp         `json:"dead_before" doc:"of an operation on dead jobs: those that died later are not touched"`
	ToQueue    Text              `json:"to_queue"`
	DryRun     bool              `json:"dry_run"`
	CreatedAt  Timestamp         `json:"created_at"`
	FinishedAt Timestamp         `json:"finished_at"`
	Error      Text              `json:"error"`
}

// FilterView is which dead jobs are meant; what is absent does not filter.
type FilterView struct {
	IDs              []string `json:"ids,omitempty" maxItems:"1000"`
	Queue            string   `json:"queue,omitempty"`
	Type             string   `json:"type,omitempty"`
	ErrorFingerprint string   `json:"error_fingerprint,omitempty" doc:"fingerprint of the last error"`
}

// JobsFilterView is which jobs are meant; what is absent does not filter.
type JobsFilterView struct {
	FilterView
	States         []queue.State     `json:"states,omitempty" doc:"default: those that the action fits; of a purge only dead"`
	Labels         map[string]string `json:"labels,omitempty" doc:"all must match"`
	Query          string            `json:"q,omitempty" doc:"part of the id or of the last error"`
	Since          string            `json:"since,omitempty" doc:"created at or after" example:"2026-11-30T03:10:00Z"`
	Before         string            `json:"before,omitempty" doc:"created before; at most when the operation was created"`
	FinishedSince  string            `json:"finished_since,omitempty" doc:"finished at or after"`
	FinishedBefore string            `json:"finished_before,omitempty" doc:"finished before"`
}

// OperationList lists operations, newest first.
type OperationList struct {
	Operations []Operation `json:"operations"`
	NextCursor Text        `json:"next_cursor" doc:"always null: the list is whole"`
}

// DeadRequest asks for work on dead jobs.
type DeadRequest struct {
	Filter        *FilterView `json:"filter,omitempty"`
	DeadBefore    string      `json:"dead_before,omitempty" example:"2026-11-30T03:10:00Z" doc:"default: now"`
	ExpectedCount *int        `json:"expected_count,omitempty" doc:"refuse with count_changed unless so many match"`
	ToQueue       string      `json:"to_queue,omitempty" doc:"of a replay: the queue they go to; default: their own"`
	DryRun        bool        `json:"dry_run,omitempty" doc:"only count"`
}

// OperationRequest asks for work on jobs in any state. A replay or purge that uses none of the fields from states to finished_before
// is one of dead jobs, as by /v1/dlq, and may have dead_before.
type OperationRequest struct {
	Action        string          `json:"action" enum:"cancel,retry,replay,purge,erase" doc:"cancel what is not finished; retry now what waits for its next attempt; replay dead jobs; purge; erase payload and result of finished jobs, whose record stays"`
	Filter        *JobsFilterView `json:"filter,omitempty"`
	DeadBefore    string          `json:"dead_before,omitempty" example:"2026-11-30T03:10:00Z" doc:"of dead jobs; default: now"`
	ExpectedCount *int            `json:"expected_count,omitempty" doc:"refuse with count_changed unless so many match"`
	ToQueue       string          `json:"to_queue,omitempty" doc:"of a replay: the queue they go to; default: their own"`
	DryRun        bool            `json:"dry_run,omitempty" doc:"only count"`
}

type operationPath struct {
	call
	ID string `path:"id" doc:"operation id"`
}

type operationAnswer struct {
	Status   int
	Location string `header:"Location"`
	Body     Operation
}

type operationListAnswer struct{ Body OperationList }

// deadRequest is a decoded body.
type deadRequest struct {
	action   operations.Action
	filter   queue.DeadFilter
	jobs     operations.JobsFilter // what only an operation on jobs in any state has
	general  string                // the first such field; empty = none
	toQueue  string
	expected *int
	dryRun   bool
}

func (s *Server) operationRoutes() {
	if s.opt.Operations == nil {
		return
	}
	dry := map[int]string{http.StatusOK: "a dry run: what would be done"}
	for _, r := range []struct {
		id, path, summary string
		action            operations.Action
	}{
		{"replay-dead", "/v1/dlq/replay", "Start a new run of dead jobs", operations.ActionReplay},
		{"purge-dead", "/v1/dlq/purge", "Remove dead jobs", operations.ActionPurge},
	} {
		register(s, route{
			id: r.id, method: http.MethodPost, path: r.path, tag: "dlq", status: http.StatusAccepted, summary: r.summary,
			description: "Answers an operation that goes on in the background, survives the host and can be watched and cancelled.",
			body:        s.jsonBody(false, schemaOf[DeadRequest](s)), also: dry,
		}, func(ctx context.Context, in *struct{ call }) (*operationAnswer, error) {
			return s.createOperation(ctx, &in.call, r.action)
		})
	}
	register(s, route{
		id: "create-operation", method: http.MethodPost, path: "/v1/operations", tag: "operations", status: http.StatusAccepted,
		summary: "Begin long work on many jobs", body: s.jsonBody(true, schemaOf[OperationRequest](s)), also: dry,
	}, func(ctx context.Context, in *struct{ call }) (*operationAnswer, error) {
		return s.createOperation(ctx, &in.call, "")
	})
	register(s, route{
		id: "list-operations", method: http.MethodGet, path: "/v1/operations", tag: "operations", summary: "List operations, newest first",
	}, func(ctx context.Context, in *struct{ call }) (*operationListAnswer, error) {
		ops, err := s.opt.Operations.List(ctx, in.tenant)
		if err != nil {
			return nil, err
		}
		list := OperationList{Operations: make([]Operation, len(ops))}
		for i, op := range ops {
			list.Operations[i] = viewOperation(op)
		}
		return &operationListAnswer{Body: list}, nil
	})
	register(s, route{
		id: "get-operation", method: http.MethodGet, path: "/v1/operations/{id}", tag: "operations", summary: "Show one operation",
	}, s.oneOperation(func(ctx context.Context, tenant, id string) (operations.Operation, error) {
		return s.opt.Operations.Get(ctx, tenant, id)
	}))
	register(s, route{
		id: "cancel-operation", method: http.MethodPost, path: "/v1/operations/{id}/cancel", tag: "operations",
		summary: "Stop an operation; what it has done stays done",
	}, s.oneOperation(func(ctx context.Context, tenant, id string) (operations.Operation, error) {
		return s.opt.Operations.Cancel(ctx, tenant, id)
	}))
}

func (s *Server) oneOperation(do func(ctx context.Context, tenant, id string) (operations.Operation, error)) func(context.Context, *operationPath) (*operationAnswer, error) {
	return func(ctx context.Context, in *operationPath) (*operationAnswer, error) {
		op, err := do(ctx, in.tenant, in.ID)
		if errors.Is(err, queue.ErrNotFound) {
			return nil, newProblem(CodeNotFound, "no operation %.80q", in.ID)
		}
		if err != nil {
			return nil, err
		}
		return &operationAnswer{Status: http.StatusOK, Body: viewOperation(op)}, nil
	}
}

// createOperation begins an operation. An empty action is named in the body.
func (s *Server) createOperation(ctx context.Context, in *call, action operations.Action) (*operationAnswer, error) {
	req := deadRequest{action: action}
	named := action == ""
	err := in.scan(!named, smallBodyBytes, func(sc *jsonin.Scanner) error {
		f := fieldReader{s: sc}
		return sc.Object(func(key string) error { return req.read(f, key, named) })
	})
	if err != nil {
		return nil, err
	}
	if req.action == "" {
		return nil, invalid("action", "is required: %s", actionNames())
	}
	op, err := s.begin(ctx, in.tenant, &req)
	if changed := (*operations.CountChangedError)(nil); errors.As(err, &changed) {
		p := newProblem(CodeCountChanged, "%s", changed)
		p.Field = "expected_count"
		return nil, p
	}
	if err != nil {
		return nil, err
	}
	answer := &operationAnswer{Status: http.StatusAccepted, Location: "/v1/operations/" + op.ID, Body: viewOperation(op)}
	if op.ID == "" {
		answer.Status, answer.Location = http.StatusOK, ""
	}
	return answer, nil
}

func (r *deadRequest) read(f fieldReader, key string, named bool) (err error) {
	known := []string{"filter", "dead_before", "expected_count", "to_queue", "dry_run"}
	switch key {
	case "action":
		if !named {
			return f.unknown(key, nil, known...)
		}
		var v string
		if v, err = f.str(key); err == nil && queue.ChangeAction(v).Fits() == nil {
			return invalid("action", "must be one of %s, got %.40q", actionNames(), v)
		}
		r.action = operations.Action(v)
	case "filter":
		err = r.readFilter(f.in(key), named)
	case "dead_before":
		r.filter.DeadBefore, err = f.instant(key)
	case "expected_count":
		var n int
		n, err = f.integer(key, 0, 1<<31-1)
		r.expected = &n
	case "to_queue":
		r.toQueue, err = f.name(key)
	case "dry_run":
		r.dryRun, err = f.boolean(key)
	default:
		if named {
			known = append(known, "action")
		}
		return f.unknown(key, nil, known...)
	}
	return err
}

func viewOperation(op operations.Operation) Operation {
	v := Operation{
		ID: Text(op.ID), Action: op.Action, State: op.State, Matched: op.Matched, Done: op.Done, Skipped: op.Skipped, Failed: op.Failed,
		Filter:     viewFilter(&op),
		DeadBefore: Timestamp{op.Filter.DeadBefore}, ToQueue: Text(op.ToQueue), DryRun: op.DryRun,
		CreatedAt: Timestamp{op.CreatedAt}, Error: Text(op.Error),
	}
	if op.FinishedAt != nil {
		v.FinishedAt = Timestamp{*op.FinishedAt}
	}
	return v
}

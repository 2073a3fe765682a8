package httpapi

import (
	"context"
	"fmt"
	"net/http"

	"github.com/taskhost/taskhost/host/httpapi/jsonin"
	"github.com/taskhost/taskhost/queue"
)

// retryAnswer is a job with the status of what became of it.
type retryAnswer struct {
	Status   int
	Location string `header:"Location"`
	Body     Job
}

type nothing struct{}

func (s *Server) steerRoutes() {
	register(s, route{
		id: "cancel-job", method: http.MethodPost, path: "/v1/jobs/{id}/cancel", tag: "jobs", summary: "Cancel a job",
		description: "A waiting job is cancelled at once; of a running one the handler is stopped, and cancel_requested is true until it is.",
	}, func(ctx context.Context, in *JobPath) (*jobAnswer, error) {
		job, err := s.opt.Store.CancelJob(ctx, in.tenant, in.ID)
		if err != nil {
			return nil, s.noJob(in.ID, err)
		}
		return &jobAnswer{Body: s.viewSingle(ctx, job)}, nil
	})
	register(s, route{
		id: "delete-job", method: http.MethodDelete, path: "/v1/jobs/{id}", tag: "jobs", status: http.StatusNoContent,
		summary: "Delete a job that does not run, with everything about it",
	}, func(ctx context.Context, in *JobPath) (*nothing, error) {
		if err := s.opt.Store.DeleteJob(ctx, in.tenant, in.ID); err != nil {
			return nil, s.noJob(in.ID, err)
		}
		return &nothing{}, nil
	})
	register(s, route{
		id: "retry-job", method: http.MethodPost, path: "/v1/jobs/{id}/retry", tag: "jobs", status: http.StatusCreated,
		summary: "Run a finished job again",
		description: "Without a body a dead job starts a new run (200). Another finished job, and any finished job with an edited payload in the " +
			"body, is enqueued anew as a copy that names it in retried_from (201). The copy has no idempotency key.",
		body: s.jsonBody(false, schemaOf[RetryRequest](s)),
		also: map[int]string{http.StatusOK: "a new run of the same job"},
	}, s.retryJob)
}

func (s *Server) retryJob(ctx context.Context, in *JobPath) (*retryAnswer, error) {
	edit, err := s.readRetry(in)
	if err != nil {
		return nil, err
	}
	job, err := s.opt.Store.GetJob(ctx, in.tenant, in.ID)
	if err != nil {
		return nil, s.noJob(in.ID, err)
	}
	if !job.State.Terminal() {
		return nil, &queue.StateError{JobID: job.ID, State: job.State, Op: "retry"}
	}
	if !job.ErasedAt.IsZero() && !edit.given {
		p := newProblem(CodeConflict, "cannot retry %s: its payload was erased; give another one", job.ID)
		p.JobID, p.State = job.ID, string(job.State)
		return nil, p
	}
	if job.State == queue.StateDead && !edit.given {
		return s.replayOne(ctx, job)
	}
	return s.retryCopy(ctx, job, edit)
}

// retryEdit is an edited payload.
type retryEdit struct {
	given   bool
	payload []byte
	json    bool
}

func (s *Server) readRetry(in *JobPath) (retryEdit, error) {
	var edit retryEdit
	err := in.scan(true, s.decoder.bounds.single, func(sc *jsonin.Scanner) error {
		builder := s.decoder.newJob(sc, "")
		return sc.Object(func(key string) (err error) {
			if edit.given {
				return invalid(key, `stands beside another payload; give one of "payload" and "payload_base64"`)
			}
			switch key {
			case "payload":
				edit.payload, err = builder.payload(key)
				edit.json = true
			case "payload_base64":
				edit.payload, err = builder.base64(key, s.opt.Limits.PayloadBytes)
			default:
				return builder.unknown(key, nil, "payload", "payload_base64")
			}
			edit.given = true
			return err
		})
	})
	return edit, err
}

// replayOne starts a new run of a dead job.
func (s *Server) replayOne(ctx context.Context, job *queue.Job) (*retryAnswer, error) {
	chunk, err := s.opt.Store.ReplayDead(ctx, queue.DeadFilter{Tenant: job.Tenant, IDs: []string{job.ID}}, "", 1)
	if err != nil {
		return nil, err
	}
	if chunk.Changed == 0 && chunk.Skipped > 0 {
		p := newProblem(CodeUniqueHeld, "cannot retry %s: its unique key %q is held by another job", job.ID, job.Unique.Key)
		p.Field = "unique.key"
		return nil, p
	}
	now, err := s.opt.Store.GetJob(ctx, job.Tenant, job.ID)
	if err != nil {
		return nil, s.noJob(job.ID, err)
	}
	if chunk.Changed == 0 { // someone else was faster
		return nil, &queue.StateError{JobID: now.ID, State: now.State, Op: "retry"}
	}
	return &retryAnswer{Status: http.StatusOK, Location: "/v1/jobs/" + now.ID, Body: s.viewSingle(ctx, now)}, nil
}

// retryCopy enqueues a copy of a finished job.
func (s *Server) retryCopy(ctx context.Context, job *queue.Job, edit retryEdit) (*retryAnswer, error) {
	priority := job.Priority
	spec := queue.JobSpec{
		Tenant: job.Tenant, Queue: job.Queue, Type: job.Type, Payload: job.Payload, PayloadJSON: job.PayloadJSON,
		Headers: job.Headers, Labels: job.Labels, Priority: &priority, Timeout: job.Timeout, MaxAttempts: job.MaxAttempts,
		Backoff: job.Backoff, Unique: job.Unique, RetriedFrom: job.ID,
	}
	if edit.given {
		spec.Payload, spec.PayloadJSON = edit.payload, edit.json
	}
	if err := spec.Validate(s.opt.Limits); err != nil {
		return nil, err
	}
	outcomes, err := s.opt.Store.Enqueue(ctx, []queue.JobSpec{spec})
	if err != nil {
		return nil, err
	}
	if len(outcomes) != 1 {
		return nil, fmt.Errorf("the store answered %d outcomes for 1 job", len(outcomes))
	}
	out := outcomes[0]
	if out.Err != nil {
		return nil, out.Err
	}
	created, err := s.opt.Store.GetJob(ctx, job.Tenant, out.ID)
	if err != nil {
		return nil, s.noJob(out.ID, err)
	}
	answer := &retryAnswer{Status: http.StatusCreated, Location: "/v1/jobs/" + created.ID, Body: s.viewSingle(ctx, created)}
	if out.Status == queue.EnqueueDuplicate {
		answer.Status = http.StatusOK
	}
	return answer, nil
}

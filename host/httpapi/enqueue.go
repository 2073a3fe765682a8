package httpapi

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/taskhost/taskhost/handlers"
	"github.com/taskhost/taskhost/host/httpapi/jsonin"
	"github.com/taskhost/taskhost/queue"
)

// Enqueued is the answer to one enqueued job. With wait it is the job as well.
type Enqueued struct {
	Outcome  string   `json:"outcome" enum:"created,duplicate"`
	ID       string   `json:"id"`
	Warnings []string `json:"warnings,omitempty" doc:"such as a type that no handler serves yet"`
}

// EnqueuedJob is the answer to one enqueued job that was waited for.
type EnqueuedJob struct {
	Outcome  string   `json:"outcome" enum:"created,duplicate"`
	Warnings []string `json:"warnings,omitempty"`
	Job
}

// BatchResult is the answer to a batch.
type BatchResult struct {
	Created   int            `json:"created"`
	Duplicate int            `json:"duplicate"`
	Rejected  int            `json:"rejected"`
	Unknown   int            `json:"unknown" doc:"the store did not answer: send these again with the same idempotency key"`
	Outcomes  []BatchOutcome `json:"outcomes" doc:"outcomes[i] belongs to jobs[i]"`
}

// BatchOutcome is what became of one job of a batch.
type BatchOutcome struct {
	Outcome  queue.EnqueueStatus `json:"outcome" enum:"created,duplicate,rejected,unknown"`
	ID       string              `json:"id,omitempty"`
	Warnings []string            `json:"warnings,omitempty"`
	Error    *BatchError         `json:"error,omitempty"`
}

// BatchError says why a job of a batch was rejected.
type BatchError struct {
	Code   Code   `json:"code"`
	Detail string `json:"detail"`
	Field  string `json:"field,omitempty" example:"jobs[2].queue"`
	Limit  string `json:"limit,omitempty"`
	JobID  string `json:"job_id,omitempty"`
	State  string `json:"state,omitempty"`
}

// enqueueAnswer is one of Enqueued, EnqueuedJob and BatchResult.
type enqueueAnswer struct {
	Status   int
	Location string `header:"Location"`
	Body     any
}

// enqueueInput is the input of POST /v1/jobs.
type enqueueInput struct {
	call
	WaitParam
	IdempotencyKey string `header:"Idempotency-Key" doc:"the same as the field idempotency_key"`
}

func (s *Server) enqueueRoutes() {
	register(s, route{
		id: "enqueue", method: http.MethodPost, path: "/v1/jobs", tag: "jobs", status: http.StatusCreated,
		summary: "Enqueue one job, or a batch of at most 1,000",
		description: "A created job is durable before the answer. The jobs of a batch are independent of each other; each has its " +
			"own outcome. With wait the answer is the job as well.",
		body: s.jsonBody(true, &huma.Schema{OneOf: []*huma.Schema{
			schemaOf[JobRequest](s), schemaOf[BatchRequest](s),
		}}),
		also: map[int]string{http.StatusOK: "a duplicate, or the outcomes of a batch"},
	}, s.enqueue)
	register(s, route{
		id: "enqueue-raw", method: http.MethodPost, path: "/v1/jobs/raw", tag: "jobs", status: http.StatusCreated,
		summary: "Enqueue one job whose payload is the body, byte for byte, whatever its content type",
		body:    binaryBody("application/octet-stream"),
		also:    map[int]string{http.StatusOK: "a duplicate"},
	}, s.enqueueRaw)
	s.documentEnqueue()
}

func (s *Server) enqueue(ctx context.Context, in *enqueueInput) (*enqueueAnswer, error) {
	wait, err := in.duration()
	if err != nil {
		return nil, err
	}
	req, err := s.readEnqueue(in)
	if err != nil {
		return nil, err
	}
	if req.batch {
		if in.Wait != "" {
			return nil, invalid("wait", "is for one job, not for a batch")
		}
		return s.enqueueBatch(ctx, req.items)
	}
	return s.enqueueOne(ctx, in.tenant, req.items[0].spec, wait)
}

// readEnqueue decodes the body and joins it with the Idempotency-Key header.
func (s *Server) readEnqueue(in *enqueueInput) (enqueueRequest, error) {
	if err := in.wantJSON(); err != nil {
		return enqueueRequest{}, err
	}
	decoder := s.decoder
	decoder.tenant = in.tenant
	body, err := in.body(decoder.bounds.single, decoder.bounds.batch, bodyReadTimeout)
	if err != nil {
		return enqueueRequest{}, err
	}
	scanner := s.scans.Get().(*jsonin.Scanner)
	scanner.Reset(body)
	req, err := decoder.decodeEnqueue(scanner, body)
	scanner.Reset(nil) // the pool must not hold the request
	s.scans.Put(scanner)
	if err != nil {
		return req, err
	}
	in.bodyDone()
	if in.IdempotencyKey == "" {
		return req, nil
	}
	if req.batch {
		return req, invalid("Idempotency-Key", "is for one job; give each job of a batch its own idempotency_key")
	}
	return req, joinKey(&req.items[0].spec, in.IdempotencyKey)
}

// joinKey takes the key of the Idempotency-Key header, which is the same as the field.
func joinKey(spec *queue.JobSpec, key string) error {
	if len(key) > queue.KeyMax {
		return invalid("Idempotency-Key", "must be 1 to %d bytes, got %d", queue.KeyMax, len(key))
	}
	if spec.IdempotencyKey != "" && spec.IdempotencyKey != key {
		return invalid("idempotency_key", "is %.80q in the body and %.80q in the Idempotency-Key header", spec.IdempotencyKey, key)
	}
	spec.IdempotencyKey = key
	return nil
}

// enqueueOne stores one job and, when asked to, waits for it.
func (s *Server) enqueueOne(ctx context.Context, tenant string, spec queue.JobSpec, wait time.Duration) (*enqueueAnswer, error) {
	outcomes, err := s.opt.Store.Enqueue(ctx, []queue.JobSpec{spec})
	if err != nil {
		return nil, err
	}
	if len(outcomes) != 1 {
		return nil, fmt.Errorf("the store answered %d outcomes for 1 job", len(outcomes))
	}
	out := outcomes[0]
	answer := &enqueueAnswer{Status: http.StatusCreated, Location: "/v1/jobs/" + out.ID}
	switch out.Status {
	case queue.EnqueueCreated:
	case queue.EnqueueDuplicate:
		answer.Status = http.StatusOK
	case queue.EnqueueRejected:
		return nil, out.Err
	case queue.EnqueueUnknown:
		return nil, errors.Join(queue.ErrUnavailable, out.Err)
	default:
		return nil, fmt.Errorf("the store answered the outcome %q", out.Status)
	}
	warnings := s.warnings(tenant, spec.Type)
	if wait == 0 {
		answer.Body = Enqueued{Outcome: string(out.Status), ID: out.ID, Warnings: warnings}
		return answer, nil
	}
	answer.Body = s.waitedFor(ctx, tenant, out, warnings, wait)
	return answer, nil
}

// waitedFor is the answer to a stored job when the wait is over. When waiting went wrong the answer still says that the job
// is stored, and what went wrong is a warning.
func (s *Server) waitedFor(ctx context.Context, tenant string, out queue.EnqueueOutcome, warnings []string, wait time.Duration) any {
	job, err := s.await(ctx, tenant, out.ID, wait, -1)
	if err != nil {
		warnings = append(warnings, "the job is stored, but waiting for it failed: "+s.problemOf(ctx, err).Detail)
		return Enqueued{Outcome: string(out.Status), ID: out.ID, Warnings: warnings}
	}
	return EnqueuedJob{Outcome: string(out.Status), Warnings: warnings, Job: s.viewSingle(ctx, job)}
}

// enqueueBatch stores the jobs that are not at fault in one call.
func (s *Server) enqueueBatch(ctx context.Context, items []decodedJob) (*enqueueAnswer, error) {
	specs := make([]queue.JobSpec, 0, len(items))
	for _, item := range items {
		if item.err == nil {
			specs = append(specs, item.spec)
		}
	}
	var outcomes []queue.EnqueueOutcome
	if len(specs) > 0 {
		var err error
		if outcomes, err = s.opt.Store.Enqueue(ctx, specs); err != nil {
			return nil, err
		}
		if len(outcomes) != len(specs) {
			return nil, fmt.Errorf("the store answered %d outcomes for %d jobs", len(outcomes), len(specs))
		}
	}
	result := BatchResult{Outcomes: make([]BatchOutcome, len(items))}
	for i, item := range items {
		out := queue.EnqueueOutcome{Status: queue.EnqueueRejected, Err: item.err}
		if item.err == nil {
			out, outcomes = outcomes[0], outcomes[1:]
			out.Err = located(fmt.Sprintf("jobs[%d]", i), out.Err)
		}
		result.Outcomes[i] = s.batchOutcome(ctx, &item.spec, out, &result)
		if e := result.Outcomes[i].Error; e != nil && e.Field != "" && !strings.HasPrefix(e.Field, "jobs[") {
			e.Field = fmt.Sprintf("jobs[%d].%s", i, e.Field)
		}
	}
	return &enqueueAnswer{Status: http.StatusOK, Body: result}, nil
}

func (s *Server) batchOutcome(ctx context.Context, spec *queue.JobSpec, out queue.EnqueueOutcome, sum *BatchResult) BatchOutcome {
	view := BatchOutcome{Outcome: out.Status, ID: out.ID}
	switch out.Status {
	case queue.EnqueueCreated:
		sum.Created++
		view.Warnings = s.warnings(spec.Tenant, spec.Type)
	case queue.EnqueueDuplicate:
		sum.Duplicate++
	case queue.EnqueueRejected:
		sum.Rejected++
	case queue.EnqueueUnknown:
		sum.Unknown++
	}
	if out.Err != nil {
		p := s.problemOf(ctx, out.Err)
		view.Error = &BatchError{Code: p.Code, Detail: p.Detail, Field: p.Field, Limit: p.Limit, JobID: p.JobID, State: p.State}
	}
	return view
}

// warnings says what does not stop a job from being stored but may stop it from running.
func (s *Server) warnings(tenant, typ string) []string {
	if s.hasHandler(tenant, typ) {
		return nil
	}
	return []string{fmt.Sprintf("no handler serves the type %q now; the job waits for one", typ)}
}

// hasHandler reports whether a handler serves the type, as far as that is known.
func (s *Server) hasHandler(tenant, typ string) bool {
	if s.opt.Types == nil {
		return true
	}
	_, err := s.opt.Types.Resolve(tenant, typ)
	return !errors.Is(err, handlers.ErrNoHandler)
}

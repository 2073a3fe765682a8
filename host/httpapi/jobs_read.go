package httpapi

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/taskhost/taskhost/queue"
)

// JobPath is the input of what is about one job.
type JobPath struct {
	call
	ID string `path:"id" doc:"job id" example:"job_01kb6x3v9se5h9r3t7d4m1n8qa"`
}

// JobList is one page of jobs, without payloads, results and attempts.
type JobList struct {
	Jobs       []Job `json:"jobs"`
	NextCursor Text  `json:"next_cursor" doc:"cursor of the next page, null on the last one; a page looks at a bounded number of jobs, so with a filter that few match it may be short or empty and still have a next one"`
}

// JobSelection is what selects jobs in a query, but for their state.
type JobSelection struct {
	call
	Queue          string `query:"queue"`
	Type           string `query:"type"`
	Query          string `query:"q" doc:"part of the job's id or of its last error"`
	Fingerprint    string `query:"error_fingerprint" doc:"fingerprint of the last error"`
	Since          string `query:"since" doc:"created at or after this time" example:"2026-11-30T03:00:00Z"`
	Before         string `query:"before" doc:"created before this time"`
	FinishedSince  string `query:"finished_since" doc:"finished at or after this time"`
	FinishedBefore string `query:"finished_before" doc:"finished before this time"`
	Order          string `query:"order" enum:"newest,oldest" doc:"which jobs come first, by creation; default newest"`
	Cursor         string `query:"cursor" doc:"next_cursor of the page before"`
	Limit          string `query:"limit" doc:"1 to 500 jobs; default 50"`
}

// listInput is the input of GET /v1/jobs; GET /v1/dlq has no state, which is dead.
type listInput struct {
	JobSelection
	State string `query:"state" doc:"one state, or several joined by commas" example:"ready,running"`
}

type jobAnswer struct{ Body Job }

type jobListAnswer struct{ Body JobList }

// bytesAnswer is raw bytes.
type bytesAnswer struct {
	ContentType string `header:"Content-Type"`
	Disposition string `header:"Content-Disposition"`
	Body        []byte
}

// Bounds of a page.
const (
	pageDefault = 50
	pageMax     = 500
)

func (s *Server) readRoutes() {
	labels := &huma.Param{
		Name: labelPrefix, In: "query", Description: "label.NAME=VALUE for every label that must match",
		Schema: &huma.Schema{Type: huma.TypeString},
	}
	register(s, route{
		id: "list-jobs", method: http.MethodGet, path: "/v1/jobs", tag: "jobs", summary: "List jobs",
		extra: []*huma.Param{labels},
	}, s.listJobs)
	register(s, route{
		id: "list-dead", method: http.MethodGet, path: "/v1/dlq", tag: "dlq", summary: "List dead jobs",
		extra: []*huma.Param{labels},
	}, func(ctx context.Context, in *JobSelection) (*jobListAnswer, error) {
		return s.listJobs(ctx, &listInput{JobSelection: *in, State: string(queue.StateDead)})
	})
	register(s, route{
		id: "get-job", method: http.MethodGet, path: "/v1/jobs/{id}", tag: "jobs", summary: "Show one job, now or when it is finished",
	}, s.getJob)
	register(s, route{
		id: "get-payload", method: http.MethodGet, path: "/v1/jobs/{id}/payload", tag: "jobs",
		summary: "The payload, byte for byte", content: "application/octet-stream",
	}, func(ctx context.Context, in *JobPath) (*bytesAnswer, error) {
		j, err := s.opt.Store.GetJob(ctx, in.tenant, in.ID)
		if err != nil {
			return nil, s.noJob(in.ID, err)
		}
		return answerBytes(j.ID, "payload", j.Payload, j.PayloadJSON), nil
	})
	register(s, route{
		id: "get-result", method: http.MethodGet, path: "/v1/jobs/{id}/result", tag: "jobs",
		summary: "The result of a succeeded job, byte for byte", content: "application/octet-stream",
	}, func(ctx context.Context, in *JobPath) (*bytesAnswer, error) {
		j, err := s.opt.Store.GetJob(ctx, in.tenant, in.ID)
		if err != nil {
			return nil, s.noJob(in.ID, err)
		}
		if j.State != queue.StateSucceeded {
			p := newProblem(CodeNotFound, "%s has no result: it is %s", j.ID, j.State)
			p.JobID, p.State = j.ID, string(j.State)
			return nil, p
		}
		return answerBytes(j.ID, "result", j.Result, isJSON(j.Result)), nil
	})
}

// answerBytes offers bytes as a download: they are a tenant's and must not run as a page of this server.
func answerBytes(id, what string, data []byte, text bool) *bytesAnswer {
	a := &bytesAnswer{ContentType: "application/octet-stream", Disposition: `attachment; filename="` + id + "." + what + `"`, Body: data}
	if text {
		a.ContentType = "application/json"
	}
	if a.Body == nil {
		a.Body = []byte{}
	}
	return a
}

// noJob says which job does not exist. The answer is the same for another tenant's job.
func (s *Server) noJob(id string, err error) error {
	if errors.Is(err, queue.ErrNotFound) {
		return newProblem(CodeNotFound, "no job %.80q", id)
	}
	return err
}

// getInput is the input of GET /v1/jobs/{id}.
type getInput struct {
	JobPath
	WaitParam
	AfterAttempt string `query:"after_attempt" doc:"with wait: answer as well as soon as more than so many attempts are recorded (the last 100 are)" example:"0"`
}

func (s *Server) getJob(ctx context.Context, in *getInput) (*jobAnswer, error) {
	wait, err := in.duration()
	if err != nil {
		return nil, err
	}
	after := -1
	if in.AfterAttempt != "" {
		if in.Wait == "" {
			return nil, invalid("after_attempt", "needs wait")
		}
		if after, err = parseInteger("after_attempt", in.AfterAttempt, 0, 1<<30); err != nil {
			return nil, err
		}
	}
	var job *queue.Job
	if wait > 0 {
		job, err = s.await(ctx, in.tenant, in.ID, wait, after)
	} else {
		job, err = s.opt.Store.GetJob(ctx, in.tenant, in.ID)
	}
	if err != nil {
		return nil, s.noJob(in.ID, err)
	}
	return &jobAnswer{Body: s.viewSingle(ctx, job)}, nil
}

func (s *Server) listJobs(ctx context.Context, in *listInput) (*jobListAnswer, error) {
	filter, err := in.filter()
	if err != nil {
		return nil, err
	}
	page, err := s.opt.Store.ListJobs(ctx, filter)
	if err != nil {
		return nil, err
	}
	list := JobList{Jobs: make([]Job, len(page.Jobs)), NextCursor: Text(page.Next)}
	for i, j := range page.Jobs {
		list.Jobs[i] = viewJob(j)
	}
	return &jobListAnswer{Body: list}, nil
}

func (in *listInput) filter() (queue.JobFilter, error) {
	f := queue.JobFilter{Tenant: in.tenant, Queue: in.Queue, Type: in.Type, Query: in.Query, ErrorFingerprint: in.Fingerprint,
		Cursor: in.Cursor, Limit: pageDefault}
	var err error
	if f.States, err = parseStates(in.State); err != nil {
		return f, err
	}
	for _, n := range [...]struct{ field, name string }{{"queue", in.Queue}, {"type", in.Type}} {
		if n.name != "" {
			if err := queue.ValidName(n.field, n.name); err != nil {
				return f, err
			}
		}
	}
	for _, t := range [...]struct {
		field, text string
		to          *time.Time
	}{
		{"since", in.Since, &f.Since}, {"before", in.Before, &f.Before},
		{"finished_since", in.FinishedSince, &f.FinishedSince}, {"finished_before", in.FinishedBefore, &f.FinishedBefore},
	} {
		if t.text == "" {
			continue
		}
		if *t.to, err = parseInstant(t.field, t.text); err != nil {
			return f, err
		}
	}
	switch in.Order {
	case "", "newest":
	case "oldest":
		f.OldestFirst = true
	default:
		return f, invalid("order", "must be newest or oldest, got %.40q", in.Order)
	}
	if f.Limit, err = parsePage(in.Limit); err != nil {
		return f, err
	}
	for name, values := range in.request.URL.Query() {
		if label, ok := strings.CutPrefix(name, labelPrefix); ok {
			if label == "" {
				return f, invalid(name, "names no label; use label.NAME=VALUE")
			}
			if f.Labels == nil {
				f.Labels = map[string]string{}
			}
			f.Labels[label] = values[0]
		}
	}
	return f, nil
}

// parsePage reads the limit of a list.
func parsePage(text string) (int, error) {
	if text == "" {
		return pageDefault, nil
	}
	return parseInteger("limit", text, 1, pageMax)
}

func parseStates(text string) ([]queue.State, error) {
	if text == "" {
		return nil, nil
	}
	var states []queue.State
	for name := range strings.SplitSeq(text, ",") {
		state := queue.State(name)
		if !knownState(state) {
			return nil, invalid("state", "%.40q is not a state; the states are %s", name, stateNames())
		}
		states = append(states, state)
	}
	return states, nil
}

func knownState(state queue.State) bool {
	for _, s := range queue.States() {
		if s == state {
			return true
		}
	}
	return false
}

func stateNames() string {
	var names []string
	for _, s := range queue.States() {
		names = append(names, string(s))
	}
	return strings.Join(names, ", ")
}

// viewSingle shows one job and what it waits for.
func (s *Server) viewSingle(ctx context.Context, j *queue.Job) Job {
	v := viewWhole(j)
	v.WaitingOn = s.waitingOn(ctx, j)
	return v
}

// waitingOn answers "why isn't it running?".
func (s *Server) waitingOn(ctx context.Context, j *queue.Job) []WaitingOn {
	if j.State != queue.StateScheduled && j.State != queue.StateReady {
		return nil
	}
	var list []WaitingOn
	blocked := s.blocked(j) // what only people can change comes before what time does
	if blocked != "" && j.State == queue.StateReady {
		list = append(list, WaitingOn{Code: blocked})
	}
	reasons, err := s.opt.Store.WaitingOn(ctx, j.Tenant, j.ID)
	if err != nil {
		return list // the job itself is known; why it waits is an addition
	}
	for _, r := range reasons {
		if blocked != "" && r.Code == queue.WaitDefer {
			// A host put it off, or would as soon as it is due: the handler is what it waits for.
			return append(list, WaitingOn{Code: blocked, Until: Timestamp{r.Until}})
		}
		list = append(list, WaitingOn{Code: string(r.Code), Until: Timestamp{r.Until}, Limit: r.Limit, Running: r.Running, AtMost: r.AtMost})
	}
	if blocked != "" && j.State == queue.StateScheduled {
		list = append(list, WaitingOn{Code: blocked})
	}
	return list
}

// blocked is what is the matter with the handler of a job, as a code of WaitingOn; empty if nothing is.
func (s *Server) blocked(j *queue.Job) string {
	if !s.hasHandler(j.Tenant, j.Type) {
		return "no_handler"
	}
	if s.opt.Types == nil || s.opt.Handlers == nil {
		return ""
	}
	v, err := s.opt.Types.Resolve(j.Tenant, j.Type)
	if err != nil {
		return ""
	}
	if _, is := s.opt.Handlers.Quarantined(j.Tenant, v.Tenant, v.Type, v.Number); is {
		return "quarantined"
	}
	return ""
}

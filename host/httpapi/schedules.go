package httpapi

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/taskhost/taskhost/host/schedules"
	"github.com/taskhost/taskhost/queue"
)

// Schedules keeps schedules; *schedules.Service is one.
type Schedules interface {
	Put(ctx context.Context, d schedules.Definition, create bool) (info schedules.Info, created bool, err error)
	Get(ctx context.Context, tenant, name string) (schedules.Info, error)
	List(ctx context.Context, tenant, after string, limit int) (list []schedules.Info, more bool, err error)
	SetPaused(ctx context.Context, tenant, name string, paused bool) (schedules.Info, error)
	Delete(ctx context.Context, tenant, name string) error
	Run(ctx context.Context, tenant, name string) (jobID string, err error)
}

// Schedule is a schedule in an answer.
type Schedule struct {
	Name          string            `json:"name"`
	Origin        schedules.Origin  `json:"origin" enum:"config,api" doc:"who owns it; one of the configuration can only be paused and resumed here"`
	Cron          string            `json:"cron"`
	TZ            string            `json:"tz" doc:"the time zone whose clock is meant"`
	CatchUp       schedules.CatchUp `json:"catch_up" enum:"none,one,all"`
	Paused        bool              `json:"paused"`
	Type          string            `json:"type"`
	Queue         string            `json:"queue"`
	Payload       Value             `json:"payload" doc:"the payload when it was given as JSON"`
	PayloadBase64 *Base64           `json:"payload_base64,omitempty" doc:"the payload when it was not given as JSON"`
	Priority      *int              `json:"priority" doc:"null = the queue's"`
	ExpiresIn     *int64            `json:"expires_in_ms" doc:"null = never"`
	Timeout       *int64            `json:"timeout_ms" doc:"of one attempt; null = the handler's"`
	MaxAttempts   *int              `json:"max_attempts" doc:"null = the server's default"`
	Backoff       *Backoff          `json:"backoff,omitempty" doc:"absent = the server's default"`
	Unique        *UniqueView       `json:"unique,omitempty"`
	Concurrency   Text              `json:"concurrency_key"`
	Labels        map[string]string `json:"labels,omitempty"`
	Headers       map[string]string `json:"headers,omitempty"`
	Next          []Timestamp       `json:"next" doc:"the next due times, at most 5; none while it is paused"`
	LastDue       Timestamp         `json:"last_due" doc:"the latest due time that was served"`
	LastJob       Text              `json:"last_job_id"`
	LastAt        Timestamp         `json:"last_enqueued_at"`
	Enqueued      int64             `json:"enqueued" doc:"due times whose job was enqueued"`
	Refused       int64             `json:"refused" doc:"due times whose job was refused; last_error says why"`
	Skipped       int64             `json:"skipped" doc:"due times that were missed and not caught up"`
	LastError     Text              `json:"last_error"`
	LastErrorAt   Timestamp         `json:"last_error_at"`
	CreatedAt     Timestamp         `json:"created_at"`
	UpdatedAt     Timestamp         `json:"updated_at"`
	Warnings      []string          `json:"warnings,omitempty" doc:"such as a type that no handler serves yet"`
}

// ScheduleList is one page of schedules, by name.
type ScheduleList struct {
	Schedules  []Schedule `json:"schedules"`
	NextCursor Text       `json:"next_cursor" doc:"cursor of the next page, null on the last one"`
}

type schedulePath struct {
	call
	Name string `path:"name" doc:"name of the schedule" example:"nightly"`
}

type schedulesInput struct {
	call
	Cursor string `query:"cursor" doc:"next_cursor of the page before"`
	Limit  string `query:"limit" doc:"1 to 500 schedules; default 50"`
}

type scheduleAnswer struct {
	Status   int
	Location string `header:"Location"`
	Body     Schedule
}

type scheduleListAnswer struct{ Body ScheduleList }

type runAnswer struct {
	Location string `header:"Location"`
	Body     Enqueued
}

func (s *Server) scheduleRoutes() {
	if s.opt.Schedules == nil {
		return
	}
	const tag = "schedules"
	body := s.jsonBody(true, schemaOf[ScheduleRequest](s))
	register(s, route{
		id: "list-schedules", method: http.MethodGet, path: "/v1/schedules", tag: tag, summary: "List schedules by name",
	}, s.listSchedules)
	register(s, route{
		id: "create-schedule", method: http.MethodPost, path: "/v1/schedules", tag: tag, status: http.StatusCreated,
		summary: "Create a schedule", body: s.jsonBody(true, schemaOf[NamedScheduleRequest](s)),
	}, func(ctx context.Context, in *struct{ call }) (*scheduleAnswer, error) {
		return s.putSchedule(ctx, &in.call, "")
	})
	register(s, route{
		id: "get-schedule", method: http.MethodGet, path: "/v1/schedules/{name}", tag: tag, summary: "Show one schedule and its next due times",
	}, func(ctx context.Context, in *schedulePath) (*scheduleAnswer, error) {
		info, err := s.opt.Schedules.Get(ctx, in.tenant, in.Name)
		return s.answerSchedule(info, in.Name, err)
	})
	register(s, route{
		id: "put-schedule", method: http.MethodPut, path: "/v1/schedules/{name}", tag: tag,
		summary:     "Create a schedule or replace it whole",
		description: "A new cron or tz counts from now on. 409 managed_by_config for a schedule that the configuration owns.",
		body:        body, also: map[int]string{http.StatusCreated: "created"},
	}, func(ctx context.Context, in *schedulePath) (*scheduleAnswer, error) {
		if err := queue.ValidName("name", in.Name); err != nil {
			return nil, err
		}
		return s.putSchedule(ctx, &in.call, in.Name)
	})
	register(s, route{
		id: "pause-schedule", method: http.MethodPatch, path: "/v1/schedules/{name}", tag: tag, summary: "Pause or resume a schedule",
		description: "Also one that the configuration owns. What falls into a pause is never caught up.",
		body:        s.jsonBody(true, schemaOf[PauseRequest](s)),
	}, s.pauseSchedule)
	register(s, route{
		id: "delete-schedule", method: http.MethodDelete, path: "/v1/schedules/{name}", tag: tag, status: http.StatusNoContent,
		summary: "Remove a schedule; jobs that it enqueued stay",
	}, func(ctx context.Context, in *schedulePath) (*nothing, error) {
		if err := s.opt.Schedules.Delete(ctx, in.tenant, in.Name); err != nil {
			return nil, scheduleProblem(in.Name, err)
		}
		return &nothing{}, nil
	})
	register(s, route{
		id: "run-schedule", method: http.MethodPost, path: "/v1/schedules/{name}/run", tag: tag, status: http.StatusCreated,
		summary: "Enqueue the job of a schedule now, beside its due times", description: "Also while it is paused.",
	}, func(ctx context.Context, in *schedulePath) (*runAnswer, error) {
		id, err := s.opt.Schedules.Run(ctx, in.tenant, in.Name)
		if err != nil {
			return nil, scheduleProblem(in.Name, err)
		}
		return &runAnswer{Location: "/v1/jobs/" + id, Body: Enqueued{Outcome: string(queue.EnqueueCreated), ID: id}}, nil
	})
}

// scheduleProblem names the schedule in an error about it.
func scheduleProblem(name string, err error) error {
	if e := (*schedules.ManagedError)(nil); errors.As(err, &e) {
		return newProblem(CodeManagedByConfig, "%s", e)
	}
	if errors.Is(err, queue.ErrNotFound) {
		return newProblem(CodeNotFound, "no schedule %.140q", name)
	}
	return err
}

func (s *Server) answerSchedule(info schedules.Info, name string, err error) (*scheduleAnswer, error) {
	if err != nil {
		return nil, scheduleProblem(name, err)
	}
	return &scheduleAnswer{Status: http.StatusOK, Body: s.viewSchedule(info)}, nil
}

func (s *Server) listSchedules(ctx context.Context, in *schedulesInput) (*scheduleListAnswer, error) {
	limit, err := parsePage(in.Limit)
	if err != nil {
		return nil, err
	}
	if in.Cursor != "" {
		if err := queue.ValidName("cursor", in.Cursor); err != nil {
			return nil, err
		}
	}
	infos, more, err := s.opt.Schedules.List(ctx, in.tenant, in.Cursor, limit)
	if err != nil {
		return nil, err
	}
	list := ScheduleList{Schedules: make([]Schedule, len(infos))}
	for i, info := range infos {
		list.Schedules[i] = s.viewSchedule(info)
	}
	if more && len(infos) > 0 {
		list.NextCursor = Text(infos[len(infos)-1].Name)
	}
	return &scheduleListAnswer{Body: list}, nil
}

func (s *Server) putSchedule(ctx context.Context, in *call, name string) (*scheduleAnswer, error) {
	d, err := s.readSchedule(in, name)
	if err != nil {
		return nil, err
	}
	info, created, err := s.opt.Schedules.Put(ctx, d, name == "")
	answer, err := s.answerSchedule(info, d.Name, err)
	if err == nil && created {
		answer.Status, answer.Location = http.StatusCreated, "/v1/schedules/"+d.Name
	}
	return answer, err
}

func (s *Server) viewSchedule(i schedules.Info) Schedule {
	j := &i.Job
	v := Schedule{
		Name: i.Name, Origin: i.Origin, Cron: i.Cron, TZ: i.TZ, CatchUp: i.CatchUp, Paused: i.Paused,
		Type: j.Type, Queue: j.Queue, Priority: j.Priority, Concurrency: Text(j.ConcurrencyKey), Labels: j.Labels, Headers: j.Headers, Next: make([]Timestamp, len(i.Next)),
		LastDue: Timestamp{i.LastDue}, LastJob: Text(i.LastJob), LastAt: Timestamp{i.LastAt}, Enqueued: i.Enqueued, Refused: i.Refused,
		Skipped: i.Skipped, LastError: Text(i.LastError), LastErrorAt: Timestamp{i.LastErrorAt},
		CreatedAt: Timestamp{i.CreatedAt}, UpdatedAt: Timestamp{i.UpdatedAt}, Warnings: s.warnings(i.Tenant, j.Type),
	}
	if v.TZ == "" {
		v.TZ = "UTC"
	}
	for n, at := range i.Next {
		v.Next[n] = Timestamp{at}
	}
	if j.PayloadJSON && isJSON(j.Payload) {
		v.Payload = Value(j.Payload)
	} else {
		v.PayloadBase64 = bytesView(j.Payload)
	}
	v.ExpiresIn, v.Timeout = millisOrNull(j.ExpiresIn), millisOrNull(j.Timeout)
	if j.MaxAttempts > 0 {
		v.MaxAttempts = &j.MaxAttempts
	}
	if b := j.Backoff; b != (queue.Backoff{}) {
		v.Backoff = &Backoff{BaseMS: b.Base.Milliseconds(), MaxMS: b.Max.Milliseconds(), Jitter: b.Jitter}
	}
	v.Unique = viewUnique(j.Unique)
	return v
}

func millisOrNull(d time.Duration) *int64 {
	if d == 0 {
		return nil
	}
	ms := d.Milliseconds()
	return &ms
}

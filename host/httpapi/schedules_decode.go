package httpapi

import (
	"context"
	"slices"

	"github.com/taskhost/taskhost/host/httpapi/jsonin"
	"github.com/taskhost/taskhost/host/schedules"
)

// ScheduleRequest is a schedule as it is asked for: when, and the job. At most one of payload and payload_base64 is given.
type ScheduleRequest struct {
	Cron          string            `json:"cron" maxLength:"256" example:"0 3 * * *" doc:"five fields, six with seconds first, @hourly and the like, or @every 90s"`
	TZ            string            `json:"tz,omitempty" maxLength:"64" example:"Europe/Rome" doc:"IANA time zone whose clock is meant; default UTC"`
	CatchUp       string            `json:"catch_up,omitempty" enum:"none,one,all" doc:"what becomes of due times that fell into a downtime; default none"`
	Paused        bool              `json:"paused,omitempty"`
	Type          string            `json:"type" example:"report"`
	Queue         string            `json:"queue,omitempty" doc:"default: default"`
	Payload       Value             `json:"payload,omitempty" doc:"any JSON value; at most 64 KiB"`
	PayloadBase64 string            `json:"payload_base64,omitempty" contentEncoding:"base64" doc:"any bytes"`
	Priority      *int              `json:"priority,omitempty" minimum:"-4095" maximum:"4095" doc:"default: the queue's"`
	ExpiresIn     string            `json:"expires_in,omitempty" example:"1h" doc:"a job expires unless it has started so long after its enqueue"`
	Timeout       string            `json:"timeout,omitempty" example:"30s" doc:"of one attempt; default: the handler's"`
	MaxAttempts   int               `json:"max_attempts,omitempty" minimum:"1" maximum:"1000"`
	Backoff       *BackoffRequest   `json:"backoff,omitempty"`
	Unique        *UniqueRequest    `json:"unique,omitempty" doc:"a due time whose job is refused for it is spent"`
	Concurrency   string            `json:"concurrency_key,omitempty" maxLength:"256"`
	Labels        map[string]string `json:"labels,omitempty"`
	Headers       map[string]string `json:"headers,omitempty"`
}

// NamedScheduleRequest is a ScheduleRequest with the name in it.
type NamedScheduleRequest struct {
	Name string `json:"name" example:"nightly" doc:"1 to 128 of A-Z a-z 0-9 . _ -, the first a letter or digit"`
	ScheduleRequest
}

// PauseRequest pauses or resumes.
type PauseRequest struct {
	Paused bool `json:"paused"`
}

// scheduleFields are the fields of a schedule in a request, its job's included.
func scheduleFields() []string {
	fields := []string{"cron", "tz", "catch_up", "paused"}
	for _, f := range jobFields() {
		if !slices.Contains(jobFieldsNotScheduled(), f) {
			fields = append(fields, f)
		}
	}
	return fields
}

// jobFieldsNotScheduled are fields of a job that a schedule decides itself.
func jobFieldsNotScheduled() []string { return []string{"delay", "idempotency_key"} }

// readSchedule decodes a body; a name of "" is in the body.
func (s *Server) readSchedule(in *call, name string) (schedules.Definition, error) {
	d := schedules.Definition{Tenant: in.tenant, Name: name}
	decoder := jobDecoder{limits: s.opt.Limits} // what is not given stays open, and follows the defaults
	decoder.limits.PayloadBytes = min(decoder.limits.PayloadBytes, schedules.PayloadMax)
	var job *jobBuilder
	err := in.scan(false, s.decoder.bounds.single, func(sc *jsonin.Scanner) error {
		job = decoder.newJob(sc, "")
		return sc.Object(func(key string) (err error) {
			switch {
			case key == "name" && name == "":
				d.Name, err = job.name(key)
			case key == "cron":
				d.Cron, err = job.str(key)
			case key == "tz":
				d.TZ, err = job.str(key)
			case key == "catch_up":
				var v string
				v, err = job.oneOf(key, string(schedules.CatchUpNone), string(schedules.CatchUpOne), string(schedules.CatchUpAll))
				d.CatchUp = schedules.CatchUp(v)
			case key == "paused":
				d.Paused, err = job.boolean(key)
			case slices.Contains(jobFieldsNotScheduled(), key) || !slices.Contains(jobFields(), key):
				return job.unknown(key, nil, scheduleFields()...)
			default:
				return job.field(key)
			}
			return err
		})
	})
	if err != nil {
		return d, err
	}
	switch {
	case d.Name == "":
		return d, invalid("name", "is required")
	case d.Cron == "":
		return d, invalid("cron", `is required, such as "0 3 * * *" or "@every 15m"`)
	case !slices.Contains(job.given, "type"):
		return d, invalid("type", "is required")
	case slices.Contains(job.given, "payload") && slices.Contains(job.given, "payload_base64"):
		return d, invalid("payload_base64", `stands beside "payload"; give one of them`)
	}
	j := &job.spec
	d.Job = schedules.Job{
		Type: j.Type, Queue: j.Queue, Payload: j.Payload, PayloadJSON: j.PayloadJSON, Priority: j.Priority, ExpiresIn: j.ExpiresIn,
		Timeout: j.Timeout, MaxAttempts: j.MaxAttempts, Backoff: j.Backoff, Labels: j.Labels, Headers: j.Headers, Unique: j.Unique,
		ConcurrencyKey: j.ConcurrencyKey,
	}
	return d, nil
}

func (s *Server) pauseSchedule(ctx context.Context, in *schedulePath) (*scheduleAnswer, error) {
	var paused *bool
	err := in.scan(false, smallBodyBytes, func(sc *jsonin.Scanner) error {
		f := fieldReader{s: sc}
		return sc.Object(func(key string) error {
			if key != "paused" {
				return f.unknown(key, nil, "paused")
			}
			v, err := f.boolean(key)
			paused = &v
			return err
		})
	})
	if err != nil {
		return nil, err
	}
	if paused == nil {
		return nil, invalid("paused", "is required: true or false")
	}
	info, err := s.opt.Schedules.SetPaused(ctx, in.tenant, in.Name, *paused)
	return s.answerSchedule(info, in.Name, err)
}

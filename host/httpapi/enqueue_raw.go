package httpapi

import (
	"context"
	"errors"
	"strconv"
	"time"

	"github.com/taskhost/taskhost/queue"
)

// rawInput is the input of POST /v1/jobs/raw.
type rawInput struct {
	call
	WaitParam
	Type           string `query:"type" doc:"task type" example:"image.resize"`
	Queue          string `query:"queue" doc:"default: default"`
	Priority       string `query:"priority" doc:"whole number in [-4095, 4095]"`
	Delay          string `query:"delay" example:"5m"`
	ExpiresIn      string `query:"expires_in" example:"1h"`
	Timeout        string `query:"timeout" example:"30s"`
	MaxAttempts    string `query:"max_attempts" doc:"whole number in [1, 1000]"`
	IdempotencyKey string `header:"Idempotency-Key" doc:"a repeated key answers the first job"`
}

func (s *Server) enqueueRaw(ctx context.Context, in *rawInput) (*enqueueAnswer, error) {
	wait, err := in.duration()
	if err != nil {
		return nil, err
	}
	spec, err := in.spec(s.opt.Defaults, s.opt.Limits)
	if err != nil {
		return nil, err
	}
	limit := int64(s.opt.Limits.PayloadBytes)
	spec.Payload, err = in.readAll(limit, bodyReadTimeout)
	if size := (*bodySizeError)(nil); errors.As(err, &size) && size.exact {
		return nil, &queue.LimitError{Field: "payload", Limit: "payload", Max: size.max, Got: size.got, Unit: "bytes"}
	}
	if err != nil {
		return nil, err
	}
	if err := spec.Validate(s.opt.Limits); err != nil {
		return nil, err
	}
	return s.enqueueOne(ctx, in.tenant, spec, wait)
}

// spec reads the parameters; the payload is still to come.
func (in *rawInput) spec(d Defaults, l queue.Limits) (queue.JobSpec, error) {
	spec := queue.JobSpec{Tenant: in.tenant, Type: in.Type, Queue: d.Queue, MaxAttempts: d.MaxAttempts, Backoff: d.Backoff}
	if in.Type == "" {
		return spec, invalid("type", "is required as a query parameter")
	}
	if in.Queue != "" {
		spec.Queue = in.Queue
	}
	if in.Priority != "" {
		p, err := parseInteger("priority", in.Priority, queue.PriorityMin, queue.PriorityMax)
		if err != nil {
			return spec, err
		}
		spec.Priority = &p
	}
	if in.MaxAttempts != "" {
		n, err := parseInteger("max_attempts", in.MaxAttempts, 1, queue.MaxAttemptsMax)
		if err != nil {
			return spec, err
		}
		spec.MaxAttempts = n
	}
	for _, d := range [...]struct {
		field, text string
		least, most time.Duration
		to          *time.Duration
	}{
		{"delay", in.Delay, 0, queue.DelayMax, &spec.Delay},
		{"expires_in", in.ExpiresIn, time.Millisecond, queue.DelayMax, &spec.ExpiresIn},
		{"timeout", in.Timeout, time.Millisecond, queue.TimeoutMax, &spec.Timeout},
	} {
		if d.text == "" {
			continue
		}
		v, err := parseDuration(d.field, d.text, d.least, d.most)
		if err != nil {
			return spec, err
		}
		*d.to = v
	}
	if in.IdempotencyKey != "" {
		if err := joinKey(&spec, in.IdempotencyKey); err != nil {
			return spec, err
		}
	}
	return spec, spec.Validate(l)
}

// parseInteger reads a whole number within [least, most].
func parseInteger(field, text string, least, most int) (int, error) {
	n, err := strconv.Atoi(text)
	if err != nil || n < least || n > most {
		return 0, invalid(field, "must be a whole number in [%d, %d], got %.40q", least, most, text)
	}
	return n, nil
}

package httpapi

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/taskhost/taskhost/host/httpapi/jsonin"
	"github.com/taskhost/taskhost/queue"
)

// jobFields are the fields of a job in a request.
func jobFields() []string {
	return []string{"type", "queue", "payload", "payload_base64", "priority", "delay", "expires_in", "timeout",
		"max_attempts", "backoff", "idempotency_key", "unique", "concurrency_key", "labels", "headers"}
}

// bodyBounds are the limits of the body of POST /v1/jobs. single is larger than what the scanner reads ahead, so that the key
// "jobs" is seen before the limit is met.
type bodyBounds struct {
	single int64 // one job
	batch  int64 // {"jobs":[…]}
}

// enqueueRequest is a decoded body of POST /v1/jobs. In a batch items[i].err says why jobs[i] is rejected; a single job
// at fault is an error of decodeEnqueue instead.
type enqueueRequest struct {
	batch bool
	items []decodedJob
}

type decodedJob struct {
	spec queue.JobSpec
	err  error
}

// jobDecoder reads jobs out of request bodies.
type jobDecoder struct {
	tenant   string
	limits   queue.Limits
	defaults Defaults
	bounds   bodyBounds
}

// decodeEnqueue reads one job or a batch. What it keeps of the body is bounded by the limits of the single fields; the
// body as a whole may be as long as one job until the key "jobs" makes it a batch.
func (d *jobDecoder) decodeEnqueue(s *jsonin.Scanner, body *bodyReader) (enqueueRequest, error) {
	var req enqueueRequest
	job := d.newJob(s, "")
	err := s.Object(func(key string) error {
		if key != "jobs" {
			if req.batch {
				return invalid(key, `is not a field beside "jobs"`)
			}
			return job.field(key)
		}
		if len(job.given) > 0 {
			return invalid("jobs", "stands alone: the body has the field %q of a single job too", job.given[0])
		}
		req.batch = true
		body.limit = d.bounds.batch
		return d.decodeBatch(s, &req)
	})
	if err != nil {
		return enqueueRequest{}, err
	}
	if !req.batch {
		spec, err := job.finish()
		if err != nil {
			return enqueueRequest{}, err
		}
		req.items = []decodedJob{{spec: spec}}
	} else if len(req.items) == 0 {
		return enqueueRequest{}, invalid("jobs", "must have 1 to %d jobs, got 0", queue.BatchMax)
	}
	return req, s.End()
}

func (d *jobDecoder) decodeBatch(s *jsonin.Scanner, req *enqueueRequest) error {
	if b, err := s.Peek(); err != nil {
		return err
	} else if b != '[' {
		return invalid("jobs", "must be an array of 1 to %d jobs", queue.BatchMax)
	}
	return s.Array(func(i int) error {
		if i >= queue.BatchMax {
			return invalid("jobs", "must have at most %d jobs", queue.BatchMax)
		}
		item, err := d.decodeItem(s, fmt.Sprintf("jobs[%d]", i))
		req.items = append(req.items, item)
		return err
	})
}

// decodeItem reads one job of a batch. A job at fault is read to its end, so that the others can be taken; the error is
// one of the body itself.
func (d *jobDecoder) decodeItem(s *jsonin.Scanner, path string) (decodedJob, error) {
	if b, err := s.Peek(); err != nil {
		return decodedJob{}, err
	} else if b != '{' {
		return decodedJob{err: invalid(path, "must be an object")}, s.Skip()
	}
	var fault error
	job := d.newJob(s, path)
	err := s.Object(func(key string) error {
		if fault != nil {
			return s.Skip()
		}
		before := s.Offset()
		err := job.field(key)
		if err == nil || !rejects(err) {
			return err
		}
		fault = err
		if s.Offset() == before { // refused by its name: the value is still to be read
			return s.Skip()
		}
		return nil
	})
	if err != nil || fault != nil {
		return decodedJob{err: fault}, err
	}
	spec, err := job.finish()
	return decodedJob{spec: spec, err: err}, nil
}

// rejects tells a field at fault, which rejects one job of a batch, from a body that cannot be read on.
func rejects(err error) bool {
	return errors.As(err, new(*queue.InvalidError)) || errors.As(err, new(*queue.LimitError))
}

// jobBuilder collects the fields of one job.
type jobBuilder struct {
	fieldReader
	limits queue.Limits
	spec   queue.JobSpec
	given  []string
}

func (d *jobDecoder) newJob(s *jsonin.Scanner, path string) *jobBuilder {
	return &jobBuilder{
		fieldReader: fieldReader{s: s, path: path},
		limits:      d.limits,
		spec: queue.JobSpec{
			Tenant: d.tenant, Queue: d.defaults.Queue, MaxAttempts: d.defaults.MaxAttempts, Backoff: d.defaults.Backoff,
		},
	}
}

// field reads the value of one field. It has consumed the value, unless the error is about the field's name.
func (j *jobBuilder) field(key string) (err error) {
	spec := &j.spec
	switch key {
	case "type":
		spec.Type, err = j.name(key)
	case "queue":
		spec.Queue, err = j.name(key)
	case "payload":
		spec.Payload, err = j.payload(key)
		spec.PayloadJSON = true
	case "payload_base64":
		spec.Payload, err = j.base64(key, j.limits.PayloadBytes)
	case "priority":
		var p int
		p, err = j.integer(key, queue.PriorityMin, queue.PriorityMax)
		spec.Priority = &p
	case "delay":
		spec.Delay, err = j.duration(key, 0, queue.DelayMax)
	case "expires_in":
		spec.ExpiresIn, err = j.duration(key, time.Millisecond, queue.DelayMax)
	case "timeout":
		spec.Timeout, err = j.duration(key, time.Millisecond, queue.TimeoutMax)
	case "max_attempts":
		spec.MaxAttempts, err = j.integer(key, 1, queue.MaxAttemptsMax)
	case "backoff":
		spec.Backoff, err = j.backoff(key)
	case "idempotency_key":
		spec.IdempotencyKey, err = j.filled(key, queue.KeyMax)
	case "concurrency_key":
		spec.ConcurrencyKey, err = j.filled(key, queue.KeyMax)
	case "unique":
		spec.Unique, err = j.unique(key)
	case "labels":
		spec.Labels, err = j.table(key, j.limits.HeaderBytes)
	case "headers":
		spec.Headers, err = j.table(key, j.limits.HeaderBytes)
	default:
		return j.unknown(key, nil, jobFields()...)
	}
	j.given = append(j.given, key)
	return err
}

// payload takes the bytes of the value as they stand.
func (j *jobBuilder) payload(key string) ([]byte, error) {
	raw, err := j.s.Value(j.limits.PayloadBytes)
	if size := (*jsonin.SizeError)(nil); errors.As(err, &size) {
		return nil, &queue.LimitError{Field: j.at(key), Limit: "payload", Max: size.Max, Got: size.Got, Unit: "bytes"}
	}
	return raw, err
}

func (j *jobBuilder) backoff(key string) (queue.Backoff, error) {
	b := j.spec.Backoff
	inner := j.in(key)
	err := j.object(key, func(field string) (err error) {
		switch field {
		case "base":
			b.Base, err = inner.duration(field, time.Millisecond, queue.DelayMax)
		case "max":
			b.Max, err = inner.duration(field, time.Millisecond, queue.DelayMax)
		case "jitter":
			var v string
			v, err = inner.oneOf(field, string(queue.JitterFull), string(queue.JitterNone))
			b.Jitter = queue.Jitter(v)
		default:
			return inner.unknown(field, nil, "base", "max", "jitter")
		}
		return err
	})
	return b, err
}

func (j *jobBuilder) unique(key string) (queue.Unique, error) {
	var u queue.Unique
	inner := j.in(key)
	err := j.object(key, func(field string) (err error) {
		var v string
		switch field {
		case "key":
			u.Key, err = inner.filled(field, queue.KeyMax)
		case "until":
			v, err = inner.oneOf(field, string(queue.UniqueUntilFinished), string(queue.UniqueUntilStarted), string(queue.UniqueUntilWindow))
			u.Until = queue.UniqueUntil(v)
		case "on_conflict":
			v, err = inner.oneOf(field, string(queue.UniqueReject), string(queue.UniqueExisting))
			u.OnConflict = queue.UniqueConflict(v)
		case "window":
			u.Window, err = inner.duration(field, time.Millisecond, queue.DelayMax)
		default:
			return inner.unknown(field, nil, "key", "until", "window", "on_conflict")
		}
		return err
	})
	if err == nil && u.Key == "" {
		err = invalid(inner.at("key"), "is required: 1 to %d bytes", queue.KeyMax)
	}
	return u, err
}

// object reads an inner object to its end even when a field is at fault, so that a batch can go on behind it.
func (f fieldReader) object(key string, field func(string) error) error {
	if b, err := f.s.Peek(); err != nil {
		return err
	} else if b != '{' {
		raw, err := f.raw(key)
		if err != nil {
			return err
		}
		return invalid(f.at(key), "must be an object, got %s", jsonin.Kind(raw))
	}
	var fault error
	err := f.s.Object(func(name string) error {
		if fault != nil {
			return f.s.Skip()
		}
		before := f.s.Offset()
		err := field(name)
		if err == nil || !rejects(err) {
			return err
		}
		fault = err
		if f.s.Offset() == before {
			return f.s.Skip()
		}
		return nil
	})
	if err != nil {
		return err
	}
	return fault
}

// finish checks the job as a whole.
func (j *jobBuilder) finish() (queue.JobSpec, error) {
	text, raw := slices.Contains(j.given, "payload"), slices.Contains(j.given, "payload_base64")
	switch {
	case !slices.Contains(j.given, "type"):
		return queue.JobSpec{}, invalid(j.at("type"), "is required")
	case text && raw:
		return queue.JobSpec{}, invalid(j.at("payload_base64"), `stands beside "payload"; give exactly one of them`)
	case !text && !raw:
		return queue.JobSpec{}, invalid(j.at("payload"), `is required: give exactly one of "payload" (JSON) and "payload_base64"`)
	}
	return j.spec, j.located(j.spec.Validate(j.limits))
}

// located puts the path of the job before the field of an error.
func (j *jobBuilder) located(err error) error { return located(j.path, err) }

// located returns err with path before its field, as in jobs[2].queue.
func located(path string, err error) error {
	if path == "" || err == nil {
		return err
	}
	if e := (*queue.InvalidError)(nil); errors.As(err, &e) {
		return &queue.InvalidError{Field: path + "." + e.Field, Reason: e.Reason}
	}
	if e := (*queue.LimitError)(nil); errors.As(err, &e) {
		moved := *e
		moved.Field = path + "." + e.Field
		return &moved
	}
	return err
}

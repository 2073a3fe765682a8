package httpapi

import (
	"net/http"
	"reflect"
	"strconv"
	"strings"

	"github.com/danielgtaylor/huma/v2"
)

// The types below are what request bodies look like. They are documented, never decoded into: see decode.go.

// JobRequest is a job as a producer asks for it. Exactly one of payload and payload_base64 is given.
type JobRequest struct {
	Type           string            `json:"type" example:"image.resize" doc:"task type: 1 to 128 of A-Z a-z 0-9 . _ -, the first a letter or digit"`
	Queue          string            `json:"queue,omitempty" doc:"default: default"`
	Payload        Value             `json:"payload,omitempty" doc:"any JSON value; stored byte for byte"`
	PayloadBase64  string            `json:"payload_base64,omitempty" contentEncoding:"base64" doc:"any bytes"`
	Priority       *int              `json:"priority,omitempty" minimum:"-4095" maximum:"4095" doc:"default: the queue's"`
	Delay          string            `json:"delay,omitempty" example:"5m" doc:"not before so long"`
	ExpiresIn      string            `json:"expires_in,omitempty" example:"1h" doc:"expires unless it has started by then"`
	Timeout        string            `json:"timeout,omitempty" example:"30s" doc:"of one attempt; default: the handler's"`
	MaxAttempts    int               `json:"max_attempts,omitempty" minimum:"1" maximum:"1000"`
	Backoff        *BackoffRequest   `json:"backoff,omitempty"`
	IdempotencyKey string            `json:"idempotency_key,omitempty" maxLength:"256" doc:"a repeated key answers the first job, for 24 h"`
	Unique         *UniqueRequest    `json:"unique,omitempty"`
	ConcurrencyKey string            `json:"concurrency_key,omitempty" maxLength:"256" doc:"of the jobs of a queue with the same key, max_per_key run at once; default 1"`
	Labels         map[string]string `json:"labels,omitempty" doc:"for searching; at most 64"`
	Headers        map[string]string `json:"headers,omitempty" doc:"passed to the handler"`
}

// BackoffRequest is exponential: attempt n is followed by a wait of at most base·2^(n-1), and at most max.
type BackoffRequest struct {
	Base   string `json:"base,omitempty" example:"1s"`
	Max    string `json:"max,omitempty" example:"1h"`
	Jitter string `json:"jitter,omitempty" enum:"full,none"`
}

// UniqueRequest holds a key while the job is unfinished, or for a time.
type UniqueRequest struct {
	Key        string `json:"key" maxLength:"256"`
	Until      string `json:"until,omitempty" enum:"finished,started,window" doc:"default: finished, which any terminal state is, dead too"`
	Window     string `json:"window,omitempty" example:"10m" doc:"of until = window: how long from the creation, whatever becomes of the job"`
	OnConflict string `json:"on_conflict,omitempty" enum:"reject,existing" doc:"default: reject"`
}

// BatchRequest is many jobs.
type BatchRequest struct {
	Jobs []JobRequest `json:"jobs" minItems:"1" maxItems:"1000"`
}

// RetryRequest is an edited payload: exactly one of the two.
type RetryRequest struct {
	Payload       Value  `json:"payload,omitempty"`
	PayloadBase64 string `json:"payload_base64,omitempty" contentEncoding:"base64"`
}

// LiveRequest names the version to make live.
type LiveRequest struct {
	Version int `json:"version" minimum:"1"`
	Percent int `json:"percent,omitempty" minimum:"100" maximum:"100" doc:"100 is the only value of this version, and the default"`
}

// schemaOf is the schema of an answer or a body.
func schemaOf[T any](s *Server) *huma.Schema {
	return s.api.OpenAPI().Components.Schemas.Schema(reflect.TypeFor[T](), true, "")
}

// documentEnqueue says which answer of POST /v1/jobs has which shape; huma sees only that there are several.
func (s *Server) documentEnqueue() {
	doc := s.api.OpenAPI()
	one := []*huma.Schema{
		schemaOf[Enqueued](s),
		schemaOf[EnqueuedJob](s),
	}
	batch := append(one[:2:2], schemaOf[BatchResult](s))
	for _, path := range []string{"/v1/jobs", "/v1/jobs/raw"} {
		responses := doc.Paths[path].Post.Responses
		responses[statusKey(http.StatusCreated)].Content = answers(one)
		duplicate := one
		if path == "/v1/jobs" {
			duplicate = batch
		}
		responses[statusKey(http.StatusOK)].Content = answers(duplicate)
	}
}

// polishSchemas says about answers what the Go types do not: that they may grow (a client must not refuse a field it does
// not know), and which references may be null.
func polishSchemas(components map[string]*huma.Schema) {
	for name, schema := range components {
		if !strings.HasSuffix(name, "Request") && schema.AdditionalProperties == false {
			schema.AdditionalProperties = nil
		}
	}
	for _, f := range [...]struct{ schema, field string }{
		{"Job", "last_error"}, {"Job", "handler"}, {"Job", "progress"}, {"Job", "unique"}, {"AttemptView", "error"},
		{"EnqueuedJob", "last_error"}, {"EnqueuedJob", "handler"}, {"EnqueuedJob", "progress"}, {"EnqueuedJob", "unique"},
	} {
		if s := components[f.schema]; s != nil && s.Properties[f.field] != nil {
			was := s.Properties[f.field]
			s.Properties[f.field] = &huma.Schema{AnyOf: []*huma.Schema{was, {Type: "null"}}, Description: was.Description}
		}
	}
}

func answers(of []*huma.Schema) map[string]*huma.MediaType {
	return map[string]*huma.MediaType{"application/json": {Schema: &huma.Schema{AnyOf: of}}}
}

func statusKey(status int) string { return strconv.Itoa(status) }

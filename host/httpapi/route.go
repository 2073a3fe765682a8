package httpapi

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humago"
)

// publicRoute in the metadata of an operation makes it answer without login.
const publicRoute = "public"

// labelPrefix begins the query parameters that filter by label.
const labelPrefix = "label."

// call is embedded in the input of every operation: the request itself and whose it is.
type call struct {
	request *http.Request
	writer  http.ResponseWriter
	tenant  string
}

// Resolve makes call a huma.Resolver.
func (c *call) Resolve(ctx huma.Context) []error {
	c.request, c.writer = humago.Unwrap(ctx)
	if e, ok := ctx.(*exchange); ok {
		c.tenant = e.tenant
	}
	return nil
}

// humaContext lets exchange embed a huma.Context, whose name is that of one of its methods.
type humaContext huma.Context

// exchange is a request on its way through huma. A Problem sets the status with which it is sent: huma answers bad
// parameters with 422, this API with 400.
type exchange struct {
	humaContext
	tenant string
	status int // 0 = as huma says
}

// Unwrap makes humago.Unwrap find the request.
func (e *exchange) Unwrap() huma.Context { return e.humaContext }

// SetStatus sends the status.
func (e *exchange) SetStatus(code int) {
	if e.status != 0 {
		code = e.status
	}
	e.humaContext.SetStatus(code)
}

// newAPI makes the huma API on the server's mux. Its document is served by this package, not by huma.
func (s *Server) newAPI() huma.API {
	format := huma.Format{Marshal: huma.DefaultJSONFormat.Marshal, Unmarshal: huma.DefaultJSONFormat.Unmarshal}
	api := humago.New(s.mux, huma.Config{
		OpenAPI: &huma.OpenAPI{
			OpenAPI: "3.1.0",
			Info: &huma.Info{
				Title:   "taskhost",
				Version: "v1",
				Description: "A job host. Names are snake_case, times RFC 3339 UTC with milliseconds, durations are given as \"90s\" and " +
					"answered in _ms, sizes in _bytes. Unknown fields and parameters are refused. Errors are application/problem+json.",
				License: &huma.License{Name: "Apache-2.0", Identifier: "Apache-2.0"},
			},
			Components: &huma.Components{Schemas: huma.NewMapRegistry("#/components/schemas/", huma.DefaultSchemaNamer)},
		},
		Formats:       map[string]huma.Format{"application/json": format, "json": format},
		DefaultFormat: "application/json",
		Transformers:  []huma.Transformer{s.transform},
	})
	api.UseMiddleware(s.enter)
	return api
}

// enter authenticates a request and refuses query parameters that its operation does not have.
func (s *Server) enter(ctx huma.Context, next func(huma.Context)) {
	e := &exchange{humaContext: ctx}
	r, w := humago.Unwrap(ctx)
	if ctx.Operation().Metadata[publicRoute] == nil {
		tenant, err := s.auth.Tenant(r)
		if err != nil {
			s.writeProblem(w, r, err)
			return
		}
		e.tenant = tenant
	}
	if err := checkQuery(ctx.Operation(), r); err != nil {
		s.writeProblem(w, r, err)
		return
	}
	next(e)
}

// checkQuery refuses query parameters that cannot be read, are given twice, or do not belong to the operation. It also
// writes the two that need no value in full, because huma loses them in front of others.
func checkQuery(op *huma.Operation, r *http.Request) error {
	if r.URL.RawQuery == "" {
		return nil
	}
	parts := strings.Split(r.URL.RawQuery, "&")
	for i, part := range parts {
		switch {
		case part == "wait" || part == "follow":
			parts[i] += "=" + bareParam
		case part != "" && !strings.Contains(part, "="):
			return invalid(part, "has no value")
		}
	}
	r.URL.RawQuery = strings.Join(parts, "&")
	query, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil {
		return invalid("query", "cannot be read: %s", err)
	}
	for name, values := range query {
		if len(values) > 1 {
			return invalid(name, "is given %d times", len(values))
		}
		known := slices.ContainsFunc(op.Parameters, func(p *huma.Param) bool {
			return p.In == "query" && (p.Name == name || p.Name == labelPrefix && strings.HasPrefix(name, p.Name))
		})
		if !known {
			return invalid(name, "is not a query parameter of this route")
		}
	}
	return nil
}

// transform is the last step before an answer is written; every error of an operation passes here as a Problem or as
// huma's own.
func (s *Server) transform(ctx huma.Context, _ string, v any) (any, error) {
	var p *Problem
	switch e := v.(type) {
	case *Problem:
		p = e
	case *huma.ErrorModel:
		p = s.problemOf(ctx.Context(), e)
	default:
		return v, nil
	}
	p.setRetryAfter(ctx.SetHeader)
	ctx.SetHeader("Content-Type", problemType)
	if e, ok := ctx.(*exchange); ok {
		e.status = p.Status
	}
	return p, nil
}

// route describes an operation of the API.
type route struct {
	id, method, path string
	summary          string
	description      string
	tag              string
	status           int               // of success; 0 = 200
	body             *huma.RequestBody // read by the operation itself
	also             map[int]string    // further statuses of success, with what they mean
	public           bool
	extra            []*huma.Param // parameters that are not fields of the input
	content          string        // content type of the answer when it is not JSON
}

// register adds an operation whose errors become Problems.
func register[I, O any](s *Server, rt route, run func(context.Context, *I) (*O, error)) {
	op := huma.Operation{
		OperationID: rt.id, Method: rt.method, Path: rt.path, Summary: rt.summary, Description: rt.description,
		Tags: []string{rt.tag}, DefaultStatus: rt.status, Parameters: rt.extra,
		Responses: map[string]*huma.Response{"default": {
			Description: "Error",
			Content: map[string]*huma.MediaType{problemType: {
				Schema: schemaOf[Problem](s),
			}},
		}},
	}
	if rt.public {
		op.Metadata = map[string]any{publicRoute: true}
	}
	huma.Register(s.api, op, func(ctx context.Context, in *I) (*O, error) {
		out, err := run(ctx, in)
		if err != nil {
			return nil, s.problemOf(ctx, err)
		}
		return out, nil
	})
	s.document(rt)
}

// document completes what huma wrote about an operation. The request body is added only now: huma would read a body that
// it knows of.
func (s *Server) document(rt route) {
	op := operationOf(s.api.OpenAPI().Paths[rt.path], rt.method)
	op.RequestBody = rt.body
	success := op.Responses[statusKey(op.DefaultStatus)]
	if rt.content != "" {
		success.Content = map[string]*huma.MediaType{rt.content: {Schema: &huma.Schema{Type: huma.TypeString, Format: "binary"}}}
	}
	for status, meaning := range rt.also {
		op.Responses[statusKey(status)] = &huma.Response{Description: meaning, Content: success.Content}
	}
}

func operationOf(item *huma.PathItem, method string) *huma.Operation {
	switch method {
	case http.MethodGet:
		return item.Get
	case http.MethodPost:
		return item.Post
	case http.MethodPut:
		return item.Put
	case http.MethodPatch:
		return item.Patch
	case http.MethodDelete:
		return item.Delete
	}
	return nil
}

// jsonBody documents a JSON body by the type it looks like.
func (s *Server) jsonBody(required bool, schema *huma.Schema) *huma.RequestBody {
	return &huma.RequestBody{Required: required, Content: map[string]*huma.MediaType{"application/json": {Schema: schema}}}
}

// binaryBody documents a body of raw bytes.
func binaryBody(types ...string) *huma.RequestBody {
	content := map[string]*huma.MediaType{}
	for _, t := range types {
		content[t] = &huma.MediaType{Schema: &huma.Schema{Type: huma.TypeString, Format: "binary"}}
	}
	return &huma.RequestBody{Required: true, Content: content}
}

// methods that routes have.
func routeMethods() []string {
	return []string{http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete}
}

// fallback answers what no route matches: 405 with Allow when the path exists for other methods, else 404.
func (s *Server) fallback(w http.ResponseWriter, r *http.Request) {
	var allowed []string
	for _, method := range routeMethods() {
		probe := &http.Request{Method: method, URL: r.URL, Host: r.Host}
		if _, pattern := s.mux.Handler(probe); pattern != "" && pattern != "/" {
			allowed = append(allowed, method)
		}
	}
	if len(allowed) > 0 {
		w.Header().Set("Allow", strings.Join(allowed, ", "))
		s.writeProblem(w, r, newProblem(CodeMethodNotAllowed, "%s takes %s, not %s", r.URL.Path, strings.Join(allowed, ", "), r.Method))
		return
	}
	s.writeProblem(w, r, newProblem(CodeNotFound, "no route %s %.200s; the routes are listed in /openapi.json", r.Method, r.URL.Path))
}

// writeProblem answers an error outside of huma.
func (s *Server) writeProblem(w http.ResponseWriter, r *http.Request, err error) {
	p := s.problemOf(r.Context(), err)
	p.setRetryAfter(w.Header().Set)
	w.Header().Set("Content-Type", problemType)
	w.WriteHeader(p.Status)
	if r.Method == http.MethodHead {
		return
	}
	body, err := marshalPlain(p)
	if err == nil {
		_, err = w.Write(append(body, '\n'))
	}
	if err != nil && !errors.Is(err, context.Canceled) {
		s.log.DebugContext(r.Context(), "an error answer did not arrive", slog.String("request_id", p.RequestID), slog.Any("error", err))
	}
}

package httpapi_test

import (
	"bytes"
	"encoding/json"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/danielgtaylor/huma/v2"
)

// checkContract validates an answer against the OpenAPI document. Every request of every test passes here.
func (s *site) checkContract(method, path string, a answer) {
	s.t.Helper()
	op := findOperation(s.server.API().OpenAPI(), method, path)
	if op == nil {
		if a.status < 400 && !strings.HasPrefix(path, "/docs") && !strings.HasPrefix(path, "/openapi") {
			s.t.Errorf("%s %s answers %d and is not in the OpenAPI document", method, path, a.status)
		}
		return
	}
	response := op.Responses[strconv.Itoa(a.status)]
	if response == nil && a.status >= 400 {
		response = op.Responses["default"]
	}
	if response == nil {
		s.t.Errorf("%s %s: the document does not know the status %d", method, path, a.status)
		return
	}
	if len(response.Content) == 0 {
		if len(a.body) > 0 {
			s.t.Errorf("%s %s: a body that the document does not know: %s", method, path, a.body)
		}
		return
	}
	contentType, _, _ := strings.Cut(a.header.Get("Content-Type"), ";")
	media := response.Content[contentType]
	if media == nil {
		if response.Content["application/octet-stream"] == nil {
			s.t.Errorf("%s %s: the document does not know the content type %q", method, path, contentType)
		}
		return
	}
	if strings.HasSuffix(contentType, "json") && contentType != "application/x-ndjson" {
		s.validate(method+" "+path, media.Schema, a.body)
	}
}

func (s *site) validate(what string, schema *huma.Schema, body []byte) {
	s.t.Helper()
	var v any
	d := json.NewDecoder(bytes.NewReader(body))
	d.UseNumber()
	if err := d.Decode(&v); err != nil {
		s.t.Errorf("%s: %v in %s", what, err, body)
		return
	}
	v = floats(v)
	s.schemas.Lock() // the messages are written into the shared schemas
	defer s.schemas.Unlock()
	schema.PrecomputeMessages()
	path, result := huma.NewPathBuffer([]byte{}, 0), &huma.ValidateResult{}
	huma.Validate(s.server.API().OpenAPI().Components.Schemas, schema, path, huma.ModeReadFromServer, v, result)
	for _, err := range result.Errors {
		s.t.Errorf("%s is not as documented: %v in %s", what, err, body)
	}
}

// floats makes every number a float64, as the validator wants them; one that is beyond them, as 1e400 in a payload, is
// infinite.
func floats(v any) any {
	switch v := v.(type) {
	case json.Number:
		f, _ := v.Float64() // ±Inf when out of range
		return f
	case []any:
		for i := range v {
			v[i] = floats(v[i])
		}
	case map[string]any:
		for k := range v {
			v[k] = floats(v[k])
		}
	}
	return v
}

// findOperation matches a path against the templates of the document; the one with fewer variables wins.
func findOperation(doc *huma.OpenAPI, method, path string) *huma.Operation {
	var best *huma.Operation
	variables := len(path)
	for template, item := range doc.Paths {
		want, got := strings.Split(template, "/"), strings.Split(path, "/")
		if len(want) != len(got) {
			continue
		}
		n, match := 0, true
		for i := range want {
			if strings.HasPrefix(want[i], "{") {
				n++
			} else if want[i] != got[i] {
				match = false
			}
		}
		if op := byMethod(item)[method]; match && op != nil && n < variables {
			best, variables = op, n
		}
	}
	return best
}

func byMethod(item *huma.PathItem) map[string]*huma.Operation {
	all := map[string]*huma.Operation{
		http.MethodGet: item.Get, http.MethodPost: item.Post, http.MethodPut: item.Put, http.MethodPatch: item.Patch, http.MethodDelete: item.Delete,
	}
	maps.DeleteFunc(all, func(_ string, op *huma.Operation) bool { return op == nil })
	return all
}

// The routes are a promise: this list only grows.
func TestDocumentHasEveryRoute(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	want := strings.Fields(`
		GET,/livez GET,/readyz GET,/v1/version
		POST,/v1/jobs POST,/v1/jobs/raw GET,/v1/jobs GET,/v1/jobs/{id} GET,/v1/jobs/{id}/payload GET,/v1/jobs/{id}/result GET,/v1/jobs/{id}/logs
		POST,/v1/jobs/{id}/cancel POST,/v1/jobs/{id}/retry DELETE,/v1/jobs/{id}
		GET,/v1/queues GET,/v1/queues/{queue} PATCH,/v1/queues/{queue}
		GET,/v1/dlq POST,/v1/dlq/replay POST,/v1/dlq/purge
		POST,/v1/operations GET,/v1/operations GET,/v1/operations/{id} POST,/v1/operations/{id}/cancel
		POST,/v1/handlers/{type}/versions GET,/v1/handlers GET,/v1/handlers/{type} GET,/v1/handlers/{type}/versions GET,/v1/handlers/{type}/versions/{version}
		PUT,/v1/handlers/{type}/live POST,/v1/handlers/{type}/rollback
		GET,/v1/schedules POST,/v1/schedules GET,/v1/schedules/{name} PUT,/v1/schedules/{name} PATCH,/v1/schedules/{name} DELETE,/v1/schedules/{name}
		POST,/v1/schedules/{name}/run
		GET,/v1/workers`)
	var got []string
	var doc struct {
		OpenAPI string                                `json:"openapi"`
		Paths   map[string]map[string]json.RawMessage `json:"paths"`
	}
	s.send("GET", "/openapi.json", nil).want(200).into(&doc)
	for path, item := range doc.Paths {
		for method, op := range item {
			got = append(got, strings.ToUpper(method)+","+path)
			if !strings.Contains(string(op), `"application/problem+json"`) {
				t.Errorf("%s %s documents no error", method, path)
			}
			// The document and the routes agree: no request to it falls through.
			sample := strings.NewReplacer("{id}", "job_x", "{queue}", "q", "{type}", "a", "{version}", "1", "{name}", "s").Replace(path)
			if a := s.send(strings.ToUpper(method), sample, nil); strings.Contains(string(a.body), "no route") {
				t.Errorf("%s %s is documented and does not exist", method, path)
			}
		}
	}
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		t.Errorf("the document has\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	if doc.OpenAPI != "3.1.0" {
		t.Errorf("OpenAPI %s", doc.OpenAPI)
	}
}

// References must lead somewhere.
func TestDocumentIsWhole(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	body := string(s.send("GET", "/openapi.json", nil).want(200).body)
	known := s.server.API().OpenAPI().Components.Schemas.Map()
	for _, part := range strings.Split(body, `"$ref": "#/components/schemas/`)[1:] {
		name, _, _ := strings.Cut(part, `"`)
		if known[name] == nil {
			t.Errorf("the schema %s is not there", name)
		}
	}
	if known["ErrorModel"] != nil || known["Problem"] == nil {
		t.Error("errors are not documented as problems")
	}
	if yaml := s.send("GET", "/openapi.yaml", nil).want(200); !strings.Contains(string(yaml.body), "/v1/jobs/{id}:") {
		t.Error("the YAML is not the document")
	}
}

func TestDocsPageLoadsNothingFromElsewhere(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	for path, contentType := range map[string]string{"/docs": "text/html; charset=utf-8", "/docs/docs.js": "text/javascript; charset=utf-8", "/docs/docs.css": "text/css; charset=utf-8"} {
		a := s.send("GET", path, nil).want(200)
		if a.header.Get("Content-Type") != contentType || !strings.Contains(a.header.Get("Content-Security-Policy"), "default-src 'none'") {
			t.Errorf("%s: %v", path, a.header)
		}
		for _, other := range []string{"http://", "https://", "//cdn", "innerHTML", "eval("} {
			if strings.Contains(string(a.body), other) {
				t.Errorf("%s has %q", path, other)
			}
		}
	}
}

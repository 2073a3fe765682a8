package httpapi_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/taskhost/taskhost/handlers"
	"github.com/taskhost/taskhost/host/httpapi"
	"github.com/taskhost/taskhost/queue"
	"github.com/taskhost/taskhost/queue/memq"
)

func TestUnknownRoutesAndMethods(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	for _, path := range []string{"/", "/v1", "/v1/", "/v1/nope", "/v2/jobs", "/v1/jobs/x/y/z", "/ui"} {
		s.send("GET", path, nil).wantProblem(404, httpapi.CodeNotFound, "")
	}
	for _, c := range []struct{ method, path, allow string }{
		{"PUT", "/v1/jobs", "GET, HEAD, POST"},
		{"DELETE", "/v1/queues", "GET, HEAD"},
		{"POST", "/livez", "GET, HEAD"},
		{"GET", "/v1/jobs/x/cancel", "POST"},
		{"OPTIONS", "/v1/jobs", "GET, HEAD, POST"},
		{"PATCH", "/v1/jobs/x", "GET, HEAD, DELETE"},
		{"BREW", "/v1/version", "GET, HEAD"},
		{"POST", "/openapi.json", "GET, HEAD"},
	} {
		a := s.send(c.method, c.path, nil)
		a.wantProblem(405, httpapi.CodeMethodNotAllowed, "")
		if got := a.header.Get("Allow"); got != c.allow {
			t.Errorf("%s %s: Allow %q, want %q", c.method, c.path, got, c.allow)
		}
	}
}

func TestContentType(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	for _, ct := range []string{"", "text/plain", "application/x-www-form-urlencoded", "application/jsonp", ";;"} {
		s.send("POST", "/v1/jobs", `{"type":"a","payload":1}`, "Content-Type", ct).wantProblem(415, httpapi.CodeUnsupportedMediaType, "")
		s.send("PATCH", "/v1/queues/q", `{"paused":true}`, "Content-Type", ct).wantProblem(415, httpapi.CodeUnsupportedMediaType, "")
	}
	s.send("POST", "/v1/jobs", "\x1f\x8b", "Content-Encoding", "gzip").wantProblem(415, httpapi.CodeUnsupportedMediaType, "")
	s.nothingStored()
	s.send("POST", "/v1/jobs", `{"type":"a","payload":1}`, "Content-Type", "Application/JSON; charset=utf-8", "Content-Encoding", "identity").want(201)
}

func TestQueryThatCannotBeRead(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	for query, field := range map[string]string{"type=a;b": "query", "q=%zz": "query", "type": "type", "queue&limit=3": "queue"} {
		s.send("GET", "/v1/jobs?"+query, nil).wantProblem(400, httpapi.CodeInvalid, field)
	}
}

func TestRequestID(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	if got := s.send("GET", "/livez", nil, "X-Request-Id", "trace-1.a_B").header.Get("X-Request-Id"); got != "trace-1.a_B" {
		t.Errorf("%q", got)
	}
	for _, bad := range []string{strings.Repeat("a", 65), "a b", `"x"`} {
		if got := s.send("GET", "/livez", nil, "X-Request-Id", bad).header.Get("X-Request-Id"); !strings.HasPrefix(got, "req_") {
			t.Errorf("%q was taken as %q", bad, got)
		}
	}
	if !strings.Contains(s.log.String(), "request_id=trace-1.a_B") {
		t.Errorf("not logged: %s", s.log)
	}
}

// broken is a store that answers every call with err, or panics.
type broken struct {
	*memq.Store
	err error
}

func (b *broken) fail() error {
	if b.err == nil {
		panic("the store exploded")
	}
	return b.err
}

func (b *broken) Enqueue(context.Context, []queue.JobSpec) ([]queue.EnqueueOutcome, error) {
	return nil, b.fail()
}
func (b *broken) GetJob(context.Context, string, string) (*queue.Job, error) { return nil, b.fail() }

func TestStoreFaults(t *testing.T) {
	t.Parallel()
	b := &broken{}
	s := newSite(t, func(o *httpapi.Options) {
		b.Store = o.Store.(*memq.Store)
		o.Store = b
	})
	const job = `{"type":"a","payload":1}`
	for _, err := range []error{queue.ErrUnavailable, queue.ErrClosed, errors.Join(errors.New("x"), queue.ErrUnavailable), context.DeadlineExceeded} {
		b.err = err
		for _, a := range []answer{
			s.send("POST", "/v1/jobs", job), s.send("POST", "/v1/jobs", `{"jobs":[`+job+`]}`), s.send("GET", "/v1/jobs/job_x", nil),
		} {
			a.wantProblem(503, httpapi.CodeUnavailable, "")
			if a.header.Get("Retry-After") != "1" {
				t.Errorf("Retry-After %q", a.header.Get("Retry-After"))
			}
		}
	}
	b.err = fmt.Errorf("%w: 16 modules of this tenant are waiting to be compiled", handlers.ErrBusy)
	if a := s.send("GET", "/v1/jobs/job_x", nil); a.wantProblem(429, httpapi.CodeLimitExceeded, "").RetryAfterMS != 5000 || a.header.Get("Retry-After") != "5" {
		t.Errorf("busy: Retry-After %q", a.header.Get("Retry-After"))
	}
	// What is nobody's business is in the log, not in the answer.
	b.err = errors.New("password=hunter2")
	if p := s.send("POST", "/v1/jobs", job).wantProblem(500, httpapi.CodeInternal, ""); strings.Contains(p.Detail, "hunter2") {
		t.Errorf("%+v", p)
	} else if !strings.Contains(s.log.String(), p.RequestID) {
		t.Error("the log does not know the request")
	}
	b.err = nil
	p := s.send("GET", "/v1/jobs/job_x", nil).wantProblem(500, httpapi.CodeInternal, "")
	if log := s.log.String(); !strings.Contains(log, "the store exploded") || !strings.Contains(log, "errors_test.go") || !strings.Contains(log, p.RequestID) {
		t.Errorf("the panic is not in the log: %s", log)
	}
	s.send("GET", "/livez", nil).want(200)
}

// gone is the connection of a caller who left.
type gone struct{ header http.Header }

func (g gone) Header() http.Header { return g.header }
func (gone) WriteHeader(int)       {}
func (gone) Write([]byte) (int, error) {
	return 0, &net.OpError{Op: "write", Err: errors.New("broken pipe")}
}

func TestCallerWhoLeftIsNoFault(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	defer func() {
		if err, _ := recover().(error); !errors.Is(err, http.ErrAbortHandler) {
			t.Errorf("recovered %v", err)
		}
		if log := s.log.String(); strings.Contains(log, "level=ERROR") || !strings.Contains(log, "broken pipe") {
			t.Errorf("the log has %s", log)
		}
	}()
	r := httptest.NewRequestWithContext(t.Context(), "GET", "http://127.0.0.1/v1/version", nil)
	s.server.Handler().ServeHTTP(gone{header: http.Header{}}, r)
}

func TestHostAndOrigin(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	for _, host := range []string{"localhost", "localhost:7070", "127.0.0.1", "127.1.2.3:80", "[::1]:7070", "[::1]"} {
		s.send("GET", "/v1/version", nil, "Host", host).want(200)
	}
	for _, host := range []string{"evil.example", "evil.example:7070", "10.0.0.1", "localhost.evil.example", "127.0.0.1.nip.io", "[2001:db8::1]:80"} {
		s.send("GET", "/v1/version", nil, "Host", host).wantProblem(403, httpapi.CodeForbidden, "")
	}
	const job = `{"type":"a","payload":1}`
	s.send("POST", "/v1/jobs", job, "Sec-Fetch-Site", "cross-site").wantProblem(403, httpapi.CodeForbidden, "")
	s.send("POST", "/v1/jobs", job, "Origin", "https://evil.example").wantProblem(403, httpapi.CodeForbidden, "")
	s.send("DELETE", "/v1/jobs/job_x", nil, "Sec-Fetch-Site", "same-site").wantProblem(403, httpapi.CodeForbidden, "")
	s.nothingStored()
	s.send("POST", "/v1/jobs", job, "Sec-Fetch-Site", "same-origin").want(201)
	s.send("POST", "/v1/jobs", job, "Origin", s.http.URL).want(201)

	remote := newSite(t, func(o *httpapi.Options) { o.AllowRemote = true })
	remote.send("GET", "/v1/version", nil, "Host", "jobs.example").want(200)
}

// keyed is an Authenticator with a login.
type keyed struct{}

func (keyed) Login() bool { return true }

func (keyed) Tenant(r *http.Request) (string, error) {
	switch r.Header.Get("Authorization") {
	case "Bearer a":
		return "a", nil
	case "Bearer b":
		return "b", nil
	case "":
		return "", &httpapi.Problem{Type: "urn:taskhost:error:unauthorized", Code: httpapi.CodeUnauthorized, Status: 401, Title: "Login needed", Detail: "no key"}
	}
	return "", &httpapi.Problem{Type: "urn:taskhost:error:forbidden", Code: httpapi.CodeForbidden, Status: 403, Title: "Not allowed", Detail: "revoked"}
}

func TestTenants(t *testing.T) {
	t.Parallel()
	s := newSite(t, func(o *httpapi.Options) { o.Auth = keyed{} })
	const job = `{"type":"x","payload":1,"idempotency_key":"k"}`
	s.send("POST", "/v1/jobs", job).wantProblem(401, httpapi.CodeUnauthorized, "")
	s.send("POST", "/v1/jobs", job, "Authorization", "Bearer c").wantProblem(403, httpapi.CodeForbidden, "")
	s.nothingStored()
	s.send("GET", "/livez", nil).want(200)
	s.send("GET", "/readyz", nil).want(200)
	a := s.send("POST", "/v1/jobs", job, "Authorization", "Bearer a").want(201).object()["id"].(string)
	b := s.send("POST", "/v1/jobs", job, "Authorization", "Bearer b").want(201).object()["id"].(string)
	if a == b {
		t.Fatal("two tenants share a key")
	}
	s.send("GET", "/v1/jobs/"+a, nil, "Authorization", "Bearer a").want(200)
	s.send("GET", "/v1/jobs/"+a, nil, "Authorization", "Bearer b").wantProblem(404, httpapi.CodeNotFound, "")
	if jobs := s.send("GET", "/v1/jobs", nil, "Authorization", "Bearer b").want(200).object()["jobs"].([]any); len(jobs) != 1 {
		t.Errorf("%v", jobs)
	}
}

func TestListenAddress(t *testing.T) {
	t.Parallel()
	for listen, ok := range map[string]bool{
		"127.0.0.1:0": true, "localhost:7070": true, "[::1]:0": true, "": true,
		":7070": false, "0.0.0.0:0": false, "[::]:0": false, "192.168.1.2:1": false, "example.com:80": false, "7070": false,
	} {
		store := memq.New(memq.Options{})
		_, err := httpapi.New(httpapi.Options{Store: store, Listen: listen})
		if (err == nil) != ok {
			t.Errorf("%q: %v", listen, err)
		}
		if listen != "7070" {
			if _, err := httpapi.New(httpapi.Options{Store: store, Listen: listen, AllowRemote: true}); err != nil {
				t.Errorf("%q, allowed: %v", listen, err)
			}
		}
	}
	if _, err := httpapi.New(httpapi.Options{}); err == nil {
		t.Error("no store")
	}
}

func TestStartAndStop(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	store := memq.New(memq.Options{})
	s, err := httpapi.New(httpapi.Options{Store: store, Listen: "127.0.0.1:0"})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Start(ctx); err != nil {
		t.Fatal(err)
	}
	if err := s.Start(ctx); err == nil {
		t.Error("started twice")
	}
	transport := &http.Transport{}
	defer transport.CloseIdleConnections()
	client := &http.Client{Transport: transport}
	get := func() error {
		req, err := http.NewRequestWithContext(ctx, "GET", "http://"+s.Addr().String()+"/livez", nil)
		if err != nil {
			return err
		}
		resp, err := client.Do(req)
		if err != nil {
			return err
		}
		return resp.Body.Close()
	}
	if err := get(); err != nil {
		t.Fatal(err)
	}
	taken, err := httpapi.New(httpapi.Options{Store: store, Listen: s.Addr().String()})
	if err != nil {
		t.Fatal(err)
	}
	if err := taken.Start(ctx); err == nil || !strings.Contains(err.Error(), s.Addr().String()) {
		t.Errorf("a taken port: %v", err)
	}
	for range 2 {
		if err := s.Stop(ctx); err != nil {
			t.Error(err)
		}
	}
	if err := get(); err == nil {
		t.Error("served after Stop")
	}
	if err := taken.Stop(ctx); err != nil { // never started
		t.Error(err)
	}
	if err := taken.Start(ctx); err == nil {
		t.Error("started after Stop")
	}
}

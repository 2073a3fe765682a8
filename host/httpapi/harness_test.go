package httpapi_test

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/taskhost/taskhost/handlers"
	"github.com/taskhost/taskhost/handlers/handlertest"
	"github.com/taskhost/taskhost/host/catalog"
	"github.com/taskhost/taskhost/host/httpapi"
	"github.com/taskhost/taskhost/host/operations"
	"github.com/taskhost/taskhost/host/schedules"
	"github.com/taskhost/taskhost/host/workers"
	"github.com/taskhost/taskhost/queue"
	"github.com/taskhost/taskhost/queue/memq"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// site is a server on a memory store, with the real catalogue and the real operations.
type site struct {
	t        *testing.T
	store    *memq.Store
	clock    *clock
	registry *handlers.Registry
	server   *httpapi.Server
	http     *httptest.Server
	client   *http.Client
	log      *syncBuffer
	schemas  sync.Mutex
}

// clock is store time that only the test moves.
type clock struct {
	mu  sync.Mutex
	now time.Time
}

func (c *clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *clock) advance(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
}

// NewTimer never fires: the tests call Maintain themselves.
func (*clock) NewTimer(time.Duration) (<-chan time.Time, func() bool) {
	return nil, func() bool { return true }
}

// zeros is the random of deterministic ids.
type zeros struct{}

func (zeros) Read(b []byte) (int, error) {
	clear(b)
	return len(b), nil
}

type syncBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (s *syncBuffer) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.Write(p)
}

func (s *syncBuffer) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.String()
}

// uploads is a runtime that takes modules: those that begin with "bad" are refused.
type uploads struct{ *handlertest.Func }

func (uploads) Admit(_ context.Context, req handlers.AdmitRequest) (*handlers.Admission, error) {
	if bytes.HasPrefix(req.Module, []byte("bad")) {
		return nil, &handlers.Refusal{Reason: "imports are not known", Details: []string{"env.abort(i32)", "env.memory"}}
	}
	return &handlers.Admission{SizeBytes: len(req.Module), Kind: handlers.KindReactor, Imports: []string{"taskhost_v1.input_read"}}, nil
}

func newSite(t *testing.T, change ...func(*httpapi.Options)) *site {
	t.Helper()
	s := &site{t: t, clock: &clock{now: time.Date(2026, 11, 30, 3, 0, 0, 0, time.UTC)}, registry: &handlers.Registry{}, log: &syncBuffer{}}
	s.store = memq.New(memq.Options{Clock: s.clock, Random: zeros{}})
	log := slog.New(slog.NewTextHandler(s.log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	cat := catalog.New(catalog.Options{
		Records: s.store, Registry: s.registry, Log: log, Now: s.store.Now, Random: func() float64 { return 0 },
		Runtimes: []handlers.Runtime{uploads{handlertest.NewFunc("wasm", 1, func(context.Context, *handlers.Invocation) handlers.Outcome { return handlertest.Succeed(nil) })}},
	})
	ops := operations.New(operations.Options{
		Dead: s.store, Jobs: s.store, Bulk: s.store, Records: s.store, Holder: "w-1", Now: s.store.Now, Log: log, Random: func() float64 { return 0 }, Entropy: rand.Reader,
	})
	plan := schedules.New(schedules.Options{Queue: s.store, Records: s.store, Log: log, Random: func() float64 { return 0 }, Defaults: schedules.Defaults{MaxAttempts: 5}})
	opt := httpapi.Options{
		Store: s.store, Types: s.registry, Handlers: cat, Operations: ops, Schedules: plan, Log: log,
		Workers: workers.New(workers.Options{Records: s.store, Now: s.store.Now, Log: log}),
		Version: httpapi.Version{Version: "0.1.0", Store: "memory"},
	}
	for _, c := range change {
		c(&opt)
	}
	var err error
	if s.server, err = httpapi.New(opt); err != nil {
		t.Fatal(err)
	}
	if err := cat.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := ops.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	s.http = httptest.NewServer(s.server.Handler())
	transport := &http.Transport{MaxIdleConnsPerHost: 128}
	s.client = &http.Client{Transport: transport}
	t.Cleanup(func() {
		transport.CloseIdleConnections()
		if err := s.server.Stop(context.Background()); err != nil {
			t.Error(err)
		}
		s.http.Close()
		ops.Stop()
		cat.Stop()
		if err := s.store.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

// answer is a response that was read whole.
type answer struct {
	t      *testing.T
	status int
	header http.Header
	body   []byte
}

// send makes a request. A body is JSON unless header, given as name and value pairs, says otherwise.
func (s *site) send(method, path string, body any, header ...string) answer {
	s.t.Helper()
	var r io.Reader
	switch b := body.(type) {
	case nil:
	case string:
		r = strings.NewReader(b)
	case []byte:
		r = bytes.NewReader(b)
	case io.Reader:
		r = b
	}
	req, err := http.NewRequestWithContext(s.t.Context(), method, s.http.URL+path, r)
	if err != nil {
		s.t.Fatal(err)
	}
	if body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	for i := 0; i < len(header); i += 2 {
		if header[i] == "Host" {
			req.Host = header[i+1]
			continue
		}
		req.Header.Set(header[i], header[i+1])
	}
	return s.do(req)
}

func (s *site) do(req *http.Request) answer {
	s.t.Helper()
	resp, err := s.client.Do(req)
	if err != nil {
		s.t.Fatal(err)
	}
	defer resp.Body.Close()
	data, err := io.ReadAll(resp.Body)
	if err != nil {
		s.t.Fatal(err)
	}
	a := answer{t: s.t, status: resp.StatusCode, header: resp.Header, body: data}
	if a.status >= 400 {
		a.checkProblem()
	}
	s.checkContract(req.Method, req.URL.Path, a)
	return a
}

// want fails the test unless the status is as given.
func (a answer) want(status int) answer {
	a.t.Helper()
	if a.status != status {
		a.t.Fatalf("status %d, want %d: %s", a.status, status, a.body)
	}
	return a
}

// into decodes the body.
func (a answer) into(v any) {
	a.t.Helper()
	if err := json.Unmarshal(a.body, v); err != nil {
		a.t.Fatalf("%v in %s", err, a.body)
	}
}

// object decodes the body as an object.
func (a answer) object() map[string]any {
	a.t.Helper()
	var m map[string]any
	a.into(&m)
	return m
}

// checkProblem checks what every error answer promises.
func (a answer) checkProblem() {
	a.t.Helper()
	if got := a.header.Get("Content-Type"); got != "application/problem+json" {
		a.t.Errorf("status %d with Content-Type %q: %s", a.status, got, a.body)
	}
	var p httpapi.Problem
	d := json.NewDecoder(bytes.NewReader(a.body))
	d.DisallowUnknownFields()
	if err := d.Decode(&p); err != nil {
		a.t.Fatalf("status %d: %v in %s", a.status, err, a.body)
	}
	switch {
	case p.Status != a.status,
		p.Type != "urn:taskhost:error:"+string(p.Code),
		p.Code == "", p.Title == "", p.Detail == "", p.RequestID == "",
		p.RequestID != a.header.Get("X-Request-Id"):
		a.t.Errorf("not a whole problem (status %d): %s", a.status, a.body)
	}
	if (p.RetryAfterMS > 0) != (a.header.Get("Retry-After") != "") {
		a.t.Errorf("retry_after_ms %d with Retry-After %q", p.RetryAfterMS, a.header.Get("Retry-After"))
	}
}

// wantProblem fails the test unless the answer is that error.
func (a answer) wantProblem(status int, code httpapi.Code, field string) httpapi.Problem {
	a.t.Helper()
	a.want(status)
	var p httpapi.Problem
	a.into(&p)
	if p.Code != code || p.Field != field {
		a.t.Fatalf("code %q field %q, want %q %q: %s", p.Code, p.Field, code, field, a.body)
	}
	return p
}

// enqueue stores a job and returns its id.
func (s *site) enqueue(body string) string {
	s.t.Helper()
	var e httpapi.Enqueued
	s.send("POST", "/v1/jobs", body).want(201).into(&e)
	return e.ID
}

// reserve takes one job.
func (s *site) reserve() *queue.Job {
	s.t.Helper()
	jobs, err := s.store.Reserve(s.t.Context(), queue.ReserveParams{Worker: "w-7f2", Max: 1, Lease: time.Minute})
	if err != nil || len(jobs) != 1 {
		s.t.Fatalf("reserved %d jobs: %v", len(jobs), err)
	}
	return jobs[0]
}

// settle ends a reservation.
func (s *site) settle(j *queue.Job, with queue.Settlement) {
	s.t.Helper()
	with.Ref = queue.Ref{ID: j.ID, Token: j.Token}
	outcomes, err := s.store.Settle(s.t.Context(), []queue.Settlement{with})
	if err != nil || outcomes[0].Status != queue.SettleOK {
		s.t.Fatalf("settle: %+v %v", outcomes, err)
	}
}

// kill makes a job dead.
func (s *site) kill(body string) string {
	s.t.Helper()
	id := s.enqueue(body)
	s.settle(s.reserve(), queue.Settlement{Verb: queue.VerbDead, Error: &queue.JobError{Kind: "permanent", Message: "bad width 0"},
		Duration: 41 * time.Millisecond, Handler: queue.Handler{Runtime: "wasm", Version: 3}})
	return id
}

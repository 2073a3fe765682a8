package client

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// script is a server that gives its answers one after the other and remembers the requests.
type script struct {
	t       *testing.T
	mu      sync.Mutex
	steps   []func(http.ResponseWriter, *http.Request)
	bodies  []string
	headers []http.Header
	paths   []string
}

func (s *script) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		s.t.Error(err)
	}
	s.mu.Lock()
	n := len(s.bodies)
	s.bodies = append(s.bodies, string(body))
	s.headers = append(s.headers, r.Header)
	s.paths = append(s.paths, r.Method+" "+r.URL.RequestURI())
	s.mu.Unlock()
	if n >= len(s.steps) {
		s.t.Errorf("request %d was not expected: %s %s", n, r.Method, r.URL)
		return
	}
	s.steps[n](w, r)
}

// sent is what has arrived: the bodies, the request lines.
func (s *script) sent() (bodies, paths []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.bodies), slices.Clone(s.paths)
}

func answer(status int, body string, header ...string) func(http.ResponseWriter, *http.Request) {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		if status >= 400 {
			w.Header().Set("Content-Type", "application/problem+json")
		}
		for i := 0; i < len(header); i += 2 {
			w.Header().Set(header[i], header[i+1])
		}
		w.WriteHeader(status)
		_, _ = io.WriteString(w, body)
	}
}

// hangUp breaks the connection before an answer.
func hangUp(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }

func problem(status int, code, more string) func(http.ResponseWriter, *http.Request) {
	return answer(status, fmt.Sprintf(`{"type":"urn:taskhost:error:%s","code":%q,"status":%d,"title":"T","detail":"D","request_id":"req_1"%s}`, code, code, status, more))
}

// newScripted returns a client that does not pause, and the pauses it would have made.
func newScripted(t *testing.T, steps ...func(http.ResponseWriter, *http.Request)) (*Client, *script, *[]time.Duration) {
	t.Helper()
	s := &script{t: t, steps: steps}
	server := httptest.NewServer(s)
	c, err := New(server.URL+"/", WithAPIKey("thk_x"))
	if err != nil {
		t.Fatal(err)
	}
	pauses := &[]time.Duration{}
	c.pause = func(ctx context.Context, d time.Duration) error {
		*pauses = append(*pauses, d)
		return ctx.Err()
	}
	t.Cleanup(func() {
		c.Close()
		server.Close()
		if bodies, _ := s.sent(); len(bodies) != len(steps) {
			t.Errorf("%d requests, %d answers were prepared", len(bodies), len(steps))
		}
	})
	return c, s, pauses
}

func TestEnqueueSendsTheJob(t *testing.T) {
	t.Parallel()
	c, s, _ := newScripted(t, answer(201, `{"outcome":"created","id":"job_1","warnings":["w"]}`))
	priority := -3
	const payload = `{"n":9007199254740993,  "x":1e400,"k":1,"k":2}`
	e, err := c.Enqueue(t.Context(), NewJob{
		Type: "a", Queue: "q", Payload: json.RawMessage(payload), Priority: &priority, Delay: 5 * time.Minute, ExpiresIn: time.Hour,
		Timeout: 1500 * time.Millisecond, MaxAttempts: 3, Backoff: &Backoff{Base: time.Second, Jitter: "none"}, IdempotencyKey: "k",
		Unique: &Unique{Key: "u", OnConflict: "existing"}, ConcurrencyKey: "c", Labels: map[string]string{"l": "1"}, Headers: map[string]string{"h": "2"},
	})
	if err != nil || e.Outcome != Created || e.ID != "job_1" || e.Warnings[0] != "w" {
		t.Fatalf("%+v %v", e, err)
	}
	const want = `{"type":"a","queue":"q","priority":-3,"delay":"5m0s","expires_in":"1h0m0s","timeout":"1.5s","max_attempts":3,` +
		`"backoff":{"base":"1s","jitter":"none"},"idempotency_key":"k","unique":{"key":"u","on_conflict":"existing"},"concurrency_key":"c","labels":{"l":"1"},"headers":{"h":"2"},"payload":` + payload + `}`
	if bodies, _ := s.sent(); bodies[0] != want {
		t.Errorf("sent\n%s\nwant\n%s", bodies[0], want)
	}
	if h := s.headers[0]; h.Get("Authorization") != "Bearer thk_x" || h.Get("Content-Type") != "application/json" {
		t.Errorf("%v", h)
	}
}

func TestPayloads(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		payload any
		want    string
	}{
		{nil, `"payload":null`},
		{"text", `"payload":"text"`},
		{struct {
			W int `json:"w"`
		}{2}, `"payload":{"w":2}`},
		{[]byte{0xff, 0}, `"payload_base64":"/wA="`},
		{[]byte(nil), `"payload_base64":""`},
	} {
		job := NewJob{Type: "a", Payload: c.payload}
		if b, err := job.encode(); err != nil || !json.Valid(b) || !strings.Contains(string(b), c.want) {
			t.Errorf("%v: %s %v", c.payload, b, err)
		}
	}
	for _, bad := range []any{json.RawMessage(`{`), json.RawMessage(nil), make(chan int)} {
		job := NewJob{Type: "a", Payload: bad}
		if b, err := job.encode(); err == nil {
			t.Errorf("%v: %s", bad, b)
		}
	}
}

// Whatever happens to the answers, every sending has the same key, so that there is one job.
func TestUnknownOutcomesAreSentAgainWithOneKey(t *testing.T) {
	t.Parallel()
	c, s, pauses := newScripted(t,
		hangUp,
		answer(502, `<html>bad gateway</html>`, "Content-Type", "text/html"),
		problem(503, CodeUnavailable, `,"retry_after_ms":1500`),
		answer(429, `{}`, "Retry-After", "3"),
		answer(200, `{"outcome":"duplicate","id":"job_1"}`),
	)
	e, err := c.Enqueue(t.Context(), NewJob{Type: "a"})
	if err != nil || e.ID != "job_1" {
		t.Fatalf("%+v %v", e, err)
	}
	if e.Outcome != Created {
		t.Errorf("its own first sending is called %s", e.Outcome)
	}
	var key string
	bodies, _ := s.sent()
	for i, body := range bodies {
		var b jobBody
		if err := json.Unmarshal([]byte(body), &b); err != nil {
			t.Fatal(err)
		}
		if i == 0 {
			key = b.IdempotencyKey
		}
		if b.IdempotencyKey != key || len(key) < 32 {
			t.Errorf("sending %d has the key %q, want %q", i, b.IdempotencyKey, key)
		}
	}
	if p := *pauses; len(p) != 4 || p[2] < 1500*time.Millisecond || p[3] < 3*time.Second {
		t.Errorf("pauses %v", p)
	}
}

// With a key of the caller's, a duplicate is what it says.
func TestOwnKeyKeepsItsOutcome(t *testing.T) {
	t.Parallel()
	c, _, _ := newScripted(t, hangUp, answer(200, `{"outcome":"duplicate","id":"job_1"}`))
	if e, err := c.Enqueue(t.Context(), NewJob{Type: "a", IdempotencyKey: "order-42"}); err != nil || e.Outcome != Duplicate {
		t.Errorf("%+v %v", e, err)
	}
}

func TestErrorsThatAreFinal(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		status int
		code   string
	}{{400, CodeInvalid}, {401, CodeUnauthorized}, {403, CodeForbidden}, {404, CodeNotFound}, {409, CodeUniqueHeld}, {413, CodeTooLarge}, {500, CodeInternal}} {
		cl, _, pauses := newScripted(t, problem(c.status, c.code, `,"field":"queue","job_id":"job_9","state":"ready","details":["x"]`))
		_, err := cl.Enqueue(t.Context(), NewJob{Type: "a"})
		e := (*Error)(nil)
		if !errors.As(err, &e) || e.Code != c.code || e.Status != c.status || e.Field != "queue" || e.JobID != "job_9" || e.State != "ready" ||
			e.RequestID != "req_1" || CodeOf(err) != c.code || len(*pauses) != 0 || !strings.Contains(err.Error(), c.code+": D (request req_1)") {
			t.Errorf("%d: %v %+v", c.status, err, e)
		}
	}
}

func TestRetriesEnd(t *testing.T) {
	t.Parallel()
	steps := make([]func(http.ResponseWriter, *http.Request), RetriesDefault+1)
	for i := range steps {
		steps[i] = problem(503, CodeUnavailable, "")
	}
	c, _, _ := newScripted(t, steps...)
	if _, err := c.Job(t.Context(), "job_1"); CodeOf(err) != CodeUnavailable {
		t.Error(err)
	}
}

func TestContextEndsRetries(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	c, _, _ := newScripted(t, func(w http.ResponseWriter, r *http.Request) {
		problem(503, CodeUnavailable, "")(w, r)
		cancel()
	})
	if _, err := c.Job(ctx, "job_1"); err == nil {
		t.Error("no error")
	}
}

func TestBatchSendsUnknownJobsAgain(t *testing.T) {
	t.Parallel()
	c, s, _ := newScripted(t,
		answer(200, `{"created":1,"duplicate":0,"rejected":1,"unknown":2,"outcomes":[{"outcome":"created","id":"job_1"},{"outcome":"unknown"},
			{"outcome":"rejected","error":{"code":"invalid","field":"jobs[2].queue","detail":"D"}},{"outcome":"unknown"}]}`),
		answer(200, `{"outcomes":[{"outcome":"duplicate","id":"job_2"},{"outcome":"created","id":"job_4"}]}`),
	)
	jobs := make([]NewJob, 4)
	for i := range jobs {
		jobs[i] = NewJob{Type: "a", Payload: i}
	}
	r, err := c.EnqueueBatch(t.Context(), jobs)
	if err != nil || r.Created != 3 || r.Rejected != 1 || r.Unknown+r.Duplicate != 0 || r.Outcomes[1].ID != "job_2" || r.Outcomes[3].ID != "job_4" ||
		r.Outcomes[2].Error.Field != "jobs[2].queue" {
		t.Fatalf("%+v %v", r, err)
	}
	keys := func(body string) []string {
		var b struct{ Jobs []jobBody }
		if err := json.Unmarshal([]byte(body), &b); err != nil {
			t.Fatal(err)
		}
		var k []string
		for _, j := range b.Jobs {
			k = append(k, j.IdempotencyKey)
		}
		return k
	}
	bodies, _ := s.sent()
	first, second := keys(bodies[0]), keys(bodies[1])
	if len(first) != 4 || len(second) != 2 || second[0] != first[1] || second[1] != first[3] || first[0] == first[1] {
		t.Errorf("%v, then %v", first, second)
	}
}

// An error does not hide what is known.
func TestBatchKeepsWhatIsKnown(t *testing.T) {
	t.Parallel()
	c, _, _ := newScripted(t,
		answer(200, `{"outcomes":[{"outcome":"created","id":"job_1"},{"outcome":"unknown"}]}`),
		answer(200, `{"outcomes":[{"outcome":"rejected","error":{"code":"unique_held","field":"jobs[0].unique.key"}}]}`),
	)
	if r, err := c.EnqueueBatch(t.Context(), make([]NewJob, 2)); err != nil || r.Rejected != 1 || r.Outcomes[1].Error.Field != "jobs[1].unique.key" {
		t.Errorf("%+v %v", r, err)
	}
	c, _, _ = newScripted(t,
		answer(200, `{"outcomes":[{"outcome":"created","id":"job_1"},{"outcome":"unknown"}]}`),
		problem(401, CodeUnauthorized, ""),
	)
	r, err := c.EnqueueBatch(t.Context(), make([]NewJob, 2))
	if CodeOf(err) != CodeUnauthorized || r.Created != 1 || r.Unknown != 1 || r.Outcomes[0].ID != "job_1" {
		t.Errorf("%+v %v", r, err)
	}
	c, _, _ = newScripted(t, problem(400, CodeInvalid, ""))
	if r, err := c.EnqueueBatch(t.Context(), make([]NewJob, 2)); CodeOf(err) != CodeInvalid || r.Unknown != 2 {
		t.Errorf("%+v %v", r, err)
	}
}

func TestWaitGoesOn(t *testing.T) {
	t.Parallel()
	c, s, _ := newScripted(t,
		answer(200, `{"id":"job_1","state":"running","created_at":"2026-11-30T03:00:00.000Z","started_at":null}`),
		hangUp,
		answer(200, `{"id":"job_1","state":"dead","last_error":{"kind":"trap","message":"bad width 0"},"created_at":"2026-11-30T03:00:00.000Z"}`),
	)
	j, err := c.Wait(t.Context(), "job_1")
	if err != nil || j.State != StateDead {
		t.Fatalf("%+v %v", j, err)
	}
	failed := (*FailedError)(nil)
	if !errors.As(j.Err(), &failed) || failed.Error() != "job_1 is dead: trap: bad width 0" {
		t.Errorf("%v", j.Err())
	}
	if _, paths := s.sent(); paths[0] != "GET /v1/jobs/job_1?wait=50s" {
		t.Errorf("%v", paths)
	}
}

func TestCallsOfOneJob(t *testing.T) {
	t.Parallel()
	const job = `{"id":"job_1","state":"cancelled","created_at":"2026-11-30T03:00:00.000Z"}`
	c, s, _ := newScripted(t,
		answer(200, job), answer(201, job), answer(200, "\x00\xff"), answer(200, `{ "a":1}`),
		hangUp, problem(404, CodeNotFound, ""), // deleted, but the answer was lost
		hangUp, // a retry is not sent again
	)
	ctx := t.Context()
	if j, err := c.Cancel(ctx, "job_1"); err != nil || j.Err() == nil {
		t.Error(j, err)
	}
	if _, err := c.Retry(ctx, "job_1"); err != nil {
		t.Error(err)
	}
	if b, err := c.Result(ctx, "job_1"); err != nil || string(b) != "\x00\xff" {
		t.Errorf("%q %v", b, err)
	}
	if b, err := c.Payload(ctx, "job_1"); err != nil || string(b) != `{ "a":1}` {
		t.Errorf("%q %v", b, err)
	}
	if err := c.Delete(ctx, "a/b"); err != nil {
		t.Error(err)
	}
	if _, err := c.Retry(ctx, "job_1"); err == nil {
		t.Error("no error")
	}
	want := "POST /v1/jobs/job_1/cancel,POST /v1/jobs/job_1/retry,GET /v1/jobs/job_1/result,GET /v1/jobs/job_1/payload," +
		"DELETE /v1/jobs/a%2Fb,DELETE /v1/jobs/a%2Fb,POST /v1/jobs/job_1/retry"
	_, paths := s.sent()
	if got := strings.Join(paths, ","); got != want {
		t.Errorf("%s", got)
	}
}

func TestNewRefuses(t *testing.T) {
	t.Parallel()
	for _, server := range []string{"", "127.0.0.1:7070", "ftp://x", "http://", "http://a b", ":"} {
		if _, err := New(server); err == nil {
			t.Errorf("%q", server)
		}
	}
	if _, err := New("http://x", WithRetries(-1)); err == nil {
		t.Error("-1 retries")
	}
}

func TestPauses(t *testing.T) {
	t.Parallel()
	for n := range 100 {
		if d := pauseBefore(n, nil); d <= 0 || d > pauseMax {
			t.Errorf("pause %d is %s", n, d)
		}
	}
}

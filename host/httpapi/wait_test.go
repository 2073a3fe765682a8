package httpapi_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/taskhost/taskhost/host/httpapi"
	"github.com/taskhost/taskhost/queue"
	"github.com/taskhost/taskhost/queue/memq"
)

// watched tells when a request has begun to wait: it has subscribed and then looked once.
type watched struct {
	*memq.Store
	looked chan struct{} // buffered; one for every GetJob
}

func (w *watched) GetJob(ctx context.Context, tenant, id string) (*queue.Job, error) {
	j, err := w.Store.GetJob(ctx, tenant, id)
	select {
	case w.looked <- struct{}{}:
	default:
	}
	return j, err
}

func newWatched(t *testing.T) (*site, *watched) {
	w := &watched{looked: make(chan struct{}, 1000)}
	s := newSite(t, func(o *httpapi.Options) {
		w.Store = o.Store.(*memq.Store)
		o.Store = w
	})
	return s, w
}

// later makes the request beside the test.
func (s *site) later(method, path, body string) <-chan answer {
	c := make(chan answer, 1)
	go func() { c <- s.send(method, path, body) }()
	return c
}

func TestWaitEndsWithTheJob(t *testing.T) {
	t.Parallel()
	s, w := newWatched(t)
	c := s.later("POST", "/v1/jobs?wait=55s", `{"type":"a","payload":{"x":1}}`)
	<-w.looked
	j := s.reserve()
	s.settle(j, queue.Settlement{Verb: queue.VerbAck, Result: []byte(`{"y": 2}`)})
	m := (<-c).want(201).object()
	if m["outcome"] != "created" || m["id"] != j.ID || m["state"] != "succeeded" || m["result"].(map[string]any)["y"] != 2.0 {
		t.Errorf("%v", m)
	}
	// A finished job is answered at once, by either route.
	if m := s.send("GET", "/v1/jobs/"+j.ID+"?wait", nil).want(200).object(); m["state"] != "succeeded" {
		t.Errorf("%v", m)
	}
}

func TestWaitAnswersWhateverTheState(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	m := s.send("POST", "/v1/jobs?wait=10ms", `{"type":"a","payload":1}`).want(201).object()
	if m["state"] != "ready" || m["result"] != nil {
		t.Errorf("%v", m)
	}
	s.send("GET", "/v1/jobs/"+m["id"].(string)+"?wait=10ms", nil).want(200)
	id := s.kill(`{"type":"b","payload":1,"priority":9}`)
	if m := s.send("GET", "/v1/jobs/"+id+"?wait=55s", nil).want(200).object(); m["state"] != "dead" {
		t.Errorf("%v", m)
	}
	for _, bad := range []string{"56s", "-1s", "1", "soon"} {
		s.send("GET", "/v1/jobs/"+id+"?wait="+bad, nil).wantProblem(400, httpapi.CodeInvalid, "wait")
		s.send("POST", "/v1/jobs?wait="+bad, `{"type":"a","payload":1}`).wantProblem(400, httpapi.CodeInvalid, "wait")
	}
	s.send("GET", "/v1/jobs/"+id+"?after_attempt=1", nil).wantProblem(400, httpapi.CodeInvalid, "after_attempt")
	s.send("GET", "/v1/jobs/"+id+"?wait=1s&after_attempt=-1", nil).wantProblem(400, httpapi.CodeInvalid, "after_attempt")
}

func TestWaitForTheNextAttempt(t *testing.T) {
	t.Parallel()
	s, w := newWatched(t)
	id := s.enqueue(`{"type":"a","payload":1}`)
	for n := range 2 {
		c := s.later("GET", "/v1/jobs/"+id+"?wait=55s&after_attempt="+string(rune('0'+n)), "")
		<-w.looked
		s.settle(s.reserve(), queue.Settlement{Verb: queue.VerbNack, Error: &queue.JobError{Kind: "trap", Message: "no", Retryable: true}})
		m := (<-c).want(200).object()
		if attempts := m["attempts"].([]any); len(attempts) != n+1 || m["state"] != "ready" {
			t.Errorf("%v", m)
		}
		drain(w.looked)
	}
}

func drain(c chan struct{}) {
	for len(c) > 0 {
		<-c
	}
}

func TestHangingUpCancelsNothing(t *testing.T) {
	t.Parallel()
	s, w := newWatched(t)
	ctx, cancel := context.WithCancel(t.Context())
	req, err := http.NewRequestWithContext(ctx, "POST", s.http.URL+"/v1/jobs?wait=55s", strings.NewReader(`{"type":"a","payload":1}`))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	done := make(chan error, 1)
	go func() {
		resp, err := s.client.Do(req)
		if err == nil {
			err = errors.Join(errors.New("answered"), resp.Body.Close())
		}
		done <- err
	}()
	<-w.looked
	cancel()
	if err := <-done; !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	if j := s.reserve(); j.CancelRequested {
		t.Error("the job was cancelled")
	}
}

func TestStopAnswersThoseWhoWait(t *testing.T) {
	t.Parallel()
	s, w := newWatched(t)
	id := s.enqueue(`{"type":"a","payload":1}`)
	c := s.later("GET", "/v1/jobs/"+id+"?wait=55s", "")
	<-w.looked
	if err := s.server.Stop(t.Context()); err != nil {
		t.Fatal(err)
	}
	if m := (<-c).want(200).object(); m["state"] != "ready" {
		t.Errorf("%v", m)
	}
	p := s.send("GET", "/readyz", nil).wantProblem(503, httpapi.CodeUnavailable, "")
	if !strings.Contains(p.Detail, "stopping") {
		t.Errorf("%+v", p)
	}
}

func TestLogs(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	id := s.enqueue(`{"type":"a","payload":1}`)
	j := s.reserve()
	s.log2(j, "one", "two\nthree")
	var l httpapi.LogList
	s.send("GET", "/v1/jobs/"+id+"/logs", nil).want(200).into(&l)
	if len(l.Lines) != 2 || l.Lines[1].Message != `two\nthree` || l.Lines[0].Level != "info" || l.NextAfter != 2 || l.Truncated {
		t.Errorf("%+v", l)
	}
	s.send("GET", "/v1/jobs/"+id+"/logs?limit=1", nil).want(200).into(&l)
	if len(l.Lines) != 1 || l.NextAfter != 1 {
		t.Errorf("%+v", l)
	}
	s.send("GET", "/v1/jobs/"+id+"/logs?after=1", nil).want(200).into(&l)
	if len(l.Lines) != 1 || l.Lines[0].Seq != 2 {
		t.Errorf("%+v", l)
	}
	for query, field := range map[string]string{"limit=0": "limit", "limit=1001": "limit", "after=-1": "after", "follow=maybe": "follow", "follow&limit=3": "limit"} {
		s.send("GET", "/v1/jobs/"+id+"/logs?"+query, nil).wantProblem(400, httpapi.CodeInvalid, field)
	}
	s.send("GET", "/v1/jobs/job_x/logs?follow", nil).wantProblem(404, httpapi.CodeNotFound, "")
}

func (s *site) log2(j *queue.Job, messages ...string) {
	s.t.Helper()
	var lines []queue.LogLine
	for _, m := range messages {
		lines = append(lines, queue.LogLine{At: s.clock.Now(), Message: m})
	}
	if err := s.store.AppendLogs(s.t.Context(), queue.Ref{ID: j.ID, Token: j.Token}, lines); err != nil {
		s.t.Fatal(err)
	}
}

func TestFollowLogs(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	id := s.enqueue(`{"type":"a","payload":1}`)
	j := s.reserve()
	s.log2(j, "first")
	req, err := http.NewRequestWithContext(t.Context(), "GET", s.http.URL+"/v1/jobs/"+id+"/logs?follow", nil)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := s.client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if got := resp.Header.Get("Content-Type"); got != "application/x-ndjson" {
		t.Errorf("Content-Type %q", got)
	}
	lines := bufio.NewReader(resp.Body)
	next := func() map[string]any {
		t.Helper()
		line, err := lines.ReadBytes('\n')
		if err != nil {
			t.Fatal(err)
		}
		var m map[string]any
		if err := json.Unmarshal(line, &m); err != nil {
			t.Fatalf("%v in %q", err, line)
		}
		return m
	}
	if m := next(); m["message"] != "first" {
		t.Errorf("%v", m)
	}
	s.log2(j, "second")
	if m := next(); m["message"] != "second" || m["seq"] != 2.0 {
		t.Errorf("%v", m)
	}
	s.settle(j, queue.Settlement{Verb: queue.VerbDead, Error: &queue.JobError{Kind: "trap", Message: "x"}})
	if m := next(); m["end"] != true || m["state"] != "dead" {
		t.Errorf("%v", m)
	}
	if rest, err := io.ReadAll(lines); err != nil || len(rest) > 0 {
		t.Errorf("%q after the end (%v)", rest, err)
	}
}

func TestFollowEndsWithTheServer(t *testing.T) {
	t.Parallel()
	s, w := newWatched(t)
	id := s.enqueue(`{"type":"a","payload":1}`)
	c := s.later("GET", "/v1/jobs/"+id+"/logs?follow", "")
	<-w.looked // before the stream
	<-w.looked // in it
	start := time.Now()
	if err := s.server.Stop(t.Context()); err != nil {
		t.Fatal(err)
	}
	if a := (<-c).want(200); strings.Contains(string(a.body), `"end"`) {
		t.Errorf("the log was not at its end: %q", a.body)
	}
	if d := time.Since(start); d > 5*time.Second {
		t.Errorf("took %s", d)
	}
}

// A job that is gone when the wait is over was stored all the same.
func TestWaitForAJobThatIsDeleted(t *testing.T) {
	t.Parallel()
	s, w := newWatched(t)
	c := s.later("POST", "/v1/jobs?wait=55s", `{"type":"a","payload":1}`)
	<-w.looked
	var l httpapi.JobList
	s.send("GET", "/v1/jobs", nil).want(200).into(&l)
	s.send("DELETE", "/v1/jobs/"+l.Jobs[0].ID, nil).want(204)
	if m := (<-c).want(201).object(); m["id"] != l.Jobs[0].ID || !strings.Contains(m["warnings"].([]any)[1].(string), "no such resource") {
		t.Errorf("%v", m)
	}
}

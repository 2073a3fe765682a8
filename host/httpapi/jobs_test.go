package httpapi_test

import (
	"strings"
	"testing"
	"time"

	"github.com/taskhost/taskhost/host/httpapi"
	"github.com/taskhost/taskhost/queue"
)

func TestListJobs(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	var all []string
	for i := range 5 {
		typ := []string{"a", "b"}[i%2]
		all = append([]string{s.enqueue(`{"type":"` + typ + `","payload":` + strings.Repeat("1", i+1) + `,"labels":{"n":"` + string(rune('0'+i)) + `"}}`)}, all...)
		s.clock.advance(time.Second)
	}
	list := func(query string) httpapi.JobList {
		t.Helper()
		var l httpapi.JobList
		s.send("GET", "/v1/jobs?"+query, nil).want(200).into(&l)
		return l
	}
	ids := func(l httpapi.JobList) string {
		var got []string
		for _, j := range l.Jobs {
			got = append(got, j.ID)
			if len(j.Payload) != 4 || j.Attempts != nil { // null
				t.Errorf("a list shows payload %s and attempts %v", j.Payload, j.Attempts)
			}
		}
		return strings.Join(got, ",")
	}
	for query, want := range map[string][]string{
		"":                                     all,
		"type=a":                               {all[0], all[2], all[4]},
		"label.n=3":                            {all[1]},
		"label.n=3&type=a":                     nil,
		"state=ready&limit=500":                all,
		"state=running,dead":                   nil,
		"queue=other":                          nil,
		"q=" + all[3]:                          {all[3]},
		"since=2026-11-30T03:00:03Z":           all[:2],
		"since=2026-11-30T04:00:03%2B01:00":    all[:2],
		"before=2026-11-30T03:00:03Z":          all[2:],
		"finished_since=2026-11-30T03:00:00Z":  nil,
		"finished_before=2036-11-30T03:00:00Z": nil,
		"error_fingerprint=00000000":           nil,
		"order=newest":                         all,
		"order=oldest&limit=1":                 all[len(all)-1:],
	} {
		if got := ids(list(query)); got != strings.Join(want, ",") {
			t.Errorf("%s: %s, want %s", query, got, want)
		}
	}
	// Pages are whole, without a job twice.
	var got []string
	for cursor := ""; ; {
		l := list("limit=2&cursor=" + cursor)
		for _, j := range l.Jobs {
			got = append(got, j.ID)
		}
		if l.NextCursor == "" {
			break
		}
		cursor = string(l.NextCursor)
	}
	if strings.Join(got, ",") != strings.Join(all, ",") {
		t.Errorf("pages: %v", got)
	}
	for query, field := range map[string]string{
		"limit=0": "limit", "limit=501": "limit", "limit=x": "limit", "state=done": "state", "state=ready,": "state", "queue=%7B": "queue",
		"type=a%20b": "type", "since=yesterday": "since", "before=x": "before", "finished_since=1": "finished_since",
		"finished_before=1": "finished_before", "order=up": "order", "cursor=x": "cursor", "label.=1": "label.", "tenant=other": "tenant", "type=a&type=b": "type",
	} {
		s.send("GET", "/v1/jobs?"+query, nil).wantProblem(400, httpapi.CodeInvalid, field)
	}
	dead := s.kill(`{"type":"z","payload":1,"priority":9}`)
	if l := list("state=dead"); ids(l) != dead {
		t.Errorf("%+v", l)
	}
	var l httpapi.JobList
	s.send("GET", "/v1/dlq?type=z&q=width&finished_since=2026-11-30T03:00:00Z", nil).want(200).into(&l)
	if ids(l) != dead || l.Jobs[0].LastError.Message != "bad width 0" || l.Jobs[0].LastError.Fingerprint == "" {
		t.Errorf("%+v", l)
	}
	s.send("GET", "/v1/dlq?state=ready", nil).wantProblem(400, httpapi.CodeInvalid, "state")
}

func TestUnknownJob(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	own := s.enqueue(`{"type":"a","payload":1}`)
	other, err := s.store.Enqueue(t.Context(), []queue.JobSpec{{Tenant: "other", Queue: "q", Type: "a", Payload: []byte("1"), MaxAttempts: 1}})
	if err != nil {
		t.Fatal(err)
	}
	missing := own[:len(own)-1] + "z"
	for _, r := range []struct{ method, path string }{
		{"GET", ""}, {"GET", "?wait=10ms"}, {"GET", "/payload"}, {"GET", "/result"}, {"GET", "/logs"}, {"GET", "/logs?follow"},
		{"POST", "/cancel"}, {"POST", "/retry"}, {"DELETE", ""},
	} {
		var details [2]string
		for i, id := range []string{missing, other[0].ID} { // I9: another tenant's job is one that does not exist
			p := s.send(r.method, "/v1/jobs/"+id+r.path, nil).wantProblem(404, httpapi.CodeNotFound, "")
			details[i] = strings.ReplaceAll(p.Detail, id, "ID")
		}
		if details[0] != details[1] {
			t.Errorf("%s %s: %q for no job, %q for another tenant's", r.method, r.path, details[0], details[1])
		}
	}
}

func TestCancel(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	id := s.enqueue(`{"type":"a","payload":1}`)
	for range 2 { // twice is the same
		if m := s.send("POST", "/v1/jobs/"+id+"/cancel", nil).want(200).object(); m["state"] != "cancelled" {
			t.Errorf("%v", m)
		}
	}
	running := s.enqueue(`{"type":"a","payload":1}`)
	j := s.reserve()
	if m := s.send("POST", "/v1/jobs/"+running+"/cancel", nil).want(200).object(); m["state"] != "running" || m["cancel_requested"] != true {
		t.Errorf("%v", m)
	}
	s.settle(j, queue.Settlement{Verb: queue.VerbAck})
	p := s.send("POST", "/v1/jobs/"+running+"/cancel", nil).wantProblem(409, httpapi.CodeConflict, "")
	if p.JobID != running || p.State != "succeeded" {
		t.Errorf("%+v", p)
	}
}

func TestDelete(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	id := s.enqueue(`{"type":"a","payload":1}`)
	j := s.reserve()
	if p := s.send("DELETE", "/v1/jobs/"+id, nil).wantProblem(409, httpapi.CodeConflict, ""); p.State != "running" {
		t.Errorf("%+v", p)
	}
	s.settle(j, queue.Settlement{Verb: queue.VerbAck})
	if a := s.send("DELETE", "/v1/jobs/"+id, nil).want(204); len(a.body) != 0 {
		t.Errorf("%q", a.body)
	}
	s.send("DELETE", "/v1/jobs/"+id, nil).wantProblem(404, httpapi.CodeNotFound, "")
}

func TestRetry(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	const body = `{"type":"a","payload":{"w":0},"labels":{"x":"1"},"headers":{"h":"2"},"priority":3,"max_attempts":2}`
	dead := s.kill(body)
	a := s.send("POST", "/v1/jobs/"+dead+"/retry", `{"payload":{ "w": 1}}`).want(201)
	m := a.object()
	copied := m["id"].(string)
	if copied == dead || m["retried_from"] != dead || m["state"] != "ready" || m["priority"] != 3.0 || m["max_attempts"] != 2.0 ||
		m["labels"].(map[string]any)["x"] != "1" || a.header.Get("Location") != "/v1/jobs/"+copied {
		t.Errorf("%v", m)
	}
	if got := s.send("GET", "/v1/jobs/"+copied+"/payload", nil).body; string(got) != `{ "w": 1}` {
		t.Errorf("payload %q", got)
	}
	p := s.send("POST", "/v1/jobs/"+copied+"/retry", nil).wantProblem(409, httpapi.CodeConflict, "")
	if p.State != "ready" {
		t.Errorf("%+v", p)
	}
	// Without an edit the dead job itself runs again.
	m = s.send("POST", "/v1/jobs/"+dead+"/retry", nil).want(200).object()
	if m["id"] != dead || m["run"] != 2.0 || m["state"] != "ready" {
		t.Errorf("%v", m)
	}
	// Another finished job is copied.
	s.settle(s.reserve(), queue.Settlement{Verb: queue.VerbAck, Result: []byte("1")})
	m = s.send("POST", "/v1/jobs/"+copied+"/retry", `{}`).want(201).object()
	if m["retried_from"] != copied {
		t.Errorf("%v", m)
	}
	m = s.send("POST", "/v1/jobs/"+copied+"/retry", `{"payload_base64":"/wA="}`).want(201).object()
	if m["payload_base64"] != "/wA=" {
		t.Errorf("%v", m)
	}
	for body, field := range map[string]string{`{"payload":1,"payload_base64":"AA=="}`: "payload_base64", `{"queue":"x"}`: "queue", `{"payload":`: "body"} {
		s.send("POST", "/v1/jobs/"+copied+"/retry", body).wantProblem(400, httpapi.CodeInvalid, field)
	}
}

func TestResult(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	for _, c := range []struct {
		result, contentType string
		shown               any
		base64              any
	}{
		{`{"greeting": "Hello"}`, "application/json", map[string]any{"greeting": "Hello"}, nil},
		{"\x89PNG", "application/octet-stream", nil, "iVBORw=="},
		{"", "application/octet-stream", nil, ""},
		{"plain text", "application/octet-stream", nil, "cGxhaW4gdGV4dA=="},
	} {
		id := s.enqueue(`{"type":"a","payload":1}`)
		if p := s.send("GET", "/v1/jobs/"+id+"/result", nil).wantProblem(404, httpapi.CodeNotFound, ""); p.State != "ready" {
			t.Errorf("%+v", p)
		}
		s.settle(s.reserve(), queue.Settlement{Verb: queue.VerbAck, Result: []byte(c.result)})
		a := s.send("GET", "/v1/jobs/"+id+"/result", nil).want(200)
		if string(a.body) != c.result || a.header.Get("Content-Type") != c.contentType || !strings.HasPrefix(a.header.Get("Content-Disposition"), "attachment") {
			t.Errorf("%q %v", a.body, a.header)
		}
		m := s.send("GET", "/v1/jobs/"+id, nil).want(200).object()
		if shown, ok := m["result"].(map[string]any); ok != (c.shown != nil) || ok && shown["greeting"] != "Hello" {
			t.Errorf("result %v", m["result"])
		}
		if m["result_base64"] != c.base64 || m["result_bytes"] != float64(len(c.result)) {
			t.Errorf("%v", m)
		}
	}
}

func TestCase066DeadJobKeepsEveryAttempt(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	id := s.enqueue(`{"type":"a","payload":1,"max_attempts":2}`)
	for range 2 {
		s.settle(s.reserve(), queue.Settlement{Verb: queue.VerbNack, Error: &queue.JobError{Kind: "trap", Message: "bad width 0", Retryable: true}})
	}
	var l httpapi.JobList
	s.send("GET", "/v1/dlq", nil).want(200).into(&l)
	if len(l.Jobs) != 1 || l.Jobs[0].ID != id || l.Jobs[0].LastError.Message != "bad width 0" {
		t.Fatalf("%+v", l)
	}
	var j httpapi.Job
	s.send("GET", "/v1/jobs/"+id, nil).want(200).into(&j)
	if j.State != queue.StateDead || len(*j.Attempts) != 2 || (*j.Attempts)[1].Attempt != 2 || (*j.Attempts)[0].Error.Kind != "trap" {
		t.Errorf("%+v", j)
	}
	var q httpapi.QueueList
	s.send("GET", "/v1/queues", nil).want(200).into(&q)
	if len(q.Queues) != 1 || q.Queues[0].Dead != 1 || q.Queues[0].Ready+q.Queues[0].Running+q.Queues[0].Scheduled != 0 {
		t.Errorf("%+v", q)
	}
}

func TestWaitingOn(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	codes := func(id string) string {
		t.Helper()
		var j httpapi.Job
		s.send("GET", "/v1/jobs/"+id, nil).want(200).into(&j)
		var got []string
		for _, w := range j.WaitingOn {
			if (w.Code == "delay" || w.Code == "retry_backoff" || w.Code == "defer") == w.Until.IsZero() {
				t.Errorf("%s until %v", w.Code, w.Until)
			}
			got = append(got, w.Code)
		}
		return strings.Join(got, " ")
	}
	delayed := s.enqueue(`{"type":"a","payload":1,"delay":"5m"}`)
	first := s.enqueue(`{"type":"a","payload":1,"priority":1}`)
	if got := codes(delayed); got != "delay no_handler" {
		t.Errorf("delayed: %s", got)
	}
	s.send("POST", "/v1/handlers/a/versions", "module", "Content-Type", "application/wasm").want(201)
	s.send("PUT", "/v1/handlers/a/live", `{"version":1}`).want(200)
	if got := codes(first); got != "" {
		t.Errorf("alone: %s", got)
	}
	second := s.enqueue(`{"type":"a","payload":1}`)
	if got := codes(second); got != "ahead" {
		t.Errorf("behind one: %s", got)
	}
	s.send("PATCH", "/v1/queues/default", `{"paused":true}`).want(200)
	if got := codes(second); got != "paused ahead" {
		t.Errorf("paused: %s", got)
	}
	s.send("PATCH", "/v1/queues/default", `{"paused":null}`).want(200)
	s.settle(s.reserve(), queue.Settlement{Verb: queue.VerbNack, Delay: time.Minute, Error: &queue.JobError{Kind: "trap", Message: "x"}})
	if got := codes(first); got != "retry_backoff" {
		t.Errorf("failed: %s", got)
	}
	s.settle(s.reserve(), queue.Settlement{Verb: queue.VerbDefer, Delay: time.Minute})
	if got := codes(second); got != "defer" {
		t.Errorf("deferred: %s", got)
	}
	// Put off because nobody serves its type: that is what it waits for, until the next look.
	unserved := s.enqueue(`{"type":"unserved","payload":1}`)
	if got := codes(unserved); got != "no_handler" {
		t.Errorf("unserved: %s", got)
	}
	s.settle(s.reserve(), queue.Settlement{Verb: queue.VerbDefer, Delay: time.Minute})
	var j httpapi.Job
	s.send("GET", "/v1/jobs/"+unserved, nil).want(200).into(&j)
	if len(j.WaitingOn) != 1 || j.WaitingOn[0].Code != "no_handler" || j.WaitingOn[0].Until != j.NextRunAt || j.NextRunAt.IsZero() {
		t.Errorf("unserved and deferred until %v: %+v", j.NextRunAt, j.WaitingOn)
	}
}

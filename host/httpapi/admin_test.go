package httpapi_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/taskhost/taskhost/host/httpapi"
	"github.com/taskhost/taskhost/host/workers"
	"github.com/taskhost/taskhost/queue"
)

func TestSetQueue(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	weight := 3.0
	if err := s.store.Configure(t.Context(), queue.Scheduling{Queues: map[string]queue.QueueSettings{"low": {Weight: &weight}}}); err != nil {
		t.Fatal(err)
	}
	m := s.send("PATCH", "/v1/queues/low", `{"weight":0.5,"priority":-2,"paused":true}`).want(200).object()
	if m["weight"] != 0.5 || m["priority"] != -2.0 || m["paused"] != true {
		t.Errorf("%v", m)
	}
	// What is absent stays, null returns to the configured value.
	m = s.send("PATCH", "/v1/queues/low", `{"weight":null}`).want(200).object()
	if over := m["override"].(map[string]any); m["weight"] != 3.0 || over["weight"] != nil || over["priority"] != -2.0 || m["paused"] != true {
		t.Errorf("%v", m)
	}
	for body, field := range map[string]string{
		`{}`: "body", `{"weight":0}`: "weight", `{"weight":-3}`: "weight", `{"weight":"3"}`: "weight", `{"weight":1e999}`: "weight", `{"weight":10001}`: "weight",
		`{"priority":1.5}`: "priority", `{"priority":5000}`: "priority", `{"paused":1}`: "paused", `{"max_running":0}`: "max_running", `{"max_running":1000001}`: "max_running",
		`{"max_running":"2"}`: "max_running", `{"max_per_key":0}`: "max_per_key", `{"rate":"1"}`: "rate", `{"rate":1}`: "rate", `{"rate":"0/s"}`: "rate", `{"rate":"9/w"}`: "rate",
		`{"wieght":1}`: "wieght", `[]`: "body", `{"weight":1`: "body", ``: "body",
	} {
		s.send("PATCH", "/v1/queues/low", body).wantProblem(400, httpapi.CodeInvalid, field)
	}
}

func TestSetQueueLimits(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	limit := 9
	rate := queue.Rate{Count: 100, Per: time.Second}
	if err := s.store.Configure(t.Context(), queue.Scheduling{Queues: map[string]queue.QueueSettings{"default": {MaxRunning: &limit, Rate: &rate}}}); err != nil {
		t.Fatal(err)
	}
	m := s.send("GET", "/v1/queues/default", nil).want(200).object()
	if m["max_running"] != 9.0 || m["max_per_key"] != 1.0 || m["rate"] != "100/s" || m["waiting"] != nil {
		t.Errorf("%v", m)
	}
	m = s.send("PATCH", "/v1/queues/default", `{"max_running":1,"max_per_key":2,"rate":"5/m"}`).want(200).object()
	over := m["override"].(map[string]any)
	if m["max_running"] != 1.0 || m["max_per_key"] != 2.0 || m["rate"] != "5/m" || over["max_running"] != 1.0 || over["max_per_key"] != 2.0 || over["rate"] != "5/m" {
		t.Errorf("%v", m)
	}
	s.enqueue(`{"type":"a","payload":1}`)
	waiting := s.enqueue(`{"type":"a","payload":1,"concurrency_key":"cust-7"}`)
	s.reserve()
	m = s.send("GET", "/v1/queues/default", nil).want(200).object()
	if m["waiting"] != "max_running" {
		t.Errorf("%v", m)
	}
	var j httpapi.Job
	s.send("GET", "/v1/jobs/"+waiting, nil).want(200).into(&j)
	if string(j.Concurrency) != "cust-7" || len(j.WaitingOn) != 3 {
		t.Fatalf("%+v", j)
	}
	if w := j.WaitingOn[1]; w.Code != "max_running" || w.Limit != 1 || w.Running != 1 {
		t.Errorf("%+v", w)
	}
	if w := j.WaitingOn[2]; w.Code != "rate" || w.Until.IsZero() {
		t.Errorf("%+v", w)
	}
	m = s.send("PATCH", "/v1/queues/default", `{"max_running":null,"rate":null,"max_per_key":null}`).want(200).object()
	if m["max_running"] != 9.0 || m["rate"] != "100/s" || m["max_per_key"] != 1.0 {
		t.Errorf("%v", m)
	}
}

func TestCase074ConfiguredQueuesExist(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	names := []string{"a", "b", "c", "d", "e"}
	queues := map[string]queue.QueueSettings{}
	for _, n := range names {
		queues[n] = queue.QueueSettings{}
	}
	if err := s.store.Configure(t.Context(), queue.Scheduling{Queues: queues}); err != nil {
		t.Fatal(err)
	}
	var l httpapi.QueueList
	s.send("GET", "/v1/queues", nil).want(200).into(&l)
	if len(l.Queues) != len(names) {
		t.Fatalf("%+v", l)
	}
	for i, q := range l.Queues {
		if q.Name != names[i] || q.Ready+q.Running+q.Scheduled+q.Dead+q.Served != 0 || q.OldestMS != nil || q.Weight != 1 {
			t.Errorf("%+v", q)
		}
		s.send("GET", "/v1/queues/"+q.Name, nil).want(200)
	}
	for _, n := range []string{"f", "%7B", "a%2Fb", "%22onmouseover="} {
		s.send("GET", "/v1/queues/"+n, nil).wantProblem(404, httpapi.CodeNotFound, "")
	}
}

// finished waits for the operation.
func (s *site) finished(location string) httpapi.Operation {
	s.t.Helper()
	deadline := time.Now().Add(20 * time.Second)
	for {
		var op httpapi.Operation
		s.send("GET", location, nil).want(200).into(&op)
		if op.State != "running" {
			return op
		}
		if time.Now().After(deadline) {
			s.t.Fatalf("still running: %+v", op)
		}
	}
}

func TestReplayAndPurge(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	for range 3 {
		s.kill(`{"type":"a","payload":1}`)
	}
	other := s.kill(`{"type":"b","payload":1}`)
	s.clock.advance(time.Second)

	var op httpapi.Operation
	a := s.send("POST", "/v1/dlq/replay", `{"filter":{"type":"a"},"dry_run":true}`).want(200)
	a.into(&op)
	if op.Matched != 3 || op.ID != "" || !op.DryRun || a.header.Get("Location") != "" {
		t.Errorf("%+v", op)
	}
	p := s.send("POST", "/v1/dlq/replay", `{"filter":{"type":"a"},"expected_count":4}`).wantProblem(409, httpapi.CodeCountChanged, "expected_count")
	if !strings.Contains(p.Detail, "3") || !strings.Contains(p.Detail, "4") {
		t.Errorf("%+v", p)
	}
	a = s.send("POST", "/v1/dlq/replay", `{"filter":{"type":"a"},"expected_count":3,"to_queue":"low"}`).want(202)
	a.into(&op)
	if a.header.Get("Location") != "/v1/operations/"+string(op.ID) || op.Matched != 3 || op.ToQueue != "low" || op.DeadBefore.IsZero() {
		t.Errorf("%+v %v", op, a.header)
	}
	if done := s.finished(a.header.Get("Location")); done.State != "succeeded" || done.Done != 3 {
		t.Errorf("%+v", done)
	}
	var q httpapi.Queue
	s.send("GET", "/v1/queues/low", nil).want(200).into(&q)
	if q.Ready != 3 {
		t.Errorf("%+v", q)
	}
	s.send("POST", string("/v1/operations/"+op.ID+"/cancel"), nil).wantProblem(409, httpapi.CodeConflict, "")

	a = s.send("POST", "/v1/operations", `{"action":"purge","filter":{"ids":["`+other+`"]}}`).want(202)
	if done := s.finished(a.header.Get("Location")); done.Done != 1 || done.Action != "purge" {
		t.Errorf("%+v", done)
	}
	s.send("GET", "/v1/jobs/"+other, nil).wantProblem(404, httpapi.CodeNotFound, "")
	a = s.send("POST", "/v1/dlq/purge", nil).want(202)
	s.finished(a.header.Get("Location"))
	var l httpapi.OperationList
	s.send("GET", "/v1/operations", nil).want(200).into(&l)
	if len(l.Operations) != 3 {
		t.Errorf("%+v", l)
	}
	s.send("GET", "/v1/operations/op_x", nil).wantProblem(404, httpapi.CodeNotFound, "")
	s.send("POST", "/v1/operations/op_x/cancel", nil).wantProblem(404, httpapi.CodeNotFound, "")
}

func TestOperationsOnAnyJobs(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	keep := s.enqueue(`{"type":"a","payload":1,"labels":{"n":"1"}}`)
	gone := s.enqueue(`{"type":"a","payload":1,"labels":{"n":"2"}}`)
	var op httpapi.Operation
	s.send("POST", "/v1/operations", `{"action":"cancel","dry_run":true}`).want(200).into(&op)
	if op.Matched != 2 || op.ID != "" || len(op.Filter.States) != 3 || !op.DeadBefore.IsZero() {
		t.Errorf("%+v", op)
	}
	a := s.send("POST", "/v1/operations", `{"action":"cancel","filter":{"labels":{"n":"2"},"states":["ready"],"type":"a","since":"2020-01-01T00:00:00Z"},"expected_count":1}`).want(202)
	a.into(&op)
	if op.Filter.Labels["n"] != "2" || op.Filter.Since != "2020-01-01T00:00:00.000Z" || op.Filter.Before == "" {
		t.Errorf("%+v", op.Filter)
	}
	if done := s.finished(a.header.Get("Location")); done.State != "succeeded" || done.Done != 1 || done.Action != "cancel" {
		t.Errorf("%+v", done)
	}
	for id, state := range map[string]string{keep: "ready", gone: "cancelled"} {
		if got := s.send("GET", "/v1/jobs/"+id, nil).want(200).object(); got["state"] != state || got["erased_at"] != nil {
			t.Errorf("%s is %v, want %s", id, got["state"], state)
		}
	}
	a = s.send("POST", "/v1/operations", `{"action":"erase","filter":{"ids":["`+gone+`"]}}`).want(202)
	if done := s.finished(a.header.Get("Location")); done.Done != 1 {
		t.Errorf("%+v", done)
	}
	if got := s.send("GET", "/v1/jobs/"+gone, nil).want(200).object(); got["erased_at"] == nil || got["payload_bytes"] != 0.0 {
		t.Errorf("%v", got)
	}
	s.send("POST", "/v1/jobs/"+gone+"/retry", nil).wantProblem(409, httpapi.CodeConflict, "")
	s.send("POST", "/v1/jobs/"+gone+"/retry", `{"payload":2}`).want(201)
}

func TestWorkers(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	if got := s.send("GET", "/v1/workers", nil).want(200).object(); len(got["workers"].([]any)) != 0 {
		t.Errorf("%v", got)
	}
	now, err := s.store.Now(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	value, err := json.Marshal(workers.Worker{ID: "w-1", Since: now.Add(-time.Hour), LastSeen: now, Slots: 4, Running: 2, Version: "0.1.0"})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.store.PutRecord(t.Context(), "worker", "w-1", value, 0); err != nil {
		t.Fatal(err)
	}
	var l httpapi.WorkerList
	s.send("GET", "/v1/workers", nil).want(200).into(&l)
	if len(l.Workers) != 1 || l.Workers[0].ID != "w-1" || !l.Workers[0].Live || l.Workers[0].Slots != 4 || l.Workers[0].Running != 2 || l.Workers[0].Queues == nil {
		t.Errorf("%+v", l)
	}
}

func TestOperationFaults(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	for _, c := range []struct{ path, body, field string }{
		{"/v1/operations", `{}`, "action"},
		{"/v1/operations", `{"action":"cancel","filter":{"states":["dead"]}}`, "filter.states"},
		{"/v1/operations", `{"action":"cancel","filter":{"states":[]}}`, "filter.states"},
		{"/v1/operations", `{"action":"cancel","filter":{"q":""}}`, "filter.q"},
		{"/v1/operations", `{"action":"cancel","filter":{"since":"x"}}`, "filter.since"},
		{"/v1/operations", `{"action":"cancel","filter":{"label":{}}}`, "filter.label"},
		{"/v1/operations", `{"action":"cancel","dead_before":"2026-11-30T03:00:00Z"}`, "dead_before"},
		{"/v1/operations", `{"action":"purge","filter":{"q":"x"},"dead_before":"2026-11-30T03:00:00Z"}`, "dead_before"},
		{"/v1/operations", `{"action":"cancel","to_queue":"a"}`, "to_queue"},
		{"/v1/dlq/purge", `{"filter":{"states":["ready"]}}`, "filter.states"},
		{"/v1/operations", `{"action":"explode"}`, "action"},
		{"/v1/operations", ``, "body"},
		{"/v1/dlq/replay", `{"action":"purge"}`, "action"},
		{"/v1/dlq/replay", `{"filter":{"typ":"a"}}`, "filter.typ"},
		{"/v1/dlq/replay", `{"filter":{"queue":"a b"}}`, "filter.queue"},
		{"/v1/dlq/replay", `{"filter":{"ids":[]}}`, "filter.ids"},
		{"/v1/dlq/replay", `{"filter":{"ids":[1]}}`, "filter.ids[0]"},
		{"/v1/dlq/replay", `{"filter":{"ids":"a"}}`, "filter.ids"},
		{"/v1/dlq/replay", `{"expected_count":-1}`, "expected_count"},
		{"/v1/dlq/replay", `{"dead_before":"now"}`, "dead_before"},
		{"/v1/dlq/replay", `{"dry_run":"yes"}`, "dry_run"},
		{"/v1/dlq/replay", `{"to_queue":"a b"}`, "to_queue"},
		{"/v1/dlq/purge", `{"to_queue":"a"}`, "to_queue"},
	} {
		s.send("POST", c.path, c.body, "Content-Type", "application/json").wantProblem(400, httpapi.CodeInvalid, c.field)
	}
}

func TestHandlers(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	up := func(module string) answer {
		return s.send("POST", "/v1/handlers/image.resize/versions", module, "Content-Type", "application/wasm")
	}
	a := up("one").want(201)
	var v httpapi.HandlerVersion
	a.into(&v)
	if v.Version != 1 || v.State != "ready" || v.Type != "image.resize" || v.SizeBytes != 3 || len(v.SHA256) != 64 || v.Kind != "reactor" ||
		len(v.Imports) != 1 || v.CreatedAt.IsZero() || a.header.Get("Location") != "/v1/handlers/image.resize/versions/1" {
		t.Errorf("%s %v", a.body, a.header)
	}
	up("one").want(200)
	up("two").want(201)
	s.send("POST", "/v1/handlers/image.resize/versions", "two", "Content-Type", "application/octet-stream").want(200)
	s.send("POST", "/v1/handlers/image.resize/rollback", nil).wantProblem(404, httpapi.CodeNotFound, "")
	s.send("PUT", "/v1/handlers/image.resize/live", `{"version":1}`).want(200)
	s.send("PUT", "/v1/handlers/image.resize/live", `{"version":2,"percent":100}`).want(200).into(&v)
	if v.State != "live" || v.Percent != 100 {
		t.Errorf("%+v", v)
	}
	s.send("GET", "/v1/handlers/image.resize", nil).want(200).into(&v)
	if v.Version != 2 {
		t.Errorf("%+v", v)
	}
	s.send("POST", "/v1/handlers/image.resize/rollback", nil).want(200).into(&v)
	if v.Version != 1 || v.State != "live" {
		t.Errorf("%+v", v)
	}
	s.send("POST", "/v1/handlers/image.resize/rollback", nil).wantProblem(409, httpapi.CodeConflict, "")
	var versions httpapi.VersionList
	s.send("GET", "/v1/handlers/image.resize/versions", nil).want(200).into(&versions)
	if len(versions.Versions) != 2 || versions.Versions[0].Version != 2 {
		t.Errorf("%+v", versions)
	}
	s.send("GET", "/v1/handlers/image.resize/versions/2", nil).want(200)
	var list httpapi.HandlerList
	s.send("GET", "/v1/handlers", nil).want(200).into(&list)
	if len(list.Handlers) != 1 || list.Handlers[0].Version != 1 {
		t.Errorf("%+v", list)
	}

	p := up("bad").wantProblem(422, httpapi.CodeModuleRefused, "")
	if len(p.Details) != 2 || p.Detail != "imports are not known" {
		t.Errorf("%+v", p)
	}
	up("").wantProblem(400, httpapi.CodeInvalid, "body")
	for _, ct := range []string{"multipart/form-data; boundary=x", "application/json", "text/plain", ";"} {
		p := s.send("POST", "/v1/handlers/image.resize/versions", "one", "Content-Type", ct).wantProblem(415, httpapi.CodeUnsupportedMediaType, "")
		if !strings.Contains(p.Detail, "application/wasm") {
			t.Errorf("what is accepted is not named: %+v", p)
		}
	}
	for body, field := range map[string]string{`{}`: "version", `{"version":0}`: "version", `{"version":1,"percent":10}`: "percent", `{"version":1,"canary":1}`: "canary"} {
		s.send("PUT", "/v1/handlers/image.resize/live", body).wantProblem(400, httpapi.CodeInvalid, field)
	}
	s.send("PUT", "/v1/handlers/image.resize/live", `{"version":9}`).wantProblem(404, httpapi.CodeNotFound, "")
	s.send("PUT", "/v1/handlers/nope/live", `{"version":1}`).wantProblem(404, httpapi.CodeNotFound, "")
	s.send("GET", "/v1/handlers/nope", nil).wantProblem(404, httpapi.CodeNotFound, "")
	s.send("GET", "/v1/handlers/nope/versions", nil).wantProblem(404, httpapi.CodeNotFound, "")
	s.send("GET", "/v1/handlers/image.resize/versions/x", nil).wantProblem(400, httpapi.CodeInvalid, "version")
	s.send("POST", "/v1/handlers/a%20b/versions", "one", "Content-Type", "application/wasm").wantProblem(400, httpapi.CodeInvalid, "type")
}

func TestModuleSize(t *testing.T) {
	t.Parallel()
	s := newSite(t, func(o *httpapi.Options) { o.ModuleBytes = 10 })
	p := s.send("POST", "/v1/handlers/a/versions", "elevenbytes", "Content-Type", "application/wasm").wantProblem(413, httpapi.CodeTooLarge, "module")
	if !strings.Contains(p.Detail, "11 bytes") || !strings.Contains(p.Detail, "10 bytes") {
		t.Errorf("%+v", p)
	}
	s.send("POST", "/v1/handlers/a/versions", "ten bytes.", "Content-Type", "application/wasm").want(201)
}

func TestHealth(t *testing.T) {
	t.Parallel()
	var fault error
	s := newSite(t, func(o *httpapi.Options) {
		o.Probes = []httpapi.Probe{
			{Name: "store", Check: func(context.Context) error { return nil }},
			{Name: "handlers", Check: func(context.Context) error { return fault }},
		}
	})
	s.send("GET", "/livez", nil).want(200)
	if m := s.send("GET", "/readyz", nil).want(200).object(); len(m["checks"].([]any)) != 2 {
		t.Errorf("%v", m)
	}
	if m := s.send("GET", "/v1/version", nil).want(200).object(); m["version"] != "0.1.0" || m["store"] != "memory" {
		t.Errorf("%v", m)
	}
	sick := newSite(t, func(o *httpapi.Options) {
		o.Probes = []httpapi.Probe{
			{Name: "store", Check: func(context.Context) error { return errors.New("disk full") }},
			{Name: "handlers", Check: func(context.Context) error { return nil }},
		}
	})
	p := sick.send("GET", "/readyz", nil).wantProblem(503, httpapi.CodeUnavailable, "")
	if len(p.Details) != 1 || p.Details[0] != "store: disk full" || p.RetryAfterMS == 0 {
		t.Errorf("%+v", p)
	}
	sick.send("GET", "/livez", nil).want(200)
}

package httpapi_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/taskhost/taskhost/host/httpapi"
	"github.com/taskhost/taskhost/host/schedules"
)

// wantGolden compares an answer with a file: it changes by additions only.
func wantGolden(t *testing.T, name string, body []byte) {
	t.Helper()
	var got bytes.Buffer
	if err := json.Indent(&got, bytes.TrimSpace(body), "", "  "); err != nil {
		t.Fatal(err)
	}
	got.WriteByte('\n')
	file := filepath.Join("testdata", name+".json")
	if *update {
		if err := os.WriteFile(file, got.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got.Bytes(), want) {
		t.Errorf("%s is\n%s\nwant\n%s", name, got.Bytes(), want)
	}
}

const wholeSchedule = `{"cron":"0 3 * * *","tz":"Europe/Rome","catch_up":"one","type":"report","queue":"low","payload":{"n": 1e400},"priority":-3,` +
	`"expires_in":"1h","timeout":"30s","max_attempts":2,"backoff":{"base":"2s","max":"1m","jitter":"none"},"unique":{"key":"u","on_conflict":"existing"},` +
	`"concurrency_key":"c","labels":{"team":"a"},"headers":{"x":"y"}}`

func TestScheduleLife(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	a := s.send("PUT", "/v1/schedules/nightly", wholeSchedule).want(201)
	if a.header.Get("Location") != "/v1/schedules/nightly" {
		t.Errorf("Location %q", a.header.Get("Location"))
	}
	wantGolden(t, "schedule_whole", s.send("GET", "/v1/schedules/nightly", nil).want(200).body)
	s.send("PUT", "/v1/schedules/nightly", wholeSchedule).want(200)
	a = s.send("POST", "/v1/schedules", `{"name":"tick","cron":"@every 90s","type":"tick"}`).want(201)
	wantGolden(t, "schedule_small", a.body)
	p := s.send("POST", "/v1/schedules", `{"name":"tick","cron":"@every 90s","type":"tick"}`).wantProblem(409, httpapi.CodeConflict, "")
	if !strings.Contains(p.Detail, "exists already") {
		t.Error(p.Detail)
	}

	var cursor struct {
		Next *string `json:"next_cursor"`
	}
	list := s.send("GET", "/v1/schedules?limit=1", nil).want(200)
	list.into(&cursor)
	if cursor.Next == nil || *cursor.Next != "nightly" {
		t.Fatalf("%s", list.body)
	}
	if got := s.send("GET", "/v1/schedules?cursor=nightly", nil).want(200).object(); len(got["schedules"].([]any)) != 1 || got["next_cursor"] != nil {
		t.Errorf("%v", got)
	}

	if got := s.send("PATCH", "/v1/schedules/tick", `{"paused":true}`).want(200).object(); got["paused"] != true || len(got["next"].([]any)) != 0 {
		t.Errorf("%v", got)
	}
	var run httpapi.Enqueued
	s.send("POST", "/v1/schedules/tick/run", nil).want(201).into(&run)
	if job := s.send("GET", "/v1/jobs/"+run.ID, nil).want(200).object(); job["labels"].(map[string]any)["schedule"] != "tick" || job["max_attempts"] != 5.0 {
		t.Errorf("%v", job)
	}
	if got := s.send("PATCH", "/v1/schedules/tick", `{"paused":false}`).want(200).object(); len(got["next"].([]any)) != schedules.NextShown {
		t.Errorf("%v", got)
	}
	s.send("DELETE", "/v1/schedules/tick", nil).want(204)
	for _, method := range []string{"GET", "DELETE"} {
		s.send(method, "/v1/schedules/tick", nil).wantProblem(404, httpapi.CodeNotFound, "")
	}
	s.send("PATCH", "/v1/schedules/tick", `{"paused":true}`).wantProblem(404, httpapi.CodeNotFound, "")
	s.send("POST", "/v1/schedules/tick/run", nil).wantProblem(404, httpapi.CodeNotFound, "")
}

func TestCase059TheAPIRefusesMalformedSchedules(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	for _, spec := range []string{"TZ=0", "TZ=", "CRON_TZ=UTC", "TZ=TZ=TZ=", "15/0 * * * *", "0 0 30 2 *", "@every 0s", "@every -1s", strings.Repeat("*", 10_000), "0 0 * *"} {
		body := fmt.Sprintf(`{"cron":%q,"type":"a"}`, spec)
		p := s.send("PUT", "/v1/schedules/x", body).wantProblem(400, httpapi.CodeInvalid, "cron")
		if spec == "0 0 30 2 *" && !strings.Contains(p.Detail, "next: never") {
			t.Error(p.Detail)
		}
	}
	for field, body := range map[string]string{
		"cron":            `{"type":"a"}`,
		"type":            `{"cron":"@daily"}`,
		"tz":              `{"cron":"@daily","type":"a","tz":"Mars"}`,
		"catch_up":        `{"cron":"@daily","type":"a","catch_up":"some"}`,
		"paused":          `{"cron":"@daily","type":"a","paused":1}`,
		"delay":           `{"cron":"@daily","type":"a","delay":"1s"}`,
		"idempotency_key": `{"cron":"@daily","type":"a","idempotency_key":"k"}`,
		"name":            `{"cron":"@daily","type":"a","name":"y"}`,
		"concurrency_key": `{"cron":"@daily","type":"a","concurrency_key":""}`,
		"payload_base64":  `{"cron":"@daily","type":"a","payload":1,"payload_base64":""}`,
		"max_attempts":    `{"cron":"@daily","type":"a","max_attempts":0}`,
	} {
		s.send("PUT", "/v1/schedules/x", body).wantProblem(400, httpapi.CodeInvalid, field)
	}
	s.send("PUT", "/v1/schedules/a%20b", `{"cron":"@daily","type":"a"}`).wantProblem(400, httpapi.CodeInvalid, "name")
	s.send("POST", "/v1/schedules", `{"cron":"@daily","type":"a"}`).wantProblem(400, httpapi.CodeInvalid, "name")
	s.send("PATCH", "/v1/schedules/x", `{}`).wantProblem(400, httpapi.CodeInvalid, "paused")
	s.send("PATCH", "/v1/schedules/x", `{"cron":"@daily"}`).wantProblem(400, httpapi.CodeInvalid, "cron")
	s.send("GET", "/v1/schedules?limit=0", nil).wantProblem(400, httpapi.CodeInvalid, "limit")
	big := fmt.Sprintf(`{"cron":"@daily","type":"a","payload":%q}`, strings.Repeat("x", schedules.PayloadMax))
	s.send("PUT", "/v1/schedules/x", big).wantProblem(413, httpapi.CodeTooLarge, "payload")
}

func TestAScheduleOfTheConfigurationIsItsOwn(t *testing.T) {
	t.Parallel()
	var plan *schedules.Service
	s := newSite(t, func(o *httpapi.Options) { plan, _ = o.Schedules.(*schedules.Service) })
	err := plan.EnsureConfigured(t.Context(), []schedules.Definition{{Tenant: "default", Name: "nightly", Cron: "@daily", Job: schedules.Job{Type: "a"}}})
	if err != nil {
		t.Fatal(err)
	}
	s.send("PUT", "/v1/schedules/nightly", `{"cron":"@hourly","type":"a"}`).wantProblem(409, httpapi.CodeManagedByConfig, "")
	s.send("DELETE", "/v1/schedules/nightly", nil).wantProblem(409, httpapi.CodeManagedByConfig, "")
	if got := s.send("PATCH", "/v1/schedules/nightly", `{"paused":true}`).want(200).object(); got["paused"] != true || got["origin"] != "config" {
		t.Errorf("%v", got)
	}
}

func TestARefusedRunNamesTheJobInTheWay(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.send("PUT", "/v1/schedules/u", `{"cron":"@daily","type":"a","unique":{"key":"k"}}`).want(201)
	var run httpapi.Enqueued
	s.send("POST", "/v1/schedules/u/run", nil).want(201).into(&run)
	if p := s.send("POST", "/v1/schedules/u/run", nil).wantProblem(409, httpapi.CodeUniqueHeld, "unique.key"); p.JobID != run.ID {
		t.Errorf("%+v", p)
	}
}

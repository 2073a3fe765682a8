package httpapi

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/taskhost/taskhost/handlers"
	"github.com/taskhost/taskhost/queue/memq"
)

func TestSmoke(t *testing.T) {
	s, err := New(Options{Store: memq.New(memq.Options{}), Types: &handlers.Registry{}})
	if err != nil {
		t.Fatal(err)
	}
	do := func(method, path, body string) string {
		r := httptest.NewRequest(method, "http://127.0.0.1"+path, strings.NewReader(body))
		if body != "" {
			r.Header.Set("Content-Type", "application/json")
		}
		w := httptest.NewRecorder()
		s.Handler().ServeHTTP(w, r)
		b, _ := io.ReadAll(w.Body)
		fmt.Println(method, path, w.Code, w.Header(), string(b))
		return string(b)
	}
	do("POST", "/v1/jobs", `{"type":"x","payload":{"a": 1e400,  "k":1,"k":2}}`)
	do("POST", "/v1/jobs?wait=1ms", `{"type":"x","payload":{"a": 1e400,  "k":1,"k":2}}`)
	do("POST", "/v1/jobs", `{"type":"x","payload":1,"foo":1}`)
	do("POST", "/v1/jobs", `{"jobs":[{"type":"x","payload":1,"foo":1}, {"type":"x","payload":1}]}`)
	do("GET", "/v1/jobs?limit=0", ``)
	do("GET", "/v1/jobs?limit=1&label.x=2", ``)
	do("GET", "/v1/jobs?bogus=1", ``)
	do("GET", "/v1/jobs/job_x", ``)
	do("GET", "/v1/jobs/job_x/logs?follow=maybe", ``)
	do("GET", "/v1/nope", ``)
	do("PUT", "/v1/jobs", ``)
	do("PATCH", "/v1/queues/default", `{"weight":null,"paused":true}`)
	do("GET", "/v1/queues", ``)
	do("GET", "/livez", ``)
	do("GET", "/readyz", ``)
	do("GET", "/v1/version", ``)
	if x := do("GET", "/openapi.yaml", ``); !strings.Contains(x, "job") {
		t.Fatal(x)
	}
	_ = http.StatusOK
}

package apiclient

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

func newClient(t *testing.T, h http.HandlerFunc) *Client {
	t.Helper()
	s := httptest.NewServer(h)
	t.Cleanup(s.Close)
	c, err := New(s.URL+"/", "thk_k", "test")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

func TestNewChecksTheAddress(t *testing.T) {
	t.Parallel()
	for _, bad := range []string{"", "localhost:7070", "ftp://x", "http://", "http://u:p@x", "http://x?y", "http://x#y", "http://[::1"} {
		if _, err := New(bad, "", ""); err == nil || !strings.Contains(err.Error(), DefaultServer) {
			t.Errorf("%q: got %v", bad, err)
		}
	}
	if c, err := New("https://host/ops/taskhost/", "", ""); err != nil || c.Server() != "https://host/ops/taskhost" {
		t.Errorf("a server behind a path: %v", err)
	}
}

func TestRequestCarriesKeyBodyAndEscapedPath(t *testing.T) {
	t.Parallel()
	c := newClient(t, func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "Bearer thk_k" || r.Header.Get("Content-Type") != "application/json" || r.UserAgent() != "test" {
			t.Errorf("headers %v", r.Header)
		}
		if r.URL.EscapedPath() != "/v1/queues/a%2Fb%3F" || r.URL.Query().Get("x") != "1 2" {
			t.Errorf("target %s", r.URL)
		}
		_, _ = w.Write([]byte(`{"name":"a/b?"}`))
	})
	var q Queue
	if _, err := c.JSON(t.Context(), http.MethodPatch, Path("queues", "a/b?"), map[string][]string{"x": {"1 2"}}, map[string]bool{"paused": true}, &q); err != nil || q.Name != "a/b?" {
		t.Errorf("got %+v, %v", q, err)
	}
}

func TestRefusalsBecomeProblems(t *testing.T) {
	t.Parallel()
	c := newClient(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/problem+json")
		w.WriteHeader(http.StatusUnprocessableEntity)
		_, _ = w.Write([]byte(`{"code":"module_refused","status":422,"detail":"no","details":["a.b()","c.d()"],"request_id":"r1"}`))
	})
	_, err := c.Do(t.Context(), Request{Method: http.MethodGet, Path: "/"})
	var p *Problem
	if !errors.As(err, &p) || p.Code != "module_refused" || p.Status != 422 || p.RequestID != "r1" || p.Error() != "no\n  a.b()\n  c.d()" {
		t.Errorf("got %#v", err)
	}
}

// Something else than a taskhost server must not be mistaken for one, nor steer the terminal.
func TestStrangeAnswers(t *testing.T) {
	t.Parallel()
	for body, want := range map[string]string{"<html>login</html>": `of "text/html"`, "\x1b[31mred": "bytes of", "nope": "nope"} {
		c := newClient(t, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "text/html")
			w.WriteHeader(http.StatusBadGateway)
			_, _ = w.Write([]byte(body))
		})
		_, err := c.Do(t.Context(), Request{Method: http.MethodGet, Path: "/"})
		var p *Problem
		if !errors.As(err, &p) || p.Code != "unavailable" || !strings.Contains(p.Detail, want) || strings.Contains(p.Detail, "\x1b") {
			t.Errorf("%q: got %v", body, err)
		}
	}
	c := newClient(t, func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("<html>")) })
	if _, err := c.JSON(t.Context(), http.MethodGet, "/", nil, nil, new(Job)); err == nil || !strings.Contains(err.Error(), "did not answer as a taskhost server does") {
		t.Errorf("got %v", err)
	}
	c = newClient(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Location", "http://127.0.0.1:1/")
		w.WriteHeader(http.StatusFound)
	})
	if _, err := c.Do(t.Context(), Request{Method: http.MethodGet, Path: "/"}); err == nil || !strings.Contains(err.Error(), "302") {
		t.Errorf("a redirect must not carry the key elsewhere: got %v", err)
	}
}

func TestUnreachable(t *testing.T) {
	t.Parallel()
	c, err := New("http://127.0.0.1:1", "", "")
	if err != nil {
		t.Fatal(err)
	}
	_, err = c.Do(t.Context(), Request{Method: http.MethodGet, Path: "/"})
	var u *UnreachableError
	if !errors.As(err, &u) || err.Error() != "cannot reach http://127.0.0.1:1: connection refused" {
		t.Errorf("got %v", err)
	}
	cut := newClient(t, func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) })
	if _, err = cut.Do(t.Context(), Request{Method: http.MethodGet, Path: "/"}); !errors.As(err, &u) || !strings.Contains(err.Error(), "was closed before the answer") {
		t.Errorf("got %v", err)
	}
	cause := errors.New("the user gave up")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(cause)
	if _, err := c.Do(ctx, Request{Method: http.MethodGet, Path: "/"}); !errors.Is(err, cause) {
		t.Errorf("got %v, want the cause of the context's end", err)
	}
}

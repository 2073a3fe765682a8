// Package apiclient is the thin transport of the client commands: it sends a request to a taskhost server and gives back the
// bytes of the answer, or a typed error: *Problem when the server refused, *UnreachableError when there was no answer.
// (Programs use the module sdk/go/client instead; the commands show answers as the server wrote them.)
package apiclient

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"
)

// DefaultServer is where a server listens unless configured.
const DefaultServer = "http://127.0.0.1:7070"

// answerMax bounds an answer that is kept in memory.
const answerMax = 256 << 20 // bytes

// Client talks to one server. It is safe for concurrent use.
type Client struct {
	server string
	apiKey string
	agent  string
	http   *http.Client
}

// New checks the address of a server: http or https, a host, and nothing behind the path. apiKey may be empty.
func New(server, apiKey, userAgent string) (*Client, error) {
	u, err := url.Parse(server)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.RawQuery != "" || u.Fragment != "" || u.User != nil {
		return nil, fmt.Errorf("the server must be an address such as %s, got %q", DefaultServer, server)
	}
	transport := &http.Transport{
		Proxy:                 http.ProxyFromEnvironment,
		DialContext:           (&net.Dialer{Timeout: 5 * time.Second}).DialContext,
		TLSHandshakeTimeout:   10 * time.Second,
		ResponseHeaderTimeout: 90 * time.Second, // beyond the longest wait that a server accepts
		ForceAttemptHTTP2:     true,
	}
	return &Client{
		server: strings.TrimRight(server, "/"), apiKey: apiKey, agent: userAgent,
		http: &http.Client{Transport: transport, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }},
	}, nil
}

// Server is the address the client talks to.
func (c *Client) Server() string { return c.server }

// Close lets the idle connections go.
func (c *Client) Close() { c.http.CloseIdleConnections() }

// Request is one call. Path begins with "/" and has its segments escaped (see Path).
type Request struct {
	Method      string
	Path        string
	Query       url.Values
	Body        []byte
	ContentType string // "" = application/json when there is a body
}

// Path joins segments below /v1, each escaped.
func Path(segments ...string) string {
	var b strings.Builder
	b.WriteString("/v1")
	for _, s := range segments {
		b.WriteByte('/')
		b.WriteString(url.PathEscape(s))
	}
	return b.String()
}

// Response is a 2xx answer.
type Response struct {
	Status int
	Header http.Header
	Body   []byte
}

// Do sends a request and reads the whole answer.
func (c *Client) Do(ctx context.Context, r Request) (*Response, error) {
	resp, err := c.send(ctx, r)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(io.LimitReader(resp.Body, answerMax+1))
	if err != nil {
		return nil, c.unreachable(ctx, err)
	}
	if len(body) > answerMax {
		return nil, fmt.Errorf("the answer is longer than %d bytes", answerMax)
	}
	return &Response{Status: resp.StatusCode, Header: resp.Header, Body: body}, nil
}

// Stream sends a request and returns the body of the answer, for the caller to read and close.
func (c *Client) Stream(ctx context.Context, r Request) (io.ReadCloser, error) {
	resp, err := c.send(ctx, r)
	if err != nil {
		return nil, err
	}
	return resp.Body, nil
}

// JSON sends a request whose body is in (nil = none) and decodes the answer into out (nil = not).
func (c *Client) JSON(ctx context.Context, method, path string, query url.Values, in, out any) (*Response, error) {
	r := Request{Method: method, Path: path, Query: query}
	if in != nil {
		body, err := json.Marshal(in)
		if err != nil {
			return nil, fmt.Errorf("encode the request: %w", err)
		}
		r.Body = body
	}
	resp, err := c.Do(ctx, r)
	if err != nil {
		return nil, err
	}
	if out != nil {
		if err := json.Unmarshal(resp.Body, out); err != nil {
			return nil, fmt.Errorf("%s did not answer as a taskhost server does: %w", c.server, err)
		}
	}
	return resp, nil
}

func (c *Client) send(ctx context.Context, r Request) (*http.Response, error) {
	target := c.server + r.Path
	if len(r.Query) > 0 {
		target += "?" + r.Query.Encode()
	}
	var body io.Reader
	if r.Body != nil {
		body = strings.NewReader(string(r.Body))
	}
	req, err := http.NewRequestWithContext(ctx, r.Method, target, body)
	if err != nil {
		return nil, fmt.Errorf("build the request: %w", err)
	}
	req.Header.Set("User-Agent", c.agent)
	req.Header.Set("Accept", "application/json, application/problem+json;q=0.9, */*;q=0.8")
	if r.Body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	if r.ContentType != "" {
		req.Header.Set("Content-Type", r.ContentType)
	}
	if c.apiKey != "" {
		req.Header.Set("Authorization", "Bearer "+c.apiKey)
	}
	resp, err := c.http.Do(req)
	if err != nil {
		return nil, c.unreachable(ctx, err)
	}
	if resp.StatusCode >= 200 && resp.StatusCode < 300 {
		return resp, nil
	}
	defer resp.Body.Close()
	return nil, c.problem(resp)
}

// unreachable prefers the cause of the context's end, which is the caller's own.
func (c *Client) unreachable(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if u, ok := errors.AsType[*url.Error](err); ok { // the method and address are in our own words already
		err = u.Err
	}
	return &UnreachableError{Server: c.server, Err: err}
}

package client

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	mathrand "math/rand/v2"
	"net/http"
	"net/url"
	"strings"
	"time"
)

// Defaults of a Client.
const (
	// RetriesDefault is how often a request is sent again.
	RetriesDefault = 5
	// pauseFirst and pauseMax bound the pause before sending again; it doubles in between.
	pauseFirst = 200 * time.Millisecond
	pauseMax   = 10 * time.Second
	// waitStep is how long one request of Wait waits; the server allows 55 s.
	waitStep = 50 * time.Second
	// headerTimeout is how long an answer may take to begin: longer than waitStep.
	headerTimeout = 70 * time.Second
	// idleConnections are kept for the next requests.
	idleConnections = 64
)

// Client talks to one server. It may be used by many goroutines at once. Make one with New.
type Client struct {
	server  string // without a slash at its end
	key     string
	http    *http.Client
	retries int
	pause   func(ctx context.Context, d time.Duration) error
}

// Option changes how a Client works.
type Option func(*Client)

// WithAPIKey sends a key with every request. Without one the server must not ask for a login.
func WithAPIKey(key string) Option { return func(c *Client) { c.key = key } }

// WithHTTPClient replaces the HTTP client, for its transport, proxy or TLS settings. A timeout of its own should be longer
// than a minute, because Wait holds requests open for 50 s.
func WithHTTPClient(h *http.Client) Option { return func(c *Client) { c.http = h } }

// WithRetries says how often a request is sent again: RetriesDefault unless given, 0 for never.
func WithRetries(n int) Option { return func(c *Client) { c.retries = n } }

// New returns a client of the server at a URL such as "http://127.0.0.1:7070". It connects to nothing yet.
func New(server string, options ...Option) (*Client, error) {
	u, err := url.Parse(server)
	if err != nil {
		return nil, fmt.Errorf("server address: %w", err)
	}
	if u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
		return nil, fmt.Errorf("server address %q: must be a URL such as http://127.0.0.1:7070", server)
	}
	c := &Client{server: strings.TrimRight(server, "/"), retries: RetriesDefault, pause: sleep}
	for _, o := range options {
		o(c)
	}
	if c.retries < 0 {
		return nil, fmt.Errorf("retries: must be 0 or more, got %d", c.retries)
	}
	if c.http == nil {
		c.http = &http.Client{Transport: &http.Transport{
			Proxy: http.ProxyFromEnvironment, MaxIdleConnsPerHost: idleConnections, IdleConnTimeout: time.Minute,
			ResponseHeaderTimeout: headerTimeout, ForceAttemptHTTP2: true,
		}}
	}
	return c, nil
}

// Close lets the connections go that wait for the next request.
func (c *Client) Close() { c.http.CloseIdleConnections() }

// request is one call of the API.
type request struct {
	method, path string
	query        url.Values
	body         []byte // JSON; nil = none
	once         bool   // never sent again
}

// response is an answer that was read whole.
type response struct {
	status  int
	body    []byte
	resends int // how often it was sent before it was answered
}

func (r response) into(v any) error {
	if err := json.Unmarshal(r.body, v); err != nil {
		return fmt.Errorf("the server's answer cannot be read: %w", err)
	}
	return nil
}

// do sends a request, again if need be.
func (c *Client) do(ctx context.Context, req request) (response, error) {
	for resends := 0; ; resends++ {
		resp, err := c.send(ctx, req)
		resp.resends = resends
		if err == nil || req.once || resends >= c.retries || !worthResending(ctx, err) {
			return resp, err
		}
		if c.pause(ctx, pauseBefore(resends, err)) != nil {
			return resp, err
		}
	}
}

// worthResending reports whether sending again may help: the outcome is not known, or it was refused for now.
func worthResending(ctx context.Context, err error) bool {
	if ctx.Err() != nil {
		return false
	}
	e := (*Error)(nil)
	if !errors.As(err, &e) {
		return true // no answer
	}
	switch e.Status {
	case http.StatusRequestTimeout, http.StatusTooManyRequests, http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		return true
	}
	return false
}

// pauseBefore is exponential with full jitter, and at least what the server asks for.
func pauseBefore(resends int, err error) time.Duration {
	ceiling := min(pauseFirst<<min(resends, 16), pauseMax)
	d := time.Duration(mathrand.Int64N(int64(ceiling))) + 1
	if e := (*Error)(nil); errors.As(err, &e) {
		d = max(d, e.RetryAfter)
	}
	return d
}

func sleep(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func (c *Client) send(ctx context.Context, req request) (response, error) {
	address := c.server + req.path
	if len(req.query) > 0 {
		address += "?" + req.query.Encode()
	}
	var body io.Reader
	if req.body != nil {
		body = bytes.NewReader(req.body)
	}
	r, err := http.NewRequestWithContext(ctx, req.method, address, body)
	if err != nil {
		return response{}, err
	}
	if req.body != nil {
		r.Header.Set("Content-Type", "application/json")
	}
	if c.key != "" {
		r.Header.Set("Authorization", "Bearer "+c.key)
	}
	resp, err := c.http.Do(r)
	if err != nil {
		return response{}, err
	}
	defer resp.Body.Close()
	data, err := io.ReadAll(resp.Body)
	if err != nil {
		return response{}, fmt.Errorf("%s %s: the answer broke off: %w", req.method, req.path, err)
	}
	if resp.StatusCode >= http.StatusMultipleChoices {
		return response{status: resp.StatusCode}, readError(resp, data)
	}
	return response{status: resp.StatusCode, body: data}, nil
}

// newKey makes an idempotency key: 128 random bits.
func newKey() string {
	var b [16]byte
	if _, err := rand.Read(b[:]); err != nil {
		panic("no random bits: " + err.Error()) // cannot happen on a supported system
	}
	return "auto-" + hex.EncodeToString(b[:])
}

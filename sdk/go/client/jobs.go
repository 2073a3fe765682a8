package client

import (
	"context"
	"net/http"
	"net/url"
)

// Job shows a job.
func (c *Client) Job(ctx context.Context, id string) (*Job, error) { return c.job(ctx, id, nil) }

func (c *Client) job(ctx context.Context, id string, query url.Values) (*Job, error) {
	resp, err := c.do(ctx, request{method: http.MethodGet, path: jobPath(id), query: query})
	if err != nil {
		return nil, err
	}
	var j Job
	if err := resp.into(&j); err != nil {
		return nil, err
	}
	return &j, nil
}

// Wait returns the job when it is finished, however it ended: see Job.Err. When ctx ends first its error is returned; the
// job goes on. The server holds each request open until the job changes, so waiting costs next to nothing.
func (c *Client) Wait(ctx context.Context, id string) (*Job, error) {
	query := url.Values{"wait": {waitStep.String()}}
	for {
		j, err := c.job(ctx, id, query)
		if err != nil || j.State.Terminal() {
			return j, err
		}
		// A server that stops answers at once; do not hammer it.
		if err := c.pause(ctx, pauseBefore(0, nil)); err != nil {
			return nil, err
		}
	}
}

// Result is the result of a succeeded job, byte for byte. It is an *Error with CodeNotFound for any other.
func (c *Client) Result(ctx context.Context, id string) ([]byte, error) {
	return c.bytes(ctx, jobPath(id)+"/result")
}

// Payload is the payload of a job, byte for byte.
func (c *Client) Payload(ctx context.Context, id string) ([]byte, error) {
	return c.bytes(ctx, jobPath(id)+"/payload")
}

func (c *Client) bytes(ctx context.Context, path string) ([]byte, error) {
	resp, err := c.do(ctx, request{method: http.MethodGet, path: path})
	return resp.body, err
}

// Cancel cancels a job: one that waits at once; of a running one the handler is stopped, and CancelRequested is true until
// it is. A finished job is an *Error with CodeConflict, unless it is cancelled already.
func (c *Client) Cancel(ctx context.Context, id string) (*Job, error) {
	return c.post(ctx, request{method: http.MethodPost, path: jobPath(id) + "/cancel"})
}

// Retry runs a finished job again: a dead one starts a new run, another is enqueued as a copy. It is sent once.
func (c *Client) Retry(ctx context.Context, id string) (*Job, error) {
	return c.post(ctx, request{method: http.MethodPost, path: jobPath(id) + "/retry", once: true})
}

func (c *Client) post(ctx context.Context, req request) (*Job, error) {
	resp, err := c.do(ctx, req)
	if err != nil {
		return nil, err
	}
	var j Job
	if err := resp.into(&j); err != nil {
		return nil, err
	}
	return &j, nil
}

// Delete removes a job that does not run, with everything about it.
func (c *Client) Delete(ctx context.Context, id string) error {
	resp, err := c.do(ctx, request{method: http.MethodDelete, path: jobPath(id)})
	if resp.resends > 0 && CodeOf(err) == CodeNotFound {
		return nil // by an earlier sending
	}
	return err
}

func jobPath(id string) string { return "/v1/jobs/" + url.PathEscape(id) }

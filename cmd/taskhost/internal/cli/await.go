package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/taskhost/taskhost/cmd/taskhost/internal/apiclient"
)

// waitStep is how long one request waits; the server takes at most 55 s.
const waitStep = 50 * time.Second

// quietFor is how long a terminal shows nothing.
const quietFor = 2 * time.Second

// reconnectFor is how long a wait goes on while the server does not answer, so that a restart does not end it.
const reconnectFor = 30 * time.Second

// await follows a job to its end, telling about failed attempts as they happen, and prints its result. limit 0 = no limit.
func (a *App) await(ctx context.Context, c *apiclient.Client, id string, limit time.Duration) error {
	parent, step := ctx, waitStep
	if isTerminal(a.Err) {
		step = quietFor // then say that it is being waited for
	}
	if limit > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(ctx, limit, errWaitTimeout)
		defer cancel()
	}
	seen := 0
	for {
		job, raw, err := a.waitOnce(ctx, c, id, seen, step)
		if err != nil {
			return a.stoppedWaiting(err, id, limit)
		}
		for _, attempt := range job.Attempts[min(seen, len(job.Attempts)):] {
			a.tellAttempt(job, attempt)
		}
		seen = max(seen, len(job.Attempts))
		if job.Terminal() {
			return a.finished(parent, c, job, raw)
		}
		if step == quietFor && seen == 0 {
			a.say("%s is %s; waiting (Ctrl-C stops waiting, not the job)", id, stateText(job))
		}
		step = waitStep
	}
}

// waitOnce asks for the job once it has ended or has more than seen attempts, or after step; again while the server is away.
func (a *App) waitOnce(ctx context.Context, c *apiclient.Client, id string, seen int, step time.Duration) (*apiclient.Job, []byte, error) {
	var lost time.Time
	for {
		var job apiclient.Job
		query := url.Values{"wait": {step.String()}, "after_attempt": {strconv.Itoa(seen)}}
		resp, err := c.JSON(ctx, http.MethodGet, apiclient.Path("jobs", id), query, nil, &job)
		if err == nil {
			return &job, resp.Body, nil
		}
		p, refused := errors.AsType[*apiclient.Problem](err)
		_, away := errors.AsType[*apiclient.UnreachableError](err)
		if !away && !(refused && p.Status == http.StatusServiceUnavailable) {
			return nil, nil, err
		}
		switch {
		case lost.IsZero():
			lost = time.Now()
			a.say("%s; still waiting for %s", err, id)
		case time.Since(lost) > reconnectFor:
			return nil, nil, err
		}
		select {
		case <-ctx.Done():
			return nil, nil, context.Cause(ctx)
		case <-time.After(time.Second):
		}
	}
}

// stoppedWaiting explains the end of a wait that is not the end of the job.
func (a *App) stoppedWaiting(err error, id string, limit time.Duration) error {
	later := fmt.Sprintf("the job goes on; see: %s job get %s", self(), id)
	if errors.Is(err, errWaitTimeout) {
		return &exitError{code: ExitTimeout, err: fmt.Errorf("%s did not end within %s", id, limit), hint: later}
	}
	if e, ok := errors.AsType[*interrupted](err); ok {
		return &exitError{code: signalCode(e.signal), err: errors.New("stopped waiting"), hint: later}
	}
	if p, ok := errors.AsType[*apiclient.Problem](err); ok && p.Status == http.StatusNotFound {
		return &exitError{code: ExitNotFound, err: err, hint: "a server with retention.succeeded: none keeps no results to wait for"}
	}
	return err
}

// tellAttempt reports a failed attempt on stderr.
func (a *App) tellAttempt(job *apiclient.Job, at apiclient.Attempt) {
	if at.Error == nil || at.Outcome == "succeeded" {
		return
	}
	line := fmt.Sprintf("attempt %d/%d %s: %s", at.Attempt, job.MaxAttempts, at.Outcome, headline(at.Error.Kind, at.Error.Message))
	last := len(job.Attempts) > 0 && job.Attempts[len(job.Attempts)-1].Attempt == at.Attempt
	if last && job.State == "scheduled" && job.NextRunAt != nil {
		line += fmt.Sprintf("; next in %.1f s", max(time.Until(*job.NextRunAt), 0).Seconds())
	}
	a.say("%s", line)
}

// clip shortens a message; it keeps its first lines.
func clip(s string) string {
	const most = 400
	if len(s) > most {
		return strings.ToValidUTF8(s[:most], "") + "…"
	}
	return s
}

// finished prints the end of a job: the timeline on stderr, the result on stdout.
func (a *App) finished(ctx context.Context, c *apiclient.Client, job *apiclient.Job, raw []byte) error {
	if job.State != "succeeded" {
		if a.output != "table" {
			if err := a.show(raw, []string{job.ID}, func(io.Writer) {}); err != nil {
				return err
			}
		}
		return a.endedBadly(job)
	}
	a.say("%s", timeline(job))
	if a.output != "table" {
		return a.show(raw, []string{job.ID}, func(io.Writer) {})
	}
	return a.printResult(ctx, c, job.ID)
}

// printResult writes a result byte for byte; on a terminal it ends the line.
func (a *App) printResult(ctx context.Context, c *apiclient.Client, id string) error {
	resp, err := c.Do(ctx, apiclient.Request{Method: http.MethodGet, Path: apiclient.Path("jobs", id, "result")})
	if err != nil {
		return err
	}
	out := resp.Body
	if isTerminal(a.Out) && len(out) > 0 && out[len(out)-1] != '\n' {
		out = append(out, '\n')
	}
	return a.write(out)
}

func (a *App) endedBadly(job *apiclient.Job) error {
	why := ""
	if job.LastError != nil {
		why = ": " + headline(job.LastError.Kind, job.LastError.Message)
	}
	e := &exitError{code: ExitJobFailed}
	switch job.State {
	case "dead":
		attempts := "attempts"
		if job.Attempt == 1 {
			attempts = "attempt"
		}
		e.err = fmt.Errorf("%s is dead after %d %s%s", job.ID, job.Attempt, attempts, why)
		e.hint = fmt.Sprintf("look: %s job get %s · try its handler here: %s handler run MODULE --job %s · again: %s dlq replay --id %s",
			self(), job.ID, self(), job.ID, self(), job.ID)
	default:
		e.err = fmt.Errorf("%s is %s%s", job.ID, job.State, why)
		e.hint = fmt.Sprintf("look: %s job get %s", self(), job.ID)
	}
	return e
}

// timeline is the life of a job in one line, in ms since it was created. Store time has a resolution of 1 ms.
func timeline(job *apiclient.Job) string {
	since := func(t *time.Time) string {
		d := t.Sub(*job.CreatedAt)
		if d >= 10*time.Second {
			return fmt.Sprintf("%.1f s", d.Seconds())
		}
		return fmt.Sprintf("%d ms", d.Milliseconds())
	}
	line := job.ID
	if job.CreatedAt == nil {
		return line + " " + job.State
	}
	line += " ready 0 ms"
	if job.StartedAt != nil {
		line += " → running " + since(job.StartedAt)
	}
	if job.FinishedAt != nil {
		line += " → " + job.State + " " + since(job.FinishedAt)
	}
	return line
}

// handlerTypes lists the types that are served, without patterns.
func handlerTypes(ctx context.Context, c *apiclient.Client) ([]string, error) {
	list, _, err := listHandlers(ctx, c)
	if err != nil {
		return nil, err
	}
	var types []string
	for _, h := range list {
		if !strings.HasSuffix(h.Type, "*") {
			types = append(types, h.Type)
		}
	}
	return types, nil
}

func decode[T any](raw []byte) (T, error) {
	var v T
	if err := json.Unmarshal(raw, &v); err != nil {
		return v, fmt.Errorf("the server did not answer as expected: %w", err)
	}
	return v, nil
}

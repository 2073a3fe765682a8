package cli

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/taskhost/taskhost/cmd/taskhost/internal/apiclient"
)

func (a *App) jobWhyCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "why ID",
		Short: "Say why a job is not running, or why it ended as it did",
		Args:  args(1, 1),
	}
	return a.client(cmd, func(ctx context.Context, c *apiclient.Client, args []string) error {
		var job apiclient.Job
		resp, err := c.JSON(ctx, http.MethodGet, apiclient.Path("jobs", args[0]), nil, nil, &job)
		if err != nil {
			return err
		}
		return a.show(resp.Body, []string{job.ID}, func(w io.Writer) { fmt.Fprintln(w, safe(why(&job))) })
	})
}

// why explains a state in one sentence.
func why(job *apiclient.Job) string {
	last := ""
	if job.LastError != nil {
		last = "; last error: " + headline(job.LastError.Kind, job.LastError.Message)
	}
	switch job.State {
	case "running":
		return fmt.Sprintf("%s is running on %s since %s (attempt %d of %d)%s", job.ID, dash(job.Worker), stamp(job.StartedAt), job.Attempt, job.MaxAttempts, last)
	case "succeeded":
		return fmt.Sprintf("%s succeeded at %s", job.ID, stamp(job.FinishedAt))
	case "dead", "cancelled", "expired":
		return fmt.Sprintf("%s is %s since %s, after %d of %d attempts%s", job.ID, job.State, stamp(job.FinishedAt), job.Attempt, job.MaxAttempts, last)
	}
	var reasons []string
	for _, on := range job.WaitingOn {
		reasons = append(reasons, waitingText(job.Type, on))
	}
	if len(reasons) == 0 {
		reasons = []string{"a free slot"}
	}
	return fmt.Sprintf("%s is %s and waits on %s%s", job.ID, job.State, strings.Join(reasons, "; "), last)
}

// waitingText is one thing that a job of a type waits on.
func waitingText(typ string, on apiclient.WaitingOn) string {
	if on.Code == "no_handler" {
		text := fmt.Sprintf("a handler: none serves %s", typ)
		if on.Until != nil {
			text += fmt.Sprintf(" (the next look is %.1f s from now)", max(time.Until(*on.Until), 0).Seconds())
		}
		return text
	}
	if on.Code == "quarantined" {
		text := fmt.Sprintf("its handler: the version that serves %s is quarantined because its jobs crashed; make a version live to lift that", typ)
		if on.Until != nil {
			text += fmt.Sprintf(" (the next look is %.1f s from now)", max(time.Until(*on.Until), 0).Seconds())
		}
		return text
	}
	text := map[string]string{
		"delay":              "its delay",
		"retry_backoff":      "its retry",
		"defer":              "the time it was put off to",
		"paused":             "its queue, which is paused",
		"max_running":        "its queue, which runs as many jobs as it may",
		"tenant_max_running": "its tenant, which runs as many jobs as it may",
		"rate":               "the rate of its queue",
		"concurrency_key":    "the jobs that run with its concurrency key",
		"ahead":              "the jobs ahead of it",
	}[on.Code]
	if text == "" {
		text = on.Code
	}
	if on.Until != nil {
		text += fmt.Sprintf(", %.1f s from now", max(time.Until(*on.Until), 0).Seconds())
	}
	if on.Limit > 0 {
		text += fmt.Sprintf(" (%d of %d)", on.Running, on.Limit)
	}
	if on.AtMost > 0 {
		text += fmt.Sprintf(" (at most %d)", on.AtMost)
	}
	return text
}

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
		reasons = append(reasons, waitingText(on))
	}
	if len(reasons) == 0 {
		reasons = []string{"a free slot"}
	}
	return fmt.Sprintf("%s is %s and waits on %s%s", job.ID, job.State, strings.Join(reasons, "; "), last)
}

func waitingText(on apiclient.WaitingOn) string {
	text := map[string]string{
		"delay":              "its delay",
		"retry_backoff":      "its retry",
		"defer":              "the time its handler asked for",
		"no_handler":         "a handler of its type",
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

package cli

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/spf13/cobra"

	"github.com/taskhost/taskhost/cmd/taskhost/internal/apiclient"
)

func (a *App) jobGetCommand() *cobra.Command {
	var payload, result bool
	cmd := &cobra.Command{
		Use:   "get ID",
		Short: "Show one job with its attempts",
		Long:  "Show one job with its attempts. With --payload or --result only those bytes are printed, exactly as they are.",
		Args:  args(1, 1),
	}
	cmd.Flags().BoolVar(&payload, "payload", false, "print the payload alone")
	cmd.Flags().BoolVar(&result, "result", false, "print the result alone")
	cmd.MarkFlagsMutuallyExclusive("payload", "result")
	return a.client(cmd, func(ctx context.Context, c *apiclient.Client, args []string) error {
		switch {
		case result:
			return a.printResult(ctx, c, args[0])
		case payload:
			resp, err := c.Do(ctx, apiclient.Request{Method: http.MethodGet, Path: apiclient.Path("jobs", args[0], "payload")})
			if err != nil {
				return err
			}
			return a.write(resp.Body)
		}
		var job apiclient.Job
		resp, err := c.JSON(ctx, http.MethodGet, apiclient.Path("jobs", args[0]), nil, nil, &job)
		if err != nil {
			return err
		}
		return a.showJob(resp.Body, &job)
	})
}

// showJob prints one job for people: the facts, then the attempts.
func (a *App) showJob(raw []byte, job *apiclient.Job) error {
	return a.show(raw, []string{job.ID}, func(w io.Writer) {
		row(w, "id", job.ID)
		row(w, "type", job.Type)
		row(w, "queue", job.Queue)
		row(w, "state", stateText(job))
		row(w, "priority", job.Priority)
		row(w, "attempt", fmt.Sprintf("%d of %d (run %d)", job.Attempt, job.MaxAttempts, job.Run))
		if job.Crashes+job.Interruptions > 0 {
			row(w, "crashes", fmt.Sprintf("%d, interrupted %d", job.Crashes, job.Interruptions))
		}
		row(w, "created", stamp(job.CreatedAt))
		if job.StartedAt != nil {
			row(w, "started", stamp(job.StartedAt))
		}
		if job.NextRunAt != nil {
			row(w, "next run", stamp(job.NextRunAt))
		}
		if job.FinishedAt != nil {
			row(w, "finished", stamp(job.FinishedAt))
		}
		if job.Handler != nil {
			row(w, "handler", fmt.Sprintf("%s v%d", job.Handler.Runtime, job.Handler.Version))
		}
		if p := job.Progress; p != nil {
			row(w, "progress", fmt.Sprintf("%d of %d %s", p.Done, p.Total, p.Message))
		}
		row(w, "payload", bytesText(job.PayloadBytes))
		if job.State == "succeeded" {
			row(w, "result", bytesText(job.ResultBytes))
		}
		for _, on := range job.WaitingOn {
			row(w, "waiting on", waitingText(job.Type, on))
		}
		if job.LastError != nil {
			row(w, "last error", headline(job.LastError.Kind, job.LastError.Message))
			for _, line := range trace(job.LastError.Message) {
				row(w, "", line)
			}
		}
		for _, at := range job.Attempts {
			line := fmt.Sprintf("%s in %d ms", at.Outcome, at.DurationMS)
			if at.PeakMemoryBytes > 0 {
				line += ", peak " + bytesText(at.PeakMemoryBytes)
			}
			if at.Error != nil {
				line += ": " + headline(at.Error.Kind, at.Error.Message)
			}
			row(w, fmt.Sprintf("attempt %d.%d", at.Run, at.Attempt), line)
		}
	})
}

func stateText(job *apiclient.Job) string {
	s := job.State
	if job.Reason != "" {
		s += " (" + job.Reason + ")"
	}
	if job.Cancel {
		s += ", being cancelled"
	}
	return s
}

func stamp(t *time.Time) string {
	if t == nil {
		return "-"
	}
	return t.UTC().Format("2006-01-02T15:04:05.000Z") + "  " + ago(t)
}

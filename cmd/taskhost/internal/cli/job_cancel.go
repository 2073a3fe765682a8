package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"

	"github.com/spf13/cobra"

	"github.com/taskhost/taskhost/cmd/taskhost/internal/apiclient"
)

func (a *App) jobCancelCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "cancel ID...",
		Short: "Cancel jobs: waiting ones at once, running ones are stopped",
		Args:  args(1, -1),
	}
	return a.client(cmd, func(ctx context.Context, c *apiclient.Client, ids []string) error {
		return a.each(ctx, ids, func(id string) error {
			var job apiclient.Job
			resp, err := c.JSON(ctx, http.MethodPost, apiclient.Path("jobs", id, "cancel"), nil, nil, &job)
			if err != nil {
				return err
			}
			return a.show(resp.Body, []string{job.ID}, func(w io.Writer) { row(w, job.ID, stateText(&job)) })
		})
	})
}

func (a *App) jobDeleteCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "delete ID...",
		Short: "Delete jobs that do not run, with everything about them",
		Args:  args(1, -1),
	}
	return a.client(cmd, func(ctx context.Context, c *apiclient.Client, ids []string) error {
		return a.each(ctx, ids, func(id string) error {
			_, err := c.Do(ctx, apiclient.Request{Method: http.MethodDelete, Path: apiclient.Path("jobs", id)})
			if err == nil {
				a.say("%s deleted", id)
			}
			return err
		})
	})
}

// each does something to each of several jobs or queues. One that fails does not keep the others from being done; the exit code is
// then ExitPartial, unless all failed alike.
func (a *App) each(ctx context.Context, ids []string, do func(id string) error) error {
	var failed []error
	for _, id := range ids {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		err := do(id)
		if err == nil {
			continue
		}
		if _, away := errors.AsType[*apiclient.UnreachableError](err); away || len(ids) == 1 {
			return err
		}
		failed = append(failed, fmt.Errorf("%s: %w", id, err))
	}
	switch {
	case len(failed) == 0:
		return nil
	case len(failed) == len(ids):
		return &exitError{code: exitCode(failed[0]), err: errors.Join(failed...)}
	}
	return &exitError{code: ExitPartial, err: fmt.Errorf("%d of %d failed:\n%w", len(failed), len(ids), errors.Join(failed...))}
}

package cli

import (
	"context"
	"io"
	"net/http"

	"github.com/spf13/cobra"

	"github.com/taskhost/taskhost/cmd/taskhost/internal/apiclient"
)

func (a *App) jobRetryCommand() *cobra.Command {
	var (
		data string
		raw  bool
	)
	cmd := &cobra.Command{
		Use:   "retry ID",
		Short: "Run a finished job again, with another payload if given",
		Long: `Run a finished job again. A dead job starts a new run; another finished job, and any job with --data, is enqueued anew as a
copy that names it. The id of the job that will run is printed.

` + dataHelp,
		Args: args(1, 1),
	}
	cmd.Flags().StringVar(&data, "data", "", "another payload: TEXT, @FILE or @-")
	cmd.Flags().BoolVar(&raw, "raw", false, "send the data as bytes even if it is JSON")
	return a.client(cmd, func(ctx context.Context, c *apiclient.Client, args []string) error {
		r := apiclient.Request{Method: http.MethodPost, Path: apiclient.Path("jobs", args[0], "retry")}
		if cmd.Flags().Changed("data") {
			bytes, err := a.readData(data)
			if err != nil {
				return err
			}
			r.Body = withPayload([]byte("{}"), payloadField(bytes, raw))
		}
		resp, err := c.Do(ctx, r)
		if err != nil {
			return err
		}
		job, err := decode[apiclient.Job](resp.Body)
		if err != nil {
			return err
		}
		return a.show(resp.Body, []string{job.ID}, func(w io.Writer) { row(w, job.ID) })
	})
}

package cli

import (
	"context"
	"time"

	"github.com/spf13/cobra"

	"github.com/taskhost/taskhost/cmd/taskhost/internal/apiclient"
	"github.com/taskhost/taskhost/config"
)

func (a *App) jobWaitCommand() *cobra.Command {
	var waitTimeout string
	cmd := &cobra.Command{
		Use:   "wait ID",
		Short: "Wait for a job and print its result, as enqueue --wait does",
		Args:  args(1, 1),
	}
	cmd.Flags().StringVar(&waitTimeout, "wait-timeout", "", "give up waiting after so long, exit code 124")
	return a.client(cmd, func(ctx context.Context, c *apiclient.Client, args []string) error {
		var limit time.Duration
		if waitTimeout != "" {
			var err error
			if limit, err = config.ParseDuration(waitTimeout); err != nil || limit <= 0 {
				return usagef(`--wait-timeout must be a duration such as "90s", got %q`, waitTimeout)
			}
		}
		return a.await(ctx, c, args[0], limit)
	})
}

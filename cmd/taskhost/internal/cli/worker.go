package cli

import (
	"context"
	"io"
	"net/http"
	"strings"

	"github.com/spf13/cobra"

	"github.com/taskhost/taskhost/cmd/taskhost/internal/apiclient"
)

func (a *App) workerCommand() *cobra.Command {
	return newGroup("worker", "Look at the hosts of the store", a.workerListCommand())
}

func (a *App) workerListCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use: "list", Short: "List the hosts, also those that vanished lately", Args: args(0, 0),
		Long: `List the hosts that work on the server's store. Each tells every half minute that it is there, and leaves the list when it stops. One that
died stays for a day, as gone.`,
	}
	return a.client(cmd, func(ctx context.Context, c *apiclient.Client, _ []string) error {
		var list struct {
			Workers []apiclient.Worker `json:"workers"`
		}
		resp, err := c.JSON(ctx, http.MethodGet, "/v1/workers", nil, nil, &list)
		if err != nil {
			return err
		}
		ids := make([]string, len(list.Workers))
		for i, w := range list.Workers {
			ids[i] = w.ID
		}
		return a.show(resp.Body, ids, func(w io.Writer) {
			row(w, "ID", "STATE", "SLOTS", "RUNNING", "QUEUES", "SINCE", "LAST SEEN", "VERSION")
			for _, h := range list.Workers {
				state, queues := "gone", "*"
				if h.Live {
					state = "live"
				}
				if len(h.Queues) > 0 {
					queues = strings.Join(h.Queues, ",")
				}
				row(w, h.ID, state, h.Slots, h.Running, queues, ago(h.Since), ago(h.LastSeen), dash(h.Version))
			}
		})
	})
}

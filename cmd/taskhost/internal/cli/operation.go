package cli

import (
	"context"
	"fmt"
	"io"
	"net/http"

	"github.com/spf13/cobra"

	"github.com/taskhost/taskhost/cmd/taskhost/internal/apiclient"
)

func (a *App) operationCommand() *cobra.Command {
	return newGroup("operation", "Change many jobs (cancel, retry, replay, purge, erase) and look at such operations",
		a.operationStartCommand(),
		a.operationOneCommand("get", "Show one operation", http.MethodGet),
		a.operationListCommand(),
		a.operationOneCommand("cancel", "Stop an operation; what is done stays done", http.MethodPost, "cancel"))
}

func (a *App) operationListCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "list", Short: "List operations, newest first", Args: args(0, 0)}
	return a.client(cmd, func(ctx context.Context, c *apiclient.Client, _ []string) error {
		var list struct {
			Operations []apiclient.Operation `json:"operations"`
		}
		resp, err := c.JSON(ctx, http.MethodGet, "/v1/operations", nil, nil, &list)
		if err != nil {
			return err
		}
		ids := make([]string, len(list.Operations))
		for i, op := range list.Operations {
			ids[i] = op.ID
		}
		return a.show(resp.Body, ids, func(w io.Writer) { operationTable(w, list.Operations) })
	})
}

func (a *App) operationOneCommand(use, short, method string, verb ...string) *cobra.Command {
	cmd := &cobra.Command{Use: use + " ID", Short: short, Args: args(1, 1)}
	return a.client(cmd, func(ctx context.Context, c *apiclient.Client, args []string) error {
		var op apiclient.Operation
		resp, err := c.JSON(ctx, method, apiclient.Path(append([]string{"operations", args[0]}, verb...)...), nil, nil, &op)
		if err != nil {
			return err
		}
		return a.show(resp.Body, []string{op.ID}, func(w io.Writer) { operationTable(w, []apiclient.Operation{op}) })
	})
}

func operationTable(w io.Writer, ops []apiclient.Operation) {
	row(w, "ID", "ACTION", "STATE", "MATCHED", "DONE", "SKIPPED", "FAILED", "CREATED", "ERROR")
	for _, op := range ops {
		row(w, op.ID, op.Action, op.State, op.Matched, op.Done, op.Skipped, op.Failed, ago(op.CreatedAt), dash(fmt.Sprint(op.Error)))
	}
}

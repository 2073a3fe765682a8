package cli

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/taskhost/taskhost/cmd/taskhost/internal/apiclient"
)

func (a *App) handlerActivateCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "activate TYPE VERSION",
		Short: "Make an uploaded version serve its type",
		Args:  args(2, 2),
	}
	return a.client(cmd, func(ctx context.Context, c *apiclient.Client, args []string) error {
		n, err := strconv.Atoi(strings.TrimPrefix(args[1], "v"))
		if err != nil || n < 1 {
			return usagef("the version must be a number such as 3, got %q", args[1])
		}
		v, raw, err := activate(ctx, c, args[0], n)
		if err != nil {
			return err
		}
		return a.show(raw, []string{fmt.Sprint(v.Version)}, func(w io.Writer) { fmt.Fprintln(w, safe(versionText(v))) })
	})
}

func activate(ctx context.Context, c *apiclient.Client, typ string, version int) (*apiclient.HandlerVersion, []byte, error) {
	var v apiclient.HandlerVersion
	resp, err := c.JSON(ctx, http.MethodPut, apiclient.Path("handlers", typ, "live"), nil, map[string]any{"version": version}, &v)
	if err != nil {
		return nil, nil, err
	}
	return &v, resp.Body, nil
}

func (a *App) handlerRollbackCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "rollback TYPE",
		Short: "Make the version serve again that was live before",
		Args:  args(1, 1),
	}
	return a.client(cmd, func(ctx context.Context, c *apiclient.Client, args []string) error {
		var v apiclient.HandlerVersion
		resp, err := c.JSON(ctx, http.MethodPost, apiclient.Path("handlers", args[0], "rollback"), nil, nil, &v)
		if err != nil {
			return err
		}
		return a.show(resp.Body, []string{fmt.Sprint(v.Version)}, func(w io.Writer) { fmt.Fprintln(w, safe(versionText(&v))) })
	})
}

package cli

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"

	"github.com/spf13/cobra"

	"github.com/taskhost/taskhost/cmd/taskhost/internal/apiclient"
)

func (a *App) handlerListCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "list", Short: "List the types and the version that serves each", Args: args(0, 0)}
	return a.client(cmd, func(ctx context.Context, c *apiclient.Client, _ []string) error {
		list, raw, err := listHandlers(ctx, c)
		if err != nil {
			return err
		}
		types := make([]string, len(list))
		for i, h := range list {
			types[i] = h.Type
		}
		return a.show(raw, types, func(w io.Writer) { versionTable(w, list) })
	})
}

func (a *App) handlerVersionsCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "versions TYPE", Short: "List the versions of one type", Args: args(1, 1)}
	return a.client(cmd, func(ctx context.Context, c *apiclient.Client, args []string) error {
		var list struct {
			Versions []apiclient.HandlerVersion `json:"versions"`
		}
		resp, err := c.JSON(ctx, http.MethodGet, apiclient.Path("handlers", args[0], "versions"), nil, nil, &list)
		if err != nil {
			return err
		}
		ids := make([]string, len(list.Versions))
		for i, v := range list.Versions {
			ids[i] = fmt.Sprint(v.Version)
		}
		return a.show(resp.Body, ids, func(w io.Writer) { versionTable(w, list.Versions) })
	})
}

func versionTable(w io.Writer, list []apiclient.HandlerVersion) {
	row(w, "TYPE", "VERSION", "STATE", "KIND", "SIZE", "SHA256", "CREATED")
	for _, v := range list {
		state := v.State
		if v.Quarantine != nil {
			state = "quarantined"
		}
		row(w, v.Type, fmt.Sprintf("v%d", v.Version), state, dash(v.Kind), bytesText(v.SizeBytes), short(v.SHA256), ago(v.CreatedAt))
	}
}

func short(sha string) string {
	if len(sha) > 12 {
		return sha[:12]
	}
	return dash(sha)
}

// versionText is one line about a version that was uploaded or made live.
func versionText(v *apiclient.HandlerVersion) string {
	parts := []string{
		fmt.Sprintf("%s v%d %s", v.Type, v.Version, v.State), "sha256:" + short(v.SHA256), bytesText(v.SizeBytes),
		fmt.Sprintf("compiled %d ms", v.CompileMS),
	}
	if v.Instance.Mode != "" {
		parts = append(parts, fmt.Sprintf("%s instance per job", v.Instance.Mode))
	}
	return strings.Join(parts, "  ")
}

package cli

import (
	"context"
	"net/http"

	"github.com/spf13/cobra"

	"github.com/taskhost/taskhost/cmd/taskhost/internal/apiclient"
)

func (a *App) handlerCommand() *cobra.Command {
	return newGroup("handler", "Write, test, upload and switch handlers",
		a.handlerNewCommand(), a.handlerBuildCommand(), a.handlerRunCommand(), a.handlerTestCommand(), a.handlerInspectCommand(),
		a.handlerPushCommand(), a.handlerListCommand(), a.handlerVersionsCommand(), a.handlerActivateCommand(), a.handlerRollbackCommand())
}

// listHandlers returns the live version of every type that is served, and the answer itself.
func listHandlers(ctx context.Context, c *apiclient.Client) ([]apiclient.HandlerVersion, []byte, error) {
	var list struct {
		Handlers []apiclient.HandlerVersion `json:"handlers"`
	}
	resp, err := c.JSON(ctx, http.MethodGet, "/v1/handlers", nil, nil, &list)
	if err != nil {
		return nil, nil, err
	}
	return list.Handlers, resp.Body, nil
}

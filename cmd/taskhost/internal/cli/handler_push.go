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

func (a *App) handlerPushCommand() *cobra.Command {
	var noActivate bool
	cmd := &cobra.Command{
		Use:   "push [TYPE FILE | DIR]",
		Short: "Upload a module and make it live",
		Long: `Upload a module and make it live: FILE as a handler of TYPE, or the handler project in DIR (default: this folder), which is built
first. The same bytes again are the same version. The server checks and compiles the module before it can serve.`,
		Args: args(0, 2),
	}
	cmd.Flags().BoolVar(&noActivate, "no-activate", false, "only upload; see handler activate")
	return a.client(cmd, func(ctx context.Context, c *apiclient.Client, args []string) error {
		var (
			module []byte
			typ    string
			err    error
		)
		if len(args) == 2 {
			typ = args[0]
			module, err = readModule(args[1])
		} else {
			dir := firstArg(args, ".")
			if _, err = openProject(dir); err == nil {
				module, typ, err = a.loadModule(ctx, dir)
			}
		}
		if err != nil {
			return err
		}
		v, raw, err := a.upload(ctx, c, typ, module)
		if err != nil {
			return err
		}
		for _, w := range v.Warnings {
			a.say("warning: %s", safe(w))
		}
		if !noActivate && v.State != "live" {
			if v, raw, err = activate(ctx, c, typ, v.Version); err != nil {
				return err
			}
		}
		return a.show(raw, []string{fmt.Sprint(v.Version)}, func(w io.Writer) { fmt.Fprintln(w, safe(versionText(v))) })
	})
}

// upload sends a module and waits until it is compiled.
func (a *App) upload(ctx context.Context, c *apiclient.Client, typ string, module []byte) (*apiclient.HandlerVersion, []byte, error) {
	if typ == "" {
		return nil, nil, usagef("type: must not be empty")
	}
	resp, err := c.Do(ctx, apiclient.Request{
		Method: http.MethodPost, Path: apiclient.Path("handlers", typ, "versions"), Body: module, ContentType: "application/wasm",
	})
	if err != nil {
		return nil, nil, err
	}
	v, err := decode[apiclient.HandlerVersion](resp.Body)
	if err != nil {
		return nil, nil, err
	}
	raw := resp.Body
	for v.State == "compiling" {
		select {
		case <-ctx.Done():
			return nil, nil, context.Cause(ctx)
		case <-time.After(time.Second):
		}
		v = apiclient.HandlerVersion{Version: v.Version}
		resp, err := c.JSON(ctx, http.MethodGet, apiclient.Path("handlers", typ, "versions", fmt.Sprint(v.Version)), nil, nil, &v)
		if err != nil {
			return nil, nil, err
		}
		raw = resp.Body
	}
	if v.State == "refused" {
		return nil, nil, failf(ExitFailed, "module refused: %s", v.Refusal)
	}
	return &v, raw, nil
}

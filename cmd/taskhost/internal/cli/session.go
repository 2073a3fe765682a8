package cli

import (
	"context"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/taskhost/taskhost/cmd/taskhost/internal/apiclient"
	"github.com/taskhost/taskhost/config"
)

// client gives a command the flags and the connection of a client, and ends its context on SIGINT and SIGTERM.
func (a *App) client(cmd *cobra.Command, run func(ctx context.Context, c *apiclient.Client, args []string) error) *cobra.Command {
	cmd.Flags().StringVar(&a.server, "server", "", "address of the server ("+config.EnvServer+"; default "+apiclient.DefaultServer+")")
	cmd.Flags().StringVar(&a.apiKey, "api-key", "", "key to log in with ("+config.EnvAPIKey+")")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		c, err := a.connect()
		if err != nil {
			return err
		}
		defer c.Close()
		ctx, stop := interruptible(cmd.Context())
		defer stop()
		return run(ctx, c, args)
	}
	return cmd
}

// connect opens no connection yet; it only checks the address.
func (a *App) connect() (*apiclient.Client, error) {
	server := firstOf(a.server, a.getenv(config.EnvServer), apiclient.DefaultServer)
	c, err := apiclient.New(server, firstOf(a.apiKey, a.getenv(config.EnvAPIKey)), "taskhost/"+a.version().Version)
	if err != nil {
		return nil, &exitError{code: ExitUsage, err: err}
	}
	return c, nil
}

func firstOf(values ...string) string {
	for _, v := range values {
		if v != "" {
			return v
		}
	}
	return ""
}

func (a *App) getenv(name string) string {
	val := ""
	for _, kv := range a.Environ {
		if v, ok := strings.CutPrefix(kv, name+"="); ok {
			val = v // the last one counts
		}
	}
	return val
}

// interruptible ends the context with an *interrupted on the first SIGINT or SIGTERM; a second one ends the process as it
// would without this.
func interruptible(parent context.Context) (context.Context, func()) {
	ctx, cancel := context.WithCancelCause(parent)
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGINT, syscall.SIGTERM)
	done := make(chan struct{})
	go func() {
		defer signal.Stop(signals)
		select {
		case s := <-signals:
			cancel(&interrupted{s})
		case <-done:
		}
	}()
	return ctx, func() {
		close(done)
		cancel(nil)
	}
}

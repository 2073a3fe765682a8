package cli

import (
	"context"
	"net/http"

	"github.com/spf13/cobra"

	"github.com/taskhost/taskhost/cmd/taskhost/internal/apiclient"
	"github.com/taskhost/taskhost/cmd/taskhost/internal/wire"
	"github.com/taskhost/taskhost/config"
	"github.com/taskhost/taskhost/handlers"
)

func (a *App) handlerRunCommand() *cobra.Command {
	var (
		f        localFlags
		data, id string
		attempt  int
		typ      string
	)
	cmd := &cobra.Command{
		Use:   "run FILE|DIR",
		Short: "Run a module here, without a server",
		Long: `Run a module once on this machine, in the engine and within the limits of the server. The result alone is printed on stdout, the
log, the time and the peak memory on stderr. The exit code is 7 when the attempt does not succeed.

With --job the payload and type are those of a job on the server: to see here why it failed there.`,
		Args: args(1, 1),
	}
	f.register(cmd)
	cmd.Flags().StringVar(&data, "data", "", "payload: TEXT, @FILE or @-")
	cmd.Flags().Bool("raw", false, "as for enqueue; here the bytes are the same either way, but for white space around JSON")
	cmd.Flags().StringVar(&id, "job", "", "take the payload of this job of the server")
	cmd.Flags().StringVar(&typ, "type", "", `task type the handler sees (default: the project's, else "local")`)
	cmd.Flags().IntVar(&attempt, "attempt", 1, "number of the attempt that the handler sees")
	cmd.MarkFlagsMutuallyExclusive("data", "job")
	return a.client(cmd, func(ctx context.Context, c *apiclient.Client, args []string) error {
		if attempt < 1 || attempt > 1000 {
			return usagef("--attempt must be between 1 and 1000, got %d", attempt)
		}
		raw, _ := cmd.Flags().GetBool("raw")
		payload, jobType, err := a.localPayload(ctx, c, data, raw, id)
		if err != nil {
			return err
		}
		module, projectType, err := a.loadModule(ctx, args[0])
		if err != nil {
			return err
		}
		o, err := f.options(firstOf(typ, jobType, projectType, "local"))
		if err != nil {
			return err
		}
		return a.runLocal(ctx, module, o, wire.LocalJob{Payload: payload, Attempt: attempt})
	})
}

// localPayload takes the payload from the flags, or from a job of the server.
func (a *App) localPayload(ctx context.Context, c *apiclient.Client, data string, raw bool, id string) (payload []byte, typ string, err error) {
	if id == "" {
		payload, err = a.readData(data)
		if err == nil && !raw {
			payload = asSent(payload)
		}
		return payload, "", err
	}
	var job apiclient.Job
	if _, err := c.JSON(ctx, http.MethodGet, apiclient.Path("jobs", id), nil, nil, &job); err != nil {
		return nil, "", err
	}
	resp, err := c.Do(ctx, apiclient.Request{Method: http.MethodGet, Path: apiclient.Path("jobs", id, "payload")})
	if err != nil {
		return nil, "", err
	}
	return resp.Body, job.Type, nil
}

func (a *App) runLocal(ctx context.Context, module []byte, o wire.LocalOptions, job wire.LocalJob) error {
	l, err := a.openLocal(ctx, module, o)
	if err != nil {
		return err
	}
	defer l.Close()
	job.Log = func(level, message string) { a.say("%-5s %s", level, safe(message)) }
	job.Progress = func(done, total int64, message string) { a.say("progress %d of %d %s", done, total, safe(message)) }
	out := l.Run(ctx, job)
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	a.say("%s  %s  limits: memory %s, time %s", out.Kind, measured(&out), o.Defaults.Memory, config.FormatDuration(o.Defaults.Timeout))
	if out.Kind != handlers.OutcomeSucceeded {
		return failf(ExitJobFailed, "%s", failureText(&out))
	}
	if isTerminal(a.Out) && len(out.Result) > 0 && out.Result[len(out.Result)-1] != '\n' {
		out.Result = append(out.Result, '\n')
	}
	return a.write(out.Result)
}

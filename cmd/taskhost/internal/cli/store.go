package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"

	"github.com/spf13/cobra"

	"github.com/taskhost/taskhost/cmd/taskhost/internal/wire"
	"github.com/taskhost/taskhost/config"
)

func (a *App) storeCommand() *cobra.Command {
	return newGroup("store", "Look after the store, while no server uses it", a.storeCheckCommand(), a.storeModeCommand())
}

func (a *App) storeModeCommand() *cobra.Command {
	var f serverFlags
	base := config.Default()
	cmd := &cobra.Command{
		Use:   "mode",
		Short: "Change how the servers of a Redis store run its scripts",
		Long: `Make the Redis store in --store one for servers with that URL: with lua=0 in it, which run its scripts themselves, or without. A store has
one mode, that of its first server. Stop all its servers first: those of the old mode are refused from then on. No job is lost. The
exit code is 6 when Redis does not answer.`,
		Args: args(0, 0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			ctx, stop := interruptible(cmd.Context())
			defer stop()
			l, err := f.load(a, cmd, base)
			if err != nil {
				return err
			}
			before, now, err := wire.SetStoreMode(ctx, l.Config)
			if err != nil {
				return checkError(ctx, err, l.Config)
			}
			if before == "" {
				before = "none"
			}
			return a.showValue(map[string]any{"before": before, "mode": now}, nil, func(w io.Writer) {
				row(w, "before", before)
				row(w, "mode", now)
			})
		},
	}
	f.register(cmd, base)
	return cmd
}

func (a *App) storeCheckCommand() *cobra.Command {
	var f serverFlags
	base := config.Default()
	cmd := &cobra.Command{
		Use:   "check",
		Short: "Check the books of the store: every job in exactly one place",
		Long: `Check the books of the store in --data-dir, which no server may be using. The exit code is 1 when something is wrong, 3 when there is
no store, and 6 when its Redis does not answer. As with every opening, jobs that were running when their server died are ready again
and count a crash.`,
		Args: args(0, 0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			ctx, stop := interruptible(cmd.Context())
			defer stop()
			l, err := f.load(a, cmd, base)
			if err != nil {
				return err
			}
			report, err := wire.CheckStore(ctx, l.Config, newLogger(l.Config.Log, a.Err))
			if err != nil {
				return checkError(ctx, err, l.Config)
			}
			view := map[string]any{"enqueued": report.Enqueued, "removed": report.Removed, "counts": report.Counts, "faults": nonNil(report.Faults)}
			err = a.showValue(view, nil, func(w io.Writer) {
				row(w, "enqueued ever", report.Enqueued)
				row(w, "removed", report.Removed)
				for _, state := range slices.Sorted(maps.Keys(report.Counts)) {
					row(w, state, report.Counts[state])
				}
				for _, fault := range report.Faults {
					row(w, "FAULT", fault)
				}
				if len(report.Faults) == 0 {
					fmt.Fprintln(w, "ok")
				}
			})
			if err == nil && len(report.Faults) > 0 {
				return failf(ExitFailed, "the store has %d faults", len(report.Faults))
			}
			return err
		},
	}
	f.register(cmd, base)
	return cmd
}

// checkError gives what commonly keeps a store from being checked its exit code, and the next step.
func checkError(ctx context.Context, err error, c config.Config) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if e, ok := errors.AsType[*wire.NoStoreError](err); ok {
		return &exitError{code: ExitNotFound, err: e, hint: "name the folder of a server: --data-dir"}
	}
	switch {
	case wire.StoreInUse(err):
		return &exitError{code: ExitFailed, err: err, hint: "stop the taskhost that uses it, or check a copy: --data-dir"}
	case config.IsRedis(c.Store) && wire.StoreUnreachable(err):
		return failf(ExitUnreachable, "cannot reach the store %s: %w", config.RedactURL(c.Store), err)
	}
	return err
}

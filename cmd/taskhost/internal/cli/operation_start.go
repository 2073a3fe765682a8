package cli

import (
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/taskhost/taskhost/cmd/taskhost/internal/apiclient"
)

// operationFlags are the flags of operation start.
type operationFlags struct {
	jobFilter
	ids                      []string
	toQ                      string
	expect                   int
	all, dryRun, noWait, yes bool
}

func (a *App) operationStartCommand() *cobra.Command {
	var f operationFlags
	cmd := &cobra.Command{
		Use: "start ACTION", Short: "Change many jobs: cancel, retry, replay, purge or erase", Args: args(1, 1),
		ValidArgs: []string{"cancel", "retry", "replay", "purge", "erase"},
		Long: `Change every job that the flags select, in the background; jobs created after the start are not touched.

  cancel  what is not finished; running handlers are stopped
  retry   run now what waits for its next attempt
  replay  start a new run of dead jobs
  purge   remove jobs that do not run; only dead ones unless --state says otherwise
  erase   remove payload and result of finished jobs; their records stay

Say which: --state, --type, --queue, --label, --q, --error-fingerprint, --id or a time (all given must match), or --all.
--dry-run only counts. On a terminal you are asked first; --yes does not ask. Exit code 8 when some could not be done.`,
	}
	flags := cmd.Flags()
	f.registerFilter(cmd)
	flags.StringVar(&f.state, "state", "", "in these states, separated by commas (default: those that the action fits)")
	complete(cmd, "state", "scheduled", "ready", "running", "succeeded", "dead", "cancelled", "expired")
	flags.StringSliceVar(&f.ids, "id", nil, "these jobs; may be repeated")
	flags.StringVar(&f.toQ, "to-queue", "", "replay into another queue")
	flags.IntVar(&f.expect, "expect", 0, "refuse unless so many match, exit code 5")
	flags.BoolVar(&f.all, "all", false, "every job that the action fits")
	flags.BoolVar(&f.dryRun, "dry-run", false, "only say how many match")
	flags.BoolVar(&f.noWait, "no-wait", false, "do not wait for the end; print the operation's id")
	flags.BoolVarP(&f.yes, "yes", "y", false, "do not ask")
	return a.client(cmd, func(ctx context.Context, c *apiclient.Client, args []string) error {
		return a.operationStart(ctx, c, cmd, args[0], &f)
	})
}

func (a *App) operationStart(ctx context.Context, c *apiclient.Client, cmd *cobra.Command, action string, f *operationFlags) error {
	filter, err := f.body()
	if err != nil {
		return err
	}
	if f.all != (len(filter) == 0) {
		return usagef("say which jobs: --state, --type, --queue, --label, --q, --error-fingerprint, --id or a time, or --all")
	}
	request := map[string]any{"action": action, "filter": filter}
	if f.toQ != "" {
		request["to_queue"] = f.toQ
	}
	if cmd.Flags().Changed("expect") {
		request["expected_count"] = f.expect
	}
	return a.bulk(ctx, c, "/v1/operations", action, request, bulkMode{dryRun: f.dryRun, noWait: f.noWait, yes: f.yes})
}

// body is the filter as /v1/operations takes it.
func (f *operationFlags) body() (map[string]any, error) {
	filter := map[string]any{}
	for name, v := range map[string]string{"queue": f.queue, "type": f.typ, "q": f.query, "error_fingerprint": f.fingerprint} {
		if v != "" {
			filter[name] = v
		}
	}
	for name, v := range map[string]string{"since": f.since, "before": f.before, "finished_since": f.finishedSince, "finished_before": f.finishedBefore} {
		if v != "" {
			filter[name] = instant(v)
		}
	}
	if f.state != "" {
		filter["states"] = strings.Split(f.state, ",")
	}
	if len(f.ids) > 0 {
		filter["ids"] = f.ids
	}
	labels, err := keyValues("--label", f.labels)
	if len(labels) > 0 {
		filter["labels"] = labels
	}
	return filter, err
}

// bulkMode is how a bulk command goes about it.
type bulkMode struct{ dryRun, noWait, yes bool }

// bulk counts, asks, starts the operation and follows it, as far as the mode says so.
func (a *App) bulk(ctx context.Context, c *apiclient.Client, path, action string, request map[string]any, m bulkMode) error {
	if m.dryRun || !m.yes && isTerminal(a.In) {
		op, raw, err := a.startOperation(ctx, c, path, request, true)
		if err != nil {
			return err
		}
		if m.dryRun {
			return a.show(raw, []string{op.ID}, func(w io.Writer) { fmt.Fprintln(w, matches(op)) })
		}
		if err := a.confirm(fmt.Sprintf("%s; %s?", matches(op), action)); err != nil {
			return err
		}
	}
	op, raw, err := a.startOperation(ctx, c, path, request, false)
	if err != nil {
		return err
	}
	if m.noWait {
		return a.show(raw, []string{op.ID}, func(w io.Writer) { row(w, op.ID) })
	}
	return a.followOperation(ctx, c, op, raw)
}

package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/taskhost/taskhost/cmd/taskhost/internal/apiclient"
)

func (a *App) dlqCommand() *cobra.Command {
	return newGroup("dlq", "Look at dead jobs, run them again, or remove them",
		a.dlqListCommand(),
		a.dlqBulkCommand("replay", "Start a new run of dead jobs", `Start a new run of the matching dead jobs, oldest first, at the tail of their queue. Jobs that die
later than the command starts are not touched.`),
		a.dlqBulkCommand("purge", "Remove dead jobs for ever", "Remove the matching dead jobs for ever. Jobs that die later than the command starts are not touched."))
}

func (a *App) dlqListCommand() *cobra.Command {
	var f jobFilter
	cmd := &cobra.Command{Use: "list", Short: "List dead jobs", Args: args(0, 0)}
	f.register(cmd)
	return a.client(cmd, func(ctx context.Context, c *apiclient.Client, _ []string) error {
		return a.listJobs(ctx, c, "/v1/dlq", &f)
	})
}

type dlqFlags struct {
	ids                                  []string
	queue, typ, fingerprint, before, toQ string
	expect                               int
	all, dryRun, noWait, yes             bool
}

func (a *App) dlqBulkCommand(action, short, long string) *cobra.Command {
	var f dlqFlags
	cmd := &cobra.Command{
		Use: action, Short: short, Args: args(0, 0),
		Long: long + `

Say which: --type, --queue, --id, --error-fingerprint (all given must match), or --all. --dry-run only counts. On a terminal
you are asked first; --yes does not ask. Exit code 8 when some could not be done.`,
	}
	flags := cmd.Flags()
	flags.StringSliceVar(&f.ids, "id", nil, "these jobs; may be repeated")
	flags.StringVar(&f.queue, "queue", "", "of this queue")
	flags.StringVar(&f.typ, "type", "", "of this type")
	flags.StringVar(&f.fingerprint, "error-fingerprint", "", "whose last error has this fingerprint (job get -o json)")
	flags.StringVar(&f.before, "dead-before", "", "dead before this time in RFC 3339 (default: now)")
	flags.IntVar(&f.expect, "expect", 0, "refuse unless so many match, exit code 5")
	flags.BoolVar(&f.all, "all", false, "every dead job")
	flags.BoolVar(&f.dryRun, "dry-run", false, "only say how many match")
	flags.BoolVar(&f.noWait, "no-wait", false, "do not wait for the end; print the operation's id")
	flags.BoolVarP(&f.yes, "yes", "y", false, "do not ask")
	if action == "replay" {
		flags.StringVar(&f.toQ, "to-queue", "", "into another queue")
	}
	return a.client(cmd, func(ctx context.Context, c *apiclient.Client, _ []string) error {
		return a.dlqBulk(ctx, c, cmd, action, f)
	})
}

func (a *App) dlqBulk(ctx context.Context, c *apiclient.Client, cmd *cobra.Command, action string, f dlqFlags) error {
	filter := map[string]any{}
	if len(f.ids) > 0 {
		filter["ids"] = f.ids
	}
	for name, v := range map[string]string{"queue": f.queue, "type": f.typ, "error_fingerprint": f.fingerprint} {
		if v != "" {
			filter[name] = v
		}
	}
	if f.all != (len(filter) == 0) {
		return usagef("say which dead jobs: --type, --queue, --id or --error-fingerprint, or --all")
	}
	request := map[string]any{"filter": filter}
	if f.before != "" {
		request["dead_before"] = f.before
	}
	if f.toQ != "" {
		request["to_queue"] = f.toQ
	}
	if cmd.Flags().Changed("expect") {
		request["expected_count"] = f.expect
	}
	path := "/v1/dlq/" + action

	return a.bulk(ctx, c, path, action, request, bulkMode{dryRun: f.dryRun, noWait: f.noWait, yes: f.yes})
}

func (a *App) startOperation(ctx context.Context, c *apiclient.Client, path string, request map[string]any, dry bool) (*apiclient.Operation, []byte, error) {
	if dry {
		request["dry_run"] = true
	} else {
		delete(request, "dry_run")
	}
	var op apiclient.Operation
	resp, err := c.JSON(ctx, http.MethodPost, path, nil, request, &op)
	if err != nil {
		return nil, nil, err
	}
	return &op, resp.Body, nil
}

func matches(op *apiclient.Operation) string {
	text := fmt.Sprintf("%d jobs match", op.Matched)
	if op.Matched == 1 {
		text = "1 job matches"
	}
	if before := op.DeadBefore; before != nil && !before.IsZero() {
		text += ", dead before " + before.UTC().Format("15:04:05Z")
	}
	return text
}

// confirm asks on the terminal.
func (a *App) confirm(question string) error {
	fmt.Fprintf(a.Err, "%s [y/N] ", question)
	var answer string
	_, _ = fmt.Fscanln(a.In, &answer) // no answer is no
	if !strings.EqualFold(answer, "y") && !strings.EqualFold(answer, "yes") {
		return errors.New("not done")
	}
	return nil
}

// followOperation waits for the end, telling how far it is: one line that is rewritten on a terminal, a line every 10 s otherwise.
func (a *App) followOperation(ctx context.Context, c *apiclient.Client, op *apiclient.Operation, raw []byte) error {
	live := isTerminal(a.Err)
	told := time.Now()
	// An operation has no change signal to wait on; the first questions come quickly, for the small ones.
	for pause := 20 * time.Millisecond; !op.Terminal(); pause = min(2*pause, time.Second) {
		select {
		case <-ctx.Done():
			if e, ok := errors.AsType[*interrupted](context.Cause(ctx)); ok {
				return &exitError{code: signalCode(e.signal), err: errors.New("stopped waiting"),
					hint: fmt.Sprintf("the operation goes on; see: %s operation get %s · stop it: %s operation cancel %s", self(), op.ID, self(), op.ID)}
			}
			return context.Cause(ctx)
		case <-time.After(pause):
		}
		next := apiclient.Operation{}
		resp, err := c.JSON(ctx, http.MethodGet, apiclient.Path("operations", op.ID), nil, nil, &next)
		if err != nil {
			return err
		}
		op, raw = &next, resp.Body
		switch {
		case live:
			fmt.Fprintf(a.Err, "\r%s %d/%d", op.Action, op.Done+op.Skipped+op.Failed, op.Matched)
		case time.Since(told) > 10*time.Second:
			told = time.Now()
			a.say("%s %d/%d", op.Action, op.Done+op.Skipped+op.Failed, op.Matched)
		}
	}
	if live {
		fmt.Fprint(a.Err, "\r\x1b[K")
	}
	if err := a.show(raw, []string{op.ID}, func(w io.Writer) { fmt.Fprintln(w, safe(operationText(op))) }); err != nil {
		return err
	}
	switch {
	case op.State == "failed":
		return failf(ExitFailed, "%s failed: %s", op.ID, op.Error)
	case op.State == "cancelled":
		return failf(ExitPartial, "%s was cancelled", op.ID)
	case op.Skipped+op.Failed > 0:
		return &errQuiet{ExitPartial}
	}
	return nil
}

func operationText(op *apiclient.Operation) string {
	text := fmt.Sprintf("%s %s: %d done", op.Action, op.State, op.Done)
	if op.Skipped > 0 {
		text += fmt.Sprintf(", %d skipped (their unique key is held, or their state changed)", op.Skipped)
	}
	if op.Failed > 0 {
		text += fmt.Sprintf(", %d failed", op.Failed)
	}
	return text + fmt.Sprintf(" of %d", op.Matched)
}

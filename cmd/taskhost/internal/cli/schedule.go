package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/taskhost/taskhost/cmd/taskhost/internal/apiclient"
	"github.com/taskhost/taskhost/cmd/taskhost/internal/wire"
)

func (a *App) scheduleCommand() *cobra.Command {
	return newGroup("schedule", "Enqueue jobs at set times",
		a.scheduleListCommand(), a.scheduleGetCommand(), a.scheduleSetCommand(), a.scheduleDeleteCommand(),
		a.schedulePauseCommand("pause", "Make nothing due; what falls into a pause is never caught up", true),
		a.schedulePauseCommand("resume", "Go on with a paused schedule", false),
		a.scheduleRunCommand(), a.scheduleNextCommand())
}

func (a *App) scheduleListCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "list", Short: "List the schedules with their next due time and last error", Args: args(0, 0)}
	return a.client(cmd, func(ctx context.Context, c *apiclient.Client, _ []string) error {
		all := struct {
			Schedules []json.RawMessage `json:"schedules"`
		}{Schedules: []json.RawMessage{}}
		for query := (url.Values{"limit": {"500"}}); ; {
			var page struct {
				Schedules []json.RawMessage `json:"schedules"`
				Next      string            `json:"next_cursor"`
			}
			if _, err := c.JSON(ctx, http.MethodGet, "/v1/schedules", query, nil, &page); err != nil {
				return err
			}
			all.Schedules = append(all.Schedules, page.Schedules...)
			if page.Next == "" {
				break
			}
			query.Set("cursor", page.Next)
		}
		list := make([]apiclient.Schedule, len(all.Schedules))
		names := make([]string, len(list))
		for i, raw := range all.Schedules {
			if err := json.Unmarshal(raw, &list[i]); err != nil {
				return fmt.Errorf("%s did not answer as a taskhost server does: %w", c.Server(), err)
			}
			names[i] = list[i].Name
		}
		return a.showValue(all, names, func(w io.Writer) { scheduleTable(w, list) })
	})
}

func scheduleTable(w io.Writer, list []apiclient.Schedule) {
	row(w, "NAME", "CRON", "TZ", "TYPE", "QUEUE", "ORIGIN", "STATE", "NEXT", "LAST", "LAST ERROR")
	for _, s := range list {
		state, next := "active", "never"
		if s.Paused {
			state, next = "paused", "-"
		} else if len(s.Next) > 0 {
			next = ago(&s.Next[0])
		}
		row(w, s.Name, s.Cron, s.TZ, s.Type, s.Queue, s.Origin, state, next, ago(s.LastDue), dash(s.LastError))
	}
}

// scheduleOne sends a request that answers one schedule, and shows it.
func (a *App) scheduleOne(ctx context.Context, c *apiclient.Client, method, name string, body any) error {
	if name == "" {
		return usagef("schedule: must not be empty")
	}
	var s apiclient.Schedule
	resp, err := c.JSON(ctx, method, apiclient.Path("schedules", name), nil, body, &s)
	if err != nil {
		return fmt.Errorf("schedule %q: %w", name, err)
	}
	for _, warning := range s.Warnings {
		a.say("warning: %s", warning)
	}
	return a.show(resp.Body, []string{s.Name}, func(w io.Writer) { scheduleTable(w, []apiclient.Schedule{s}) })
}

func (a *App) scheduleGetCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "get NAME", Short: "Show a schedule (everything with -o yaml or json)", Args: args(1, 1)}
	return a.client(cmd, func(ctx context.Context, c *apiclient.Client, args []string) error {
		return a.scheduleOne(ctx, c, http.MethodGet, args[0], nil)
	})
}

func (a *App) scheduleSetCommand() *cobra.Command {
	var (
		text                      = map[string]*string{}
		data, priority, uniqueKey string
		raw, paused               bool
		maxAttempts               int
		labels                    []string
	)
	cmd := &cobra.Command{
		Use:   "set NAME --cron SPEC --type TYPE",
		Short: "Create a schedule, or replace it whole",
		Long: `Create a schedule, or replace it whole: what is not given has its default again. SPEC has five fields (minute, hour, day of month, month, day
of week), or six with seconds first, or is @hourly, @daily, @weekly, @monthly, @yearly or "@every 15m". A new SPEC counts from now on.

` + dataHelp,
		Example: `  taskhost schedule set nightly --cron "0 3 * * *" --tz Europe/Rome --type report --catch-up one
  taskhost schedule set tick --cron "@every 15m" --type sync --data '{"full":false}'`,
		Args: args(1, 1),
	}
	flags := cmd.Flags()
	for _, f := range [...]struct{ field, help string }{
		{"cron", "when it is due; required"},
		{"tz", `IANA time zone whose clock is meant, e.g. "Europe/Rome" (default UTC)`},
		{"type", "type of its jobs; required"},
		{"queue", `queue (default "default")`},
		{"catch_up", "after a downtime: none, one (the latest due time) or all (default none)"},
		{"timeout", "limit of one attempt (default: the handler's)"},
		{"expires_in", `a job gives up if not started so long after its enqueue, e.g. "1h"`},
		{"concurrency_key", "bounds how many jobs with the key run at once"},
	} {
		text[f.field] = flags.String(strings.ReplaceAll(f.field, "_", "-"), "", f.help)
	}
	flags.StringVar(&data, "data", "", "payload: TEXT, @FILE or @- (default: no bytes)")
	flags.BoolVar(&raw, "raw", false, "send the data as bytes even if it is JSON")
	flags.StringVar(&priority, "priority", "", "-4095 to 4095, higher first (default: the queue's)")
	flags.IntVar(&maxAttempts, "max-attempts", 0, "1 to 1000 (default: the server's)")
	flags.StringVar(&uniqueKey, "unique-key", "", "enqueue nothing while another unfinished job has the key")
	flags.StringArrayVar(&labels, "label", nil, "NAME=VALUE to search by; may be repeated")
	flags.BoolVar(&paused, "paused", false, "make nothing due until it is resumed")
	complete(cmd, "catch-up", "none", "one", "all")
	return a.client(cmd, func(ctx context.Context, c *apiclient.Client, args []string) error {
		body := map[string]any{}
		for field, v := range text {
			if cmd.Flags().Changed(strings.ReplaceAll(field, "_", "-")) {
				body[field] = *v
			}
		}
		for _, need := range []string{"cron", "type"} {
			if body[need] == nil {
				return usagef("--%s must be given", need)
			}
		}
		if priority != "" {
			p, err := strconv.Atoi(priority)
			if err != nil {
				return usagef("--priority must be a whole number between -4095 and 4095, got %q", priority)
			}
			body["priority"] = p
		}
		if cmd.Flags().Changed("max-attempts") {
			body["max_attempts"] = maxAttempts
		}
		if cmd.Flags().Changed("unique-key") {
			body["unique"] = map[string]string{"key": uniqueKey}
		}
		if paused {
			body["paused"] = true
		}
		if len(labels) > 0 {
			pairs, err := keyValues("--label", labels)
			if err != nil {
				return err
			}
			body["labels"] = pairs
		}
		return a.putSchedule(ctx, c, args[0], body, data, raw, cmd.Flags().Changed("data"))
	})
}

// putSchedule sends the definition, with the very bytes of its payload.
func (a *App) putSchedule(ctx context.Context, c *apiclient.Client, name string, body map[string]any, data string, raw, given bool) error {
	object, err := json.Marshal(body)
	if err != nil {
		return fmt.Errorf("encode the request: %w", err)
	}
	if given {
		payload, err := a.readData(data)
		if err != nil {
			return err
		}
		object = withPayload(object, payloadField(payload, raw))
	}
	if name == "" {
		return usagef("schedule: must not be empty")
	}
	resp, err := c.Do(ctx, apiclient.Request{Method: http.MethodPut, Path: apiclient.Path("schedules", name), Body: object})
	if err != nil {
		return fmt.Errorf("schedule %q: %w", name, err)
	}
	var s apiclient.Schedule
	if err := json.Unmarshal(resp.Body, &s); err != nil {
		return fmt.Errorf("%s did not answer as a taskhost server does: %w", c.Server(), err)
	}
	for _, warning := range s.Warnings {
		a.say("warning: %s", warning)
	}
	return a.show(resp.Body, []string{s.Name}, func(w io.Writer) { scheduleTable(w, []apiclient.Schedule{s}) })
}

func (a *App) scheduleDeleteCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "delete NAME...", Short: "Remove schedules; jobs that they enqueued stay", Args: args(1, -1)}
	return a.client(cmd, func(ctx context.Context, c *apiclient.Client, names []string) error {
		return a.each(ctx, names, func(name string) error {
			if name == "" {
				return usagef("schedule: must not be empty")
			}
			_, err := c.Do(ctx, apiclient.Request{Method: http.MethodDelete, Path: apiclient.Path("schedules", name)})
			if err != nil {
				return fmt.Errorf("schedule %q: %w", name, err)
			}
			return a.showValue(map[string]string{"deleted": name}, []string{name}, func(w io.Writer) { row(w, name, "deleted") })
		})
	})
}

func (a *App) schedulePauseCommand(use, short string, paused bool) *cobra.Command {
	cmd := &cobra.Command{Use: use + " NAME...", Short: short, Args: args(1, -1)}
	return a.client(cmd, func(ctx context.Context, c *apiclient.Client, names []string) error {
		return a.each(ctx, names, func(name string) error {
			return a.scheduleOne(ctx, c, http.MethodPatch, name, map[string]any{"paused": paused})
		})
	})
}

func (a *App) scheduleRunCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "run NAME", Short: "Enqueue the job of a schedule now, beside its due times; print the job's id", Args: args(1, 1)}
	return a.client(cmd, func(ctx context.Context, c *apiclient.Client, args []string) error {
		var made struct {
			ID string `json:"id"`
		}
		resp, err := c.JSON(ctx, http.MethodPost, apiclient.Path("schedules", args[0], "run"), nil, nil, &made)
		if err != nil {
			return fmt.Errorf("schedule %q: %w", args[0], err)
		}
		return a.show(resp.Body, []string{made.ID}, func(w io.Writer) { row(w, made.ID) })
	})
}

// nextShown is how many due times are printed unless asked otherwise.
const nextShown = 5

func (a *App) scheduleNextCommand() *cobra.Command {
	var (
		spec, tz string
		count    int
	)
	cmd := &cobra.Command{
		Use:   "next [NAME]",
		Short: "Print when a schedule, or a spec that is not a schedule yet, is due next",
		Long: `Print when a schedule is due next, by the clock of its zone. With --cron, print it for a spec instead; no server is needed
then.`,
		Example: `  taskhost schedule next nightly
  taskhost schedule next --cron "30 2 * * *" --tz America/New_York --count 3`,
		Args: args(0, 1),
	}
	cmd.Flags().StringVar(&spec, "cron", "", "a spec instead of a schedule")
	cmd.Flags().StringVar(&tz, "tz", "", "time zone of --cron (default UTC)")
	cmd.Flags().IntVar(&count, "count", nextShown, "how many times, 1 to 1000")
	run := func(s apiclient.Schedule) error {
		due, err := wire.NextDue(s.Cron, s.Zone(), time.Now(), count)
		if err != nil {
			return &exitError{code: ExitUsage, err: err}
		}
		if s.Paused {
			a.say("%s is paused; nothing is due until it is resumed", s.Name)
			due = nil
		}
		view := map[string]any{"cron": s.Cron, "tz": s.TZ, "next": rfc3339(due)}
		return a.showValue(view, rfc3339(due), func(w io.Writer) {
			for _, at := range due {
				row(w, at.Format(time.RFC3339), ago(&at))
			}
		})
	}
	cmd = a.client(cmd, func(ctx context.Context, c *apiclient.Client, args []string) error {
		var s apiclient.Schedule
		if _, err := c.JSON(ctx, http.MethodGet, apiclient.Path("schedules", args[0]), nil, nil, &s); err != nil {
			return fmt.Errorf("schedule %q: %w", args[0], err)
		}
		return run(s)
	})
	online := cmd.RunE
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		local := cmd.Flags().Changed("cron")
		switch {
		case count < 1 || count > 1000:
			return usagef("--count must be between 1 and 1000, got %d", count)
		case local && len(args) > 0, !local && len(args) == 0:
			return usagef("give either the name of a schedule or --cron")
		case !local && cmd.Flags().Changed("tz"):
			return usagef("--tz belongs to --cron; a schedule has its own")
		case local:
			return run(apiclient.Schedule{Cron: spec, TZ: tz})
		}
		return online(cmd, args)
	}
	return cmd
}

func rfc3339(list []time.Time) []string {
	out := make([]string, len(list))
	for i, at := range list {
		out[i] = at.Format(time.RFC3339)
	}
	return out
}

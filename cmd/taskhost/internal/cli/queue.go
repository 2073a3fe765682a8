package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/taskhost/taskhost/cmd/taskhost/internal/apiclient"
)

func (a *App) queueCommand() *cobra.Command {
	return newGroup("queue", "Look at and steer queues",
		a.queueListCommand(),
		a.queuePauseCommand("pause", "Start no more jobs of a queue; jobs are still accepted, running ones go on", true),
		a.queuePauseCommand("resume", "Start jobs of a paused queue again", false),
		a.queueSetCommand())
}

func (a *App) queueListCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "list", Short: "List the queues with their settings and counts", Args: args(0, 0)}
	return a.client(cmd, func(ctx context.Context, c *apiclient.Client, _ []string) error {
		var list struct {
			Queues []apiclient.Queue `json:"queues"`
		}
		resp, err := c.JSON(ctx, http.MethodGet, "/v1/queues", nil, nil, &list)
		if err != nil {
			return err
		}
		names := make([]string, len(list.Queues))
		for i, q := range list.Queues {
			names[i] = q.Name
		}
		return a.show(resp.Body, names, func(w io.Writer) { queueTable(w, list.Queues) })
	})
}

func queueTable(w io.Writer, queues []apiclient.Queue) {
	row(w, "QUEUE", "WEIGHT", "PRIORITY", "STATE", "READY", "SCHEDULED", "RUNNING", "DEAD", "OLDEST", "MAX", "RATE")
	for _, q := range queues {
		state, oldest, limit := "open", "-", "-"
		if q.Waiting != "" {
			state = q.Waiting
		}
		if q.MaxRunning != nil {
			limit = strconv.Itoa(*q.MaxRunning)
		}
		if q.OldestAgeMS != nil && q.Ready > 0 {
			oldest = span(time.Duration(*q.OldestAgeMS) * time.Millisecond)
		}
		row(w, q.Name, q.Weight, q.Priority, state, q.Ready, q.Scheduled, q.Running, q.Dead, oldest, limit, dash(q.Rate))
	}
}

func (a *App) queuePauseCommand(use, short string, paused bool) *cobra.Command {
	cmd := &cobra.Command{Use: use + " QUEUE...", Short: short, Args: args(1, -1)}
	return a.client(cmd, func(ctx context.Context, c *apiclient.Client, names []string) error {
		return a.each(ctx, names, func(name string) error {
			return a.patchQueue(ctx, c, name, map[string]any{"paused": paused})
		})
	})
}

func (a *App) queueSetCommand() *cobra.Command {
	var weight, priority, maxRunning, maxPerKey, rate string
	cmd := &cobra.Command{
		Use:   "set QUEUE",
		Short: "Change the weight, the default priority or the limits of a queue",
		Long: `Change the weight, the default priority or the limits of a queue, on this server, until it is set again. The value "config"
returns to what the configuration says. The change applies to the backlog at once; jobs that run go on.`,
		Args: args(1, 1),
	}
	cmd.Flags().StringVar(&weight, "weight", "", `0.001 to 10000, or "config"`)
	cmd.Flags().StringVar(&priority, "priority", "", `-4095 to 4095, or "config"; for jobs enqueued from now on`)
	cmd.Flags().StringVar(&maxRunning, "max-running", "", `jobs that run at once, on all hosts: 1 to 1000000, or "config"`)
	cmd.Flags().StringVar(&maxPerKey, "max-per-key", "", `jobs with the same concurrency key that run at once: 1 to 1000000, or "config"`)
	cmd.Flags().StringVar(&rate, "rate", "", `jobs started per time: 100/s, 5/m, 20/h, 3/90s, or "config"`)
	return a.client(cmd, func(ctx context.Context, c *apiclient.Client, args []string) error {
		change := map[string]any{}
		for name, text := range map[string]string{
			"weight": weight, "priority": priority, "max-running": maxRunning, "max-per-key": maxPerKey, "rate": rate,
		} {
			if !cmd.Flags().Changed(name) {
				continue
			}
			field := strings.ReplaceAll(name, "-", "_")
			if text == "config" {
				change[field] = nil
				continue
			}
			if name == "rate" {
				change[field] = text // what a rate is only the server says
				continue
			}
			if _, err := strconv.ParseFloat(text, 64); err != nil || !json.Valid([]byte(text)) {
				return usagef(`--%s must be a number or "config", got %q`, name, text)
			}
			change[field] = json.RawMessage(text)
		}
		if len(change) == 0 {
			return usagef("nothing to set; give --weight, --priority, --max-running, --max-per-key or --rate")
		}
		return a.patchQueue(ctx, c, args[0], change)
	})
}

func (a *App) patchQueue(ctx context.Context, c *apiclient.Client, name string, change map[string]any) error {
	if name == "" {
		return usagef("queue: must not be empty")
	}
	var q apiclient.Queue
	resp, err := c.JSON(ctx, http.MethodPatch, apiclient.Path("queues", name), nil, change, &q)
	if err != nil {
		return fmt.Errorf("queue %q: %w", name, err)
	}
	return a.show(resp.Body, []string{q.Name}, func(w io.Writer) { queueTable(w, []apiclient.Queue{q}) })
}

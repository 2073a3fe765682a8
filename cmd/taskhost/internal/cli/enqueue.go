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
	"github.com/taskhost/taskhost/config"
)

type enqueueFlags struct {
	queue, data               string
	raw, wait                 bool
	priority                  string
	delay, expiresIn, timeout string
	maxAttempts               int
	idempotencyKey, uniqueKey string
	uniqueUntil               string
	concurrencyKey            string
	labels, headers           []string
	waitTimeout               string
}

func (a *App) enqueueCommand() *cobra.Command {
	var f enqueueFlags
	cmd := &cobra.Command{
		Use:   "enqueue TYPE",
		Short: "Enqueue a job, and wait for its result if asked to",
		Long: `Enqueue a job. Its id is printed on stdout. With --wait the result alone is printed on stdout, byte for byte, and what
happens on the way on stderr; the exit code is 7 when the job ends otherwise than succeeded. Interrupting a wait does not stop
the job.

` + dataHelp,
		Example: `  taskhost enqueue hello --data '{"name":"Ada"}' --wait
  taskhost enqueue image.resize --data @photo.jpg --raw --wait > small.png
  taskhost enqueue report --delay 10m --idempotency-key report-2026-11-30`,
		Args: args(1, 1),
	}
	flags := cmd.Flags()
	flags.StringVar(&f.queue, "queue", "", `queue (default "default")`)
	flags.StringVar(&f.data, "data", "", "payload: TEXT, @FILE or @- (default: no bytes)")
	flags.BoolVar(&f.raw, "raw", false, "send the data as bytes even if it is JSON")
	flags.StringVar(&f.priority, "priority", "", "-4095 to 4095, higher first (default: the queue's)")
	flags.StringVar(&f.delay, "delay", "", `do not start before, e.g. "5m"`)
	flags.StringVar(&f.expiresIn, "expires-in", "", `give up if not started by then, e.g. "1h"`)
	flags.StringVar(&f.timeout, "timeout", "", "limit of one attempt (default: the handler's)")
	flags.IntVar(&f.maxAttempts, "max-attempts", 0, "1 to 1000 (default: the server's)")
	flags.StringVar(&f.idempotencyKey, "idempotency-key", "", "the same key again returns the first job")
	flags.StringVar(&f.uniqueKey, "unique-key", "", "refuse while another unfinished job has the key")
	flags.StringVar(&f.uniqueUntil, "unique-until", "", `what holds the key: "finished" (default), "started", or a duration from now on ("10m")`)
	flags.StringVar(&f.concurrencyKey, "concurrency-key", "", "of the jobs of a queue with the same key one runs at a time, unless the queue's max_per_key says more")
	flags.StringArrayVar(&f.labels, "label", nil, "NAME=VALUE to search by; may be repeated")
	flags.StringArrayVar(&f.headers, "header", nil, "NAME=VALUE for the handler; may be repeated")
	flags.BoolVar(&f.wait, "wait", false, "wait for the end and print the result")
	flags.StringVar(&f.waitTimeout, "wait-timeout", "", "give up waiting after so long, exit code 124; implies --wait")
	return a.client(cmd, func(ctx context.Context, c *apiclient.Client, args []string) error {
		return a.enqueue(ctx, c, cmd, args[0], f)
	})
}

func (a *App) enqueue(ctx context.Context, c *apiclient.Client, cmd *cobra.Command, typ string, f enqueueFlags) error {
	var limit time.Duration
	if f.waitTimeout != "" {
		var err error
		if limit, err = config.ParseDuration(f.waitTimeout); err != nil || limit <= 0 {
			return usagef(`--wait-timeout must be a duration such as "90s", got %q`, f.waitTimeout)
		}
	}
	body, err := a.enqueueBody(cmd, typ, f)
	if err != nil {
		return err
	}
	resp, err := c.Do(ctx, apiclient.Request{Method: http.MethodPost, Path: "/v1/jobs", Body: body})
	if err != nil {
		return err
	}
	var made struct {
		ID       string   `json:"id"`
		Outcome  string   `json:"outcome"`
		Warnings []string `json:"warnings"`
	}
	if err := json.Unmarshal(resp.Body, &made); err != nil || made.ID == "" {
		return fmt.Errorf("%s did not answer as a taskhost server does", c.Server())
	}
	a.warnAboutType(ctx, c, typ, made.Warnings)
	if f.wait || f.waitTimeout != "" {
		if made.Outcome == "duplicate" {
			a.say("%s is there already (same idempotency key)", made.ID)
		}
		return a.await(ctx, c, made.ID, limit)
	}
	return a.show(resp.Body, []string{made.ID}, func(w io.Writer) { row(w, made.ID) })
}

// enqueueBody builds the request. What only the server can judge is left to it.
func (a *App) enqueueBody(cmd *cobra.Command, typ string, f enqueueFlags) ([]byte, error) {
	job := map[string]any{"type": typ}
	for name, v := range map[string]string{
		"queue": f.queue, "delay": f.delay, "expires_in": f.expiresIn, "timeout": f.timeout, "idempotency_key": f.idempotencyKey,
		"concurrency_key": f.concurrencyKey,
	} {
		if cmd.Flags().Changed(strings.ReplaceAll(name, "_", "-")) {
			job[name] = v
		}
	}
	if cmd.Flags().Changed("priority") {
		p, err := strconv.Atoi(f.priority)
		if err != nil {
			return nil, usagef("--priority must be a whole number between -4095 and 4095, got %q", f.priority)
		}
		job["priority"] = p
	}
	if cmd.Flags().Changed("max-attempts") {
		job["max_attempts"] = f.maxAttempts
	}
	if cmd.Flags().Changed("unique-key") {
		unique := map[string]string{"key": f.uniqueKey}
		if until := f.uniqueUntil; until == "finished" || until == "started" {
			unique["until"] = until
		} else if until != "" {
			unique["until"], unique["window"] = "window", until
		}
		job["unique"] = unique
	} else if f.uniqueUntil != "" {
		return nil, usagef("--unique-until needs --unique-key")
	}
	for name, list := range map[string][]string{"label": f.labels, "header": f.headers} {
		if len(list) == 0 {
			continue
		}
		pairs, err := keyValues("--"+name, list)
		if err != nil {
			return nil, err
		}
		job[name+"s"] = pairs
	}
	object, err := json.Marshal(job)
	if err != nil {
		return nil, fmt.Errorf("encode the request: %w", err)
	}
	data, err := a.readData(f.data)
	if err != nil {
		return nil, err
	}
	return withPayload(object, payloadField(data, f.raw)), nil
}

func keyValues(flag string, list []string) (map[string]string, error) {
	out := map[string]string{}
	for _, kv := range list {
		k, v, ok := strings.Cut(kv, "=")
		if _, dup := out[k]; !ok || k == "" || dup {
			return nil, usagef("%s must be NAME=VALUE, each name once; got %q", flag, kv)
		}
		out[k] = v
	}
	return out, nil
}

// warnAboutType passes the server's warnings on. When nothing serves the type, the nearest one that is served is named.
func (a *App) warnAboutType(ctx context.Context, c *apiclient.Client, typ string, warnings []string) {
	for _, w := range warnings {
		a.say("warning: %s", safe(w))
	}
	if len(warnings) == 0 {
		return
	}
	types, err := handlerTypes(ctx, c)
	if err != nil {
		return // the warning stands; this was only to help
	}
	if near := nearest(typ, types); near != "" && near != typ {
		a.say("did you mean %q?", near)
	}
}

package cli

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/taskhost/taskhost/cmd/taskhost/internal/apiclient"
	"github.com/taskhost/taskhost/config"
)

// jobFilter are the flags that select jobs in a list.
type jobFilter struct {
	state, queue, typ, query, fingerprint        string
	since, before, finishedSince, finishedBefore string
	cursor                                       string
	labels                                       []string
	limit                                        int
	oldest                                       bool
}

func (f *jobFilter) register(cmd *cobra.Command) {
	f.registerFilter(cmd)
	flags := cmd.Flags()
	flags.BoolVar(&f.oldest, "oldest", false, "the oldest first")
	flags.IntVar(&f.limit, "limit", 50, "how many at most, 1 to 500")
	flags.StringVar(&f.cursor, "cursor", "", "the page after this; printed when there is more")
}

// registerFilter adds what selects, without what pages.
func (f *jobFilter) registerFilter(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringVar(&f.queue, "queue", "", "only of this queue")
	flags.StringVar(&f.typ, "type", "", "only of this type")
	flags.StringArrayVar(&f.labels, "label", nil, "NAME=VALUE; only with this label; may be repeated")
	flags.StringVar(&f.query, "q", "", "only with this text in the id or the last error")
	flags.StringVar(&f.fingerprint, "error-fingerprint", "", "only whose last error has this fingerprint (job get -o json)")
	flags.StringVar(&f.since, "since", "", `only created since: a duration back ("1h") or a time in RFC 3339`)
	flags.StringVar(&f.before, "before", "", "only created before, as --since")
	flags.StringVar(&f.finishedSince, "finished-since", "", "only finished since, as --since")
	flags.StringVar(&f.finishedBefore, "finished-before", "", "only finished before, as --since")
}

func (f *jobFilter) values() (url.Values, error) {
	v := url.Values{"limit": {strconv.Itoa(f.limit)}}
	for name, val := range map[string]string{"state": f.state, "queue": f.queue, "type": f.typ, "q": f.query,
		"error_fingerprint": f.fingerprint, "cursor": f.cursor} {
		if val != "" {
			v.Set(name, val)
		}
	}
	for name, text := range map[string]string{"since": f.since, "before": f.before, "finished_since": f.finishedSince, "finished_before": f.finishedBefore} {
		if text != "" {
			v.Set(name, instant(text))
		}
	}
	if f.oldest {
		v.Set("order", "oldest")
	}
	pairs, err := keyValues("--label", f.labels)
	for name, val := range pairs {
		v.Set("label."+name, val)
	}
	return v, err
}

// instant turns a duration back from now into a time; anything else is left for the server to read.
func instant(text string) string {
	if d, err := config.ParseDuration(text); err == nil {
		return time.Now().Add(-d).UTC().Format(time.RFC3339Nano)
	}
	return text
}

func (a *App) jobListCommand() *cobra.Command {
	var f jobFilter
	cmd := &cobra.Command{Use: "list", Short: "List jobs", Args: args(0, 0)}
	cmd.Flags().StringVar(&f.state, "state", "", "only in these states, separated by commas")
	complete(cmd, "state", "scheduled", "ready", "running", "succeeded", "dead", "cancelled", "expired")
	f.register(cmd)
	return a.client(cmd, func(ctx context.Context, c *apiclient.Client, _ []string) error {
		return a.listJobs(ctx, c, "/v1/jobs", &f)
	})
}

func (a *App) listJobs(ctx context.Context, c *apiclient.Client, path string, f *jobFilter) error {
	query, err := f.values()
	if err != nil {
		return err
	}
	var page struct {
		Jobs       []apiclient.Job `json:"jobs"`
		NextCursor string          `json:"next_cursor"`
	}
	resp, err := c.JSON(ctx, http.MethodGet, path, query, nil, &page)
	// The server looks at a bounded number of jobs per page: an empty one that has a next one only means "further on".
	for err == nil && len(page.Jobs) == 0 && page.NextCursor != "" {
		query.Set("cursor", page.NextCursor)
		page.NextCursor = ""
		resp, err = c.JSON(ctx, http.MethodGet, path, query, nil, &page)
	}
	if err != nil {
		return err
	}
	ids := make([]string, len(page.Jobs))
	for i, j := range page.Jobs {
		ids[i] = j.ID
	}
	err = a.show(resp.Body, ids, func(w io.Writer) {
		row(w, "ID", "TYPE", "QUEUE", "STATE", "ATTEMPT", "CREATED", "LAST ERROR")
		for i := range page.Jobs {
			j := &page.Jobs[i]
			row(w, j.ID, j.Type, j.Queue, stateText(j), fmt.Sprintf("%d/%d", j.Attempt, j.MaxAttempts), ago(j.CreatedAt), errorText(j.LastError))
		}
	})
	if err == nil && page.NextCursor != "" && a.output != "json" && a.output != "yaml" {
		a.say("more: --cursor %s", page.NextCursor)
	}
	return err
}

func errorText(e *apiclient.JobError) string {
	if e == nil {
		return "-"
	}
	text, _, _ := strings.Cut(e.Message, "\n")
	if len(text) > 60 {
		text = strings.ToValidUTF8(text[:60], "") + "…"
	}
	return e.Kind + ": " + text
}

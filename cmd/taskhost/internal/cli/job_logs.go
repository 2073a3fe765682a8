package cli

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/taskhost/taskhost/cmd/taskhost/internal/apiclient"
)

// logLineMax bounds one line of a stream.
const logLineMax = 1 << 20 // bytes

type logLine struct {
	Seq     int64     `json:"seq"`
	Run     int       `json:"run"`
	Attempt int       `json:"attempt"`
	At      time.Time `json:"at"`
	Level   string    `json:"level"`
	Message string    `json:"message"`
}

func (a *App) jobLogsCommand() *cobra.Command {
	var follow bool
	cmd := &cobra.Command{
		Use:   "logs ID",
		Short: "Print what the handler logged",
		Long: "Print what the handler logged. With -o json each line is one JSON object. Without retention.logs: all only the logs of\n" +
			"unfinished and of failed jobs are kept.",
		Args: args(1, 1),
	}
	cmd.Flags().BoolVarP(&follow, "follow", "f", false, "go on until the job ends")
	return a.client(cmd, func(ctx context.Context, c *apiclient.Client, args []string) error {
		if follow {
			return a.followLogs(ctx, c, args[0])
		}
		printed := 0
		for after := int64(0); ; {
			var page struct {
				Lines     []json.RawMessage `json:"lines"`
				Truncated bool              `json:"truncated"`
				NextAfter int64             `json:"next_after"`
			}
			query := url.Values{"after": {strconv.FormatInt(after, 10)}}
			if _, err := c.JSON(ctx, http.MethodGet, apiclient.Path("jobs", args[0], "logs"), query, nil, &page); err != nil {
				return err
			}
			for _, line := range page.Lines {
				if err := a.printLogLine(line); err != nil {
					return err
				}
			}
			printed += len(page.Lines)
			if len(page.Lines) == 0 || page.NextAfter <= after {
				if page.Truncated {
					a.say("an attempt wrote more than is kept; the rest was dropped")
				}
				if printed > 0 {
					return nil
				}
				return a.explainNoLog(ctx, c, args[0])
			}
			after = page.NextAfter
		}
	})
}

// explainNoLog says why a log that was asked for is empty.
func (a *App) explainNoLog(ctx context.Context, c *apiclient.Client, id string) error {
	var job apiclient.Job
	if _, err := c.JSON(ctx, http.MethodGet, apiclient.Path("jobs", id), nil, nil, &job); err != nil {
		return err
	}
	if job.Terminal() {
		a.sayNoLog(id, job.State)
	} else {
		a.say("%s is %s and has logged nothing yet", id, safe(job.State))
	}
	return nil
}

func (a *App) sayNoLog(id, state string) {
	a.say("no log of %s, which is %s, was kept: its handler wrote none, or retention.logs does not keep it (default: failed jobs only)", id, safe(state))
}

func (a *App) followLogs(ctx context.Context, c *apiclient.Client, id string) error {
	stream, err := c.Stream(ctx, apiclient.Request{
		Method: http.MethodGet, Path: apiclient.Path("jobs", id, "logs"), Query: url.Values{"follow": {"true"}},
	})
	if err != nil {
		return err
	}
	defer stream.Close()
	lines := bufio.NewScanner(stream)
	lines.Buffer(nil, logLineMax)
	printed := false
	for lines.Scan() {
		line := bytes.TrimSpace(lines.Bytes())
		if len(line) == 0 {
			continue // keeps the connection alive
		}
		var end struct {
			End   bool   `json:"end"`
			State string `json:"state"`
		}
		if json.Unmarshal(line, &end) == nil && end.End {
			if printed {
				a.say("%s is %s", id, safe(end.State))
			} else {
				a.sayNoLog(id, end.State)
			}
			return nil
		}
		if err := a.printLogLine(line); err != nil {
			return err
		}
		printed = true
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if err := lines.Err(); err != nil {
		return &apiclient.UnreachableError{Server: c.Server(), Err: err}
	}
	return &apiclient.UnreachableError{Server: c.Server(), Err: errors.New("the stream ended before the job did")}
}

func (a *App) printLogLine(raw []byte) error {
	if a.output == "json" {
		return a.write(append(bytes.TrimSpace(raw), '\n'))
	}
	line, err := decode[logLine](raw)
	if err != nil {
		return err
	}
	return a.write(fmt.Appendf(nil, "%s %d.%d %-5s %s\n", line.At.UTC().Format("15:04:05.000"), line.Run, line.Attempt, safe(line.Level), safe(line.Message)))
}

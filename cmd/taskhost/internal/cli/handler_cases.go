package cli

import (
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/taskhost/taskhost/cmd/taskhost/internal/wire"
)

type caseResult struct {
	Case            string  `json:"case"`
	OK              bool    `json:"ok"`
	Problem         string  `json:"problem,omitempty"`
	DurationMS      float64 `json:"duration_ms"`
	Fuel            *int64  `json:"fuel"` // null: not metered
	PeakMemoryBytes int64   `json:"peak_memory_bytes"`
}

func (a *App) handlerTestCommand() *cobra.Command {
	var f localFlags
	cmd := &cobra.Command{
		Use:   "test [DIR]",
		Short: "Build a handler project and run its cases",
		Long: `Build a handler project and run each file of cases/ in the engine and within the limits of the server. A case is a JSON object with
one of payload, payload_text, payload_base64, and one of want (JSON, compared by value), want_text, want_base64, want_error
{"kind", "message"}; optionally attempt, headers and config. The exit code is 1 when a case fails.`,
		Args: args(0, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			ctx, stop := interruptible(cmd.Context())
			defer stop()
			return a.handlerTest(ctx, firstArg(args, "."), &f)
		},
	}
	f.register(cmd)
	return cmd
}

func (a *App) handlerTest(ctx context.Context, dir string, f *localFlags) error {
	p, err := openProject(dir)
	if err != nil {
		return err
	}
	cases, err := readCases(dir)
	if err != nil {
		return err
	}
	if err := p.build(ctx, a.Err); err != nil {
		return err
	}
	module, err := readModule(p.module())
	if err != nil {
		return err
	}
	o, err := f.options(p.Type)
	if err != nil {
		return err
	}
	l, err := a.openLocal(ctx, module, o)
	if err != nil {
		return err
	}
	defer l.Close()
	results, failed := make([]caseResult, 0, len(cases)), 0
	for _, c := range cases {
		r, err := a.runCase(ctx, l, c)
		if err != nil {
			return err
		}
		if !r.OK {
			failed++
		}
		results = append(results, r)
	}
	err = a.showValue(map[string]any{"type": p.Type, "cases": results, "failed": failed}, caseNames(results), func(w io.Writer) {
		for _, r := range results {
			fmt.Fprintln(w, r.text())
		}
	})
	if err == nil && failed > 0 {
		return failf(ExitFailed, "%d of %d cases failed", failed, len(cases))
	}
	return err
}

func (a *App) runCase(ctx context.Context, l *wire.Local, c *testCase) (caseResult, error) {
	payload, err := c.payload()
	if err != nil {
		return caseResult{}, usagef("%s: payload_base64: %w", c.name, err)
	}
	var log []string
	out := l.Run(ctx, wire.LocalJob{
		Payload: payload, Attempt: c.Attempt, Headers: c.Headers, Config: c.Config,
		Log: func(level, message string) { log = append(log, fmt.Sprintf("%-5s %s", level, safe(message))) },
	})
	if ctx.Err() != nil {
		return caseResult{}, context.Cause(ctx)
	}
	problem, err := c.check(&out)
	if err != nil {
		return caseResult{}, usagef("%s: %w", c.name, err)
	}
	r := caseResult{
		Case: c.name, OK: problem == "", Problem: problem, DurationMS: float64(out.Duration.Microseconds()) / 1000,
		PeakMemoryBytes: out.PeakMemory,
	}
	if out.Fuel > 0 {
		r.Fuel = &out.Fuel
	}
	if !r.OK {
		for _, line := range log {
			a.say("%s: %s", c.name, line)
		}
	}
	return r, nil
}

func (r *caseResult) text() string {
	verdict, fuel := "ok  ", "not metered"
	if !r.OK {
		verdict = "FAIL"
	}
	if r.Fuel != nil {
		fuel = fmt.Sprint(*r.Fuel)
	}
	line := fmt.Sprintf("%s %s  %.1f ms  fuel %s  peak %s", verdict, r.Case, r.DurationMS, fuel, bytesText(r.PeakMemoryBytes))
	for part := range strings.SplitSeq(r.Problem, "\n") {
		if part != "" {
			line += "\n       " + safe(part)
		}
	}
	return line
}

func caseNames(results []caseResult) []string {
	names := make([]string, len(results))
	for i, r := range results {
		names[i] = r.Case
	}
	return names
}

package lockdown

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os/exec"
	"strings"
	"time"

	"github.com/taskhost/taskhost/handlers/wasm/child"
)

// ProbeFlag is the first argument of a child that is to answer a probe; the arguments of a plan follow.
const ProbeFlag = "--probe"

// AnswerProbe locks the calling process down as the arguments say and writes the report to w. It is the whole life of a probing child.
func AnswerProbe(w io.Writer, args []string) error {
	rules := Rules{OpenFiles: probeFiles}
	flags := flag.NewFlagSet("probe", flag.ContinueOnError)
	flags.SetOutput(io.Discard)
	for _, name := range FlagNames() {
		flags.Func(name, "", func(value string) error { return rules.Flag(name, value) })
	}
	if err := flags.Parse(args); err != nil {
		return err
	}
	report, err := Apply(rules)
	if err != nil && !errors.As(err, new(*BelowError)) {
		return err
	}
	return json.NewEncoder(w).Encode(report)
}

const (
	probeFiles   = 64
	probeTimeout = 15 * time.Second
	maxAnswer    = 64 << 10
)

// Probe finds out how far this machine lets child processes be locked down, by locking one down. command is the program and arguments that
// end in AnswerProbe, ProbeFlag not included. The plan is for the children to come: every layer that can be had, and none of them goes on
// below least. A report below least is a *BelowError.
func Probe(ctx context.Context, s *child.Spawner, command []string, least Level) (Plan, Report, error) {
	plan := Plan{Apply: true, Least: least}
	mine, err := outside()
	if err != nil {
		return plan, Report{}, err
	}
	var refused error
	if len(mine) > 0 {
		apart := Plan{Apply: true, Namespaces: true, Outside: strings.Join(mine, ",")}
		var report Report
		if report, refused = ask(ctx, s, command, apart); refused == nil {
			apart.Least = least
			return apart, report, check(report, least)
		}
	}
	report, err := ask(ctx, s, command, Plan{Apply: true})
	if err != nil {
		return plan, report, err
	}
	for i, l := range report.Layers {
		if l.Name == LayerNamespaces && refused != nil {
			report.Layers[i].Detail = refused.Error()
		}
	}
	return plan, report, check(report, least)
}

func check(report Report, least Level) error {
	if report.Reached() < least {
		return &BelowError{least, report}
	}
	return nil
}

// ask starts a child under a plan and reads its report.
func ask(ctx context.Context, s *child.Spawner, command []string, plan Plan) (Report, error) {
	ctx, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	args := append(append(append([]string{}, command[1:]...), ProbeFlag), plan.Args()...)
	cmd := exec.CommandContext(ctx, command[0], args...)
	cmd.Env = []string{}
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	cmd.WaitDelay = time.Second
	start := s.Start
	if plan.Namespaces {
		start = s.StartApart
	}
	if err := start(cmd); err != nil {
		return Report{}, fmt.Errorf("start a process: %w", err)
	}
	if err := cmd.Wait(); err != nil {
		line, _, _ := strings.Cut(strings.TrimSpace(stderr.String()), "\n")
		return Report{}, fmt.Errorf("the probing process failed (%w): %.500s", err, line)
	}
	var report Report
	if stdout.Len() > maxAnswer {
		return report, fmt.Errorf("the probing process answered with %d bytes", stdout.Len())
	}
	if err := json.Unmarshal(stdout.Bytes(), &report); err != nil {
		return report, fmt.Errorf("the answer of the probing process: %w", err)
	}
	return report, nil
}

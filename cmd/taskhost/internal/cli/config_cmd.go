package cli

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/spf13/cobra"
	"go.yaml.in/yaml/v3"

	"github.com/taskhost/taskhost/cmd/taskhost/internal/wire"
	"github.com/taskhost/taskhost/config"
)

func (a *App) configCommand() *cobra.Command {
	return newGroup("config", "Check and show the configuration", a.configCheckCommand(), a.configShowCommand())
}

func (a *App) configCheckCommand() *cobra.Command {
	var f serverFlags
	base := config.Default()
	cmd := &cobra.Command{
		Use:   "check [FILE]",
		Short: "Check the configuration that serve would use, and what it means on this machine",
		Long: `Check the configuration that serve would use with the same flags and variables: every problem is reported with its place, and the exit
code is 2. Otherwise the capacity and when each schedule is due next are printed, with warnings about what is probably not meant.`,
		Args: args(0, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			l, err := f.loadArg(a, cmd, base, args)
			if err != nil {
				return err
			}
			if err := checkModules(l.Config.Handlers); err != nil {
				return err
			}
			m := config.ThisMachine()
			capacity, warnings := l.Config.Capacity(m), l.Config.Warnings(m)
			due, err := nextOf(l.Config.Schedules, time.Now())
			if err != nil {
				return err
			}
			view := map[string]any{"ok": true, "schedules": due, "file": l.File, "capacity": capacity, "warnings": nonNil(warnings), "skipped": nonNil(l.Skipped)}
			return a.showValue(view, nil, func(w io.Writer) {
				fmt.Fprintln(w, "ok")
				fmt.Fprintf(w, "jobs at once: %d (%d runners × %d slots)\n", capacity.Jobs, capacity.Runners, capacity.SlotsPerRunner)
				fmt.Fprintf(w, "worst-case memory of jobs: %s (%s each)", bytesText(capacity.WorstCase), capacity.MemoryPerJob)
				if m.MemoryBytes > 0 {
					fmt.Fprintf(w, " of %s in %s", bytesText(m.MemoryBytes), m.MemoryFrom)
				}
				fmt.Fprintln(w)
				for _, s := range due {
					row(w, "schedule "+s.Name, s.Cron, "next: "+s.text())
				}
				for _, warning := range warnings {
					fmt.Fprintf(w, "warning: %s\n", warning)
				}
				if len(l.Skipped) > 0 {
					fmt.Fprintf(w, "not settings, but links that Kubernetes adds: %v\n", l.Skipped)
				}
			})
		},
	}
	f.register(cmd, base)
	return cmd
}

// scheduleDue is when a configured schedule is due next.
type scheduleDue struct {
	Name   string    `json:"name"`
	Tenant string    `json:"tenant,omitempty"`
	Cron   string    `json:"cron"`
	Next   time.Time `json:"next"`
	Paused bool      `json:"paused"`
}

func (s scheduleDue) text() string {
	text := s.Next.Format(time.RFC3339) + " " + s.Next.Location().String()
	if s.Paused {
		text += " (paused)"
	}
	return text
}

func nextOf(list []config.Schedule, now time.Time) ([]scheduleDue, error) {
	out := []scheduleDue{}
	for i, s := range list {
		due, err := wire.NextDue(s.Cron, s.TZ, now, 1)
		if err != nil {
			return nil, fmt.Errorf("schedules[%d]: %w", i, err)
		}
		out = append(out, scheduleDue{Name: s.Name, Tenant: s.Tenant, Cron: s.Cron, Next: due[0], Paused: s.Paused})
	}
	return out, nil
}

// checkModules looks for the files that serve would read.
func checkModules(list []config.Handler) error {
	var problems []config.Problem
	for i, h := range list {
		if _, err := os.Stat(h.Wasm); err != nil {
			problems = append(problems, config.Problem{Path: fmt.Sprintf("handlers[%d].wasm", i), Message: err.Error()})
		}
	}
	if len(problems) > 0 {
		return &config.Error{Problems: problems}
	}
	return nil
}

func nonNil(list []string) []string {
	if list == nil {
		return []string{}
	}
	return list
}

func (a *App) configShowCommand() *cobra.Command {
	var (
		f   serverFlags
		dev bool
	)
	base := config.Default()
	cmd := &cobra.Command{
		Use:   "show [FILE]",
		Short: "Print the configuration in force, with defaults and without secrets",
		Long:  "Print the configuration that serve would use with the same flags and variables, as YAML (JSON with -o json). Secrets are hidden.",
		Args:  args(0, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if dev {
				base = devDefaults()
			}
			l, err := f.loadArg(a, cmd, base, args)
			if err != nil {
				return err
			}
			doc := l.Config.Show()
			if a.output == "json" {
				var v map[string]any
				if err := doc.Decode(&v); err != nil {
					return fmt.Errorf("show the configuration: %w", err)
				}
				return a.showValue(v, nil, nil)
			}
			var b bytes.Buffer
			enc := yaml.NewEncoder(&b)
			enc.SetIndent(2)
			if err := enc.Encode(doc); err != nil {
				return fmt.Errorf("show the configuration: %w", err)
			}
			return a.write(b.Bytes())
		},
	}
	f.register(cmd, base)
	cmd.Flags().BoolVar(&dev, "dev", false, "what dev would use")
	return cmd
}

// loadArg is load with the file as an argument instead of --config.
func (f *serverFlags) loadArg(a *App, cmd *cobra.Command, base config.Config, args []string) (*config.Loaded, error) {
	if len(args) == 1 {
		if f.file != "" {
			return nil, usagef("the file is given twice: %s and --config %s", args[0], f.file)
		}
		f.file = args[0]
	}
	return f.load(a, cmd, base)
}

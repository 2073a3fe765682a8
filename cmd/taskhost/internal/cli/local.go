package cli

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/taskhost/taskhost/cmd/taskhost/internal/wire"
	"github.com/taskhost/taskhost/config"
	"github.com/taskhost/taskhost/handlers"
)

// localFlags are the limits of what runs on this machine, without a server. The defaults are the server's.
type localFlags struct {
	memory, timeout string
	fuel            int64
	config          []string
}

func (f *localFlags) register(cmd *cobra.Command) {
	f.registerMemory(cmd)
	d := config.Default().Defaults
	cmd.Flags().StringVar(&f.timeout, "timeout", "", fmt.Sprintf("time limit of an attempt (default %s)", config.FormatDuration(d.Timeout)))
	cmd.Flags().Int64Var(&f.fuel, "fuel", 0, "what an attempt may execute, in units of fuel (default no limit)")
	cmd.Flags().StringArrayVar(&f.config, "handler-config", nil, "NAME=VALUE given to the handler; may be repeated")
}

// registerMemory is register for a command that admits a module and runs no job: the memory limit is all that bears on it.
func (f *localFlags) registerMemory(cmd *cobra.Command) {
	cmd.Flags().StringVar(&f.memory, "memory", "", fmt.Sprintf("memory limit of a job (default %s)", config.Default().Defaults.Memory))
}

func (f *localFlags) options(typ string) (wire.LocalOptions, error) {
	o := wire.LocalOptions{Type: typ, Defaults: config.Default().Defaults}
	var err error
	if f.memory != "" {
		if o.Defaults.Memory, err = config.ParseSize(f.memory); err != nil || o.Defaults.Memory < 64*config.KiB || o.Defaults.Memory > 4*config.GiB {
			return o, usagef("--memory must be a size between 64KiB and 4GiB, got %q", f.memory)
		}
	}
	if f.timeout != "" {
		if o.Defaults.Timeout, err = config.ParseDuration(f.timeout); err != nil || o.Defaults.Timeout <= 0 {
			return o, usagef(`--timeout must be a duration such as "10s", got %q`, f.timeout)
		}
	}
	if o.Defaults.Fuel = f.fuel; f.fuel < 0 {
		return o, usagef("--fuel must not be negative, got %d", f.fuel)
	}
	o.Config, err = keyValues("--handler-config", f.config)
	return o, err
}

// openLocal admits a module to a runtime of its own on this machine.
func (a *App) openLocal(ctx context.Context, module []byte, o wire.LocalOptions) (*wire.Local, error) {
	l, err := wire.OpenLocal(ctx, module, o)
	if err == nil {
		return l, nil
	}
	return nil, err
}

// measured is what a run took, in the words of a report.
func measured(out *handlers.Outcome) string {
	parts := []string{fmt.Sprintf("%.1f ms", float64(out.Duration.Microseconds())/1000)}
	if out.Fuel > 0 {
		parts = append(parts, fmt.Sprintf("fuel %d", out.Fuel))
	} else {
		parts = append(parts, "fuel not metered")
	}
	if out.PeakMemory > 0 {
		parts = append(parts, "peak "+bytesText(out.PeakMemory))
	}
	return strings.Join(parts, "  ")
}

// failureText is why an attempt did not succeed.
func failureText(out *handlers.Outcome) string {
	if out.Error == nil {
		return string(out.Kind)
	}
	lines := append([]string{string(out.Kind) + ": " + headline(out.Error.Kind, out.Error.Message)}, trace(out.Error.Message)...)
	return strings.Join(lines, "\n  ")
}

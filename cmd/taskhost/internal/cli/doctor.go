package cli

import (
	"fmt"
	"io"
	"os"
	"runtime"
	"strings"

	"github.com/spf13/cobra"

	"github.com/taskhost/taskhost/cmd/taskhost/internal/wire"
	"github.com/taskhost/taskhost/config"
)

// diagnosis is what doctor finds.
type diagnosis struct {
	OK      bool             `json:"ok"` // serve would start, as far as doctor looks
	System  string           `json:"system"`
	Kernel  string           `json:"kernel,omitempty"`
	Cores   int              `json:"cores"`
	Memory  int64            `json:"memory_bytes"` // 0 = not known
	Sandbox sandboxDiagnosis `json:"sandbox"`
}

type sandboxDiagnosis struct {
	Configured string `json:"configured"`
	wire.SandboxReport
}

func (a *App) doctorCommand() *cobra.Command {
	var f serverFlags
	base := config.Default()
	cmd := &cobra.Command{
		Use:   "doctor",
		Short: "Say what this machine can do: how far handlers are locked down, why not further, and what to change",
		Long: `Say what this machine can do, as the user who runs this, with the settings that serve would use. A child process is locked down and tries
what it must not be able to do; every layer is reported with what it does or why it cannot be had, and what to change. The exit code is 1
when the level is below wasm.sandbox, so that serve would refuse to start.`,
		Args: args(0, 0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			l, err := f.load(a, cmd, base)
			if err != nil {
				return err
			}
			report, err := wire.ProbeSandbox(cmd.Context(), "")
			if err != nil {
				return failf(ExitFailed, "the sandbox cannot be tested: %w", err)
			}
			m := config.ThisMachine()
			d := diagnosis{
				OK:     wire.SandboxReaches(report.Level, l.Config.Wasm.Sandbox),
				System: runtime.GOOS + "/" + runtime.GOARCH, Kernel: kernel(), Cores: m.Cores, Memory: m.MemoryBytes,
				Sandbox: sandboxDiagnosis{l.Config.Wasm.Sandbox, report},
			}
			if err := a.showValue(d, nil, d.write); err != nil {
				return err
			}
			if !d.OK {
				return failf(ExitFailed, "sandbox level %s is configured, this machine reaches %s", d.Sandbox.Configured, d.Sandbox.Level)
			}
			return nil
		},
	}
	f.register(cmd, base)
	return cmd
}

func (d *diagnosis) write(w io.Writer) {
	row(w, "system", strings.TrimSpace(d.System+" "+d.Kernel))
	row(w, "cores", d.Cores)
	if d.Memory > 0 {
		row(w, "memory", bytesText(d.Memory))
	}
	row(w, "sandbox", fmt.Sprintf("%s (configured: %s)", d.Sandbox.Level, d.Sandbox.Configured))
	for _, l := range d.Sandbox.Layers {
		holds := "yes"
		if !l.Holds {
			holds = "NO"
		}
		row(w, "  "+l.Name, holds+": "+l.Detail)
		if l.Remedy != "" {
			row(w, "", "to change that: "+l.Remedy)
		}
	}
}

// kernel is the release of the Linux kernel; empty elsewhere.
func kernel() string {
	release, err := os.ReadFile("/proc/sys/kernel/osrelease")
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(release))
}

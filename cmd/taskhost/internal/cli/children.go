package cli

import (
	"os"

	"github.com/spf13/cobra"

	"github.com/taskhost/taskhost/cmd/taskhost/internal/wire"
)

// compileCommand and runnerCommand are what the server starts its own child processes with; people have no use for them.

func (a *App) compileCommand() *cobra.Command {
	return child(wire.CompileCommand, func(cmd *cobra.Command, _ []string) int {
		return wire.Compile(cmd.Context(), a.In, a.Out, a.Err)
	})
}

func (a *App) runnerCommand() *cobra.Command {
	return child(wire.RunnerCommand, func(cmd *cobra.Command, args []string) int {
		return wire.Runner(cmd.Context(), args)
	})
}

// child takes its arguments as they are, and leaves the process with the child's own exit code at once: guests may still run.
func child(name string, run func(cmd *cobra.Command, args []string) int) *cobra.Command {
	return &cobra.Command{
		Use: name, Hidden: true, DisableFlagParsing: true,
		PersistentPreRunE: func(*cobra.Command, []string) error { return nil },
		Run:               func(cmd *cobra.Command, args []string) { os.Exit(run(cmd, args)) },
	}
}

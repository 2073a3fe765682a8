package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/taskhost/taskhost/cmd/taskhost/internal/apiclient"
	"github.com/taskhost/taskhost/cmd/taskhost/internal/wire"
	"github.com/taskhost/taskhost/config"
)

// App is one run of the program: what it was given and where it writes.
type App struct {
	Args    []string // without the program's name
	Environ []string
	In      io.Reader
	Out     io.Writer
	Err     io.Writer
	Commit  string // of the source, when the build says; "" = as far as the build information knows

	output string // --output
	server string // --server
	apiKey string // --api-key
}

func (a *App) version() wire.VersionInfo { return wire.Version(a.Commit) }

// Main runs one command and returns the exit code.
func Main(ctx context.Context, a *App) int {
	root := a.root()
	err := root.ExecuteContext(ctx)
	if err != nil {
		a.reportError(err)
	}
	return exitCode(err)
}

func (a *App) root() *cobra.Command {
	root := &cobra.Command{
		Use:   "taskhost",
		Short: "Run queued jobs in sandboxed WebAssembly handlers",
		Long: `taskhost reserves jobs fairly from a queue, runs each in a sandboxed WebAssembly handler, and settles it:
done, retried, or in the dead-letter queue.

  taskhost dev                          try it: everything embedded, sample handlers
  taskhost enqueue hello --data '{"name":"Ada"}' --wait
  taskhost handler new resize --lang go start a handler of your own

Exit codes: 0 ok, 1 failed, 2 usage, 3 not found, 4 no rights, 5 conflict, 6 no server, 7 the awaited job failed,
8 done in part, 124 time out, 130 interrupted, 143 terminated.`,
		SilenceErrors: true,
		SilenceUsage:  true,
		Args:          cobra.ArbitraryArgs,
		RunE:          group,
	}
	root.SetArgs(a.Args)
	root.SetIn(a.In)
	root.SetOut(a.Out)
	root.SetErr(a.Err)
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		return &exitError{code: ExitUsage, err: err, hint: "see: " + self() + strings.TrimPrefix(cmd.CommandPath(), "taskhost") + " --help"}
	})
	root.PersistentFlags().StringVarP(&a.output, "output", "o", "table", "what to print: table, json, yaml or id")
	root.PersistentPreRunE = func(*cobra.Command, []string) error { return a.checkOutput() }
	complete(root, "output", "table", "json", "yaml", "id")

	root.AddCommand(
		a.devCommand(), a.serveCommand(), a.enqueueCommand(), a.jobCommand(), a.queueCommand(), a.dlqCommand(), a.operationCommand(), a.scheduleCommand(), a.workerCommand(),
		a.handlerCommand(), a.configCommand(), a.storeCommand(), a.doctorCommand(), a.versionCommand(), a.compileCommand(), a.runnerCommand(),
	)
	return root
}

// group is what a command does that only has commands below it: help, or a refusal of an unknown name with the nearest.
func group(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return cmd.Help()
	}
	err := fmt.Errorf("unknown command %q for %q", args[0], cmd.CommandPath())
	hint := "see: " + self() + strings.TrimPrefix(cmd.CommandPath(), "taskhost") + " --help"
	var names []string
	for _, c := range cmd.Commands() {
		if c.IsAvailableCommand() {
			names = append(names, c.Name())
		}
	}
	if near := nearest(args[0], names); near != "" {
		hint = fmt.Sprintf("did you mean %q?", near)
	}
	return &exitError{code: ExitUsage, err: err, hint: hint}
}

// newGroup makes a command that only has commands below it.
func newGroup(use, short string, children ...*cobra.Command) *cobra.Command {
	cmd := &cobra.Command{Use: use, Short: short, Args: cobra.ArbitraryArgs, RunE: group}
	cmd.AddCommand(children...)
	return cmd
}

// args checks the number of arguments, naming what is missing by the command's usage line.
func args(least, most int) cobra.PositionalArgs {
	return func(cmd *cobra.Command, given []string) error {
		if len(given) >= least && (most < 0 || len(given) <= most) {
			return nil
		}
		problem := "is missing an argument"
		if most >= 0 && len(given) > most {
			problem = fmt.Sprintf("does not take %q", given[most])
		}
		return &exitError{
			code: ExitUsage, err: fmt.Errorf("%s %s", cmd.CommandPath(), problem),
			hint: "usage: " + strings.Replace(cmd.UseLine(), "taskhost", self(), 1),
		}
	}
}

func complete(cmd *cobra.Command, flag string, words ...string) {
	err := cmd.RegisterFlagCompletionFunc(flag, cobra.FixedCompletions(words, cobra.ShellCompDirectiveNoFileComp))
	if err != nil {
		panic(err) // the flag is defined one line above the call
	}
}

// reportError writes an error to stderr: as text, or as JSON with -o json.
func (a *App) reportError(err error) {
	if errors.As(err, new(*errQuiet)) {
		return
	}
	hint := a.hint(err)
	if a.output == "json" || wantsJSON(a.Args) {
		a.reportJSON(err, hint)
		return
	}
	fmt.Fprintf(a.Err, "error: %s\n", err)
	if hint != "" {
		fmt.Fprintln(a.Err, hint)
	}
}

// wantsJSON looks for -o json by itself: a command line that is wrong was perhaps not read up to there.
func wantsJSON(args []string) bool {
	for i, arg := range args {
		switch arg {
		case "--":
			return false
		case "-ojson", "-o=json", "--output=json":
			return true
		case "-o", "--output":
			if i+1 < len(args) && args[i+1] == "json" {
				return true
			}
		}
	}
	return false
}

func (a *App) hint(err error) string {
	if e, ok := errors.AsType[*exitError](err); ok && e.hint != "" {
		return e.hint
	}
	if _, ok := errors.AsType[*apiclient.UnreachableError](err); ok {
		return fmt.Sprintf("start a server: %s dev   (or name another: --server, or %s)", self(), config.EnvServer)
	}
	return ""
}

func (a *App) reportJSON(err error, hint string) {
	out := map[string]any{"code": errorCode(err), "message": err.Error(), "exit_code": exitCode(err)}
	if hint != "" {
		out["hint"] = hint
	}
	if p, ok := errors.AsType[*apiclient.Problem](err); ok {
		out["problem"] = p
	}
	if e, ok := errors.AsType[*config.Error](err); ok {
		out["problems"] = e.Problems
	}
	enc := json.NewEncoder(a.Err)
	enc.SetEscapeHTML(false)
	_ = enc.Encode(map[string]any{"error": out}) // nobody is left to tell
}

// errorCode is the API's code, or the name of the exit code.
func errorCode(err error) string {
	if p, ok := errors.AsType[*apiclient.Problem](err); ok {
		return p.Code
	}
	switch exitCode(err) {
	case ExitUsage:
		return "usage"
	case ExitNotFound:
		return "not_found"
	case ExitAuth:
		return "forbidden"
	case ExitConflict:
		return "conflict"
	case ExitUnreachable:
		return "unreachable"
	case ExitJobFailed:
		return "job_failed"
	case ExitPartial:
		return "partial"
	case ExitTimeout:
		return "timeout"
	case ExitInterrupted, ExitTerminated:
		return "interrupted"
	}
	return "failed"
}

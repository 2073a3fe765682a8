package wire

import (
	"context"
	"errors"

	"github.com/taskhost/taskhost/handlers/wasm"
	"github.com/taskhost/taskhost/handlers/wasm/lockdown"
)

// SandboxReport is how far child processes are locked down, layer by layer.
type SandboxReport = lockdown.Report

// SandboxBelow reports whether an error says that this machine cannot lock child processes down as far as the configuration wants.
func SandboxBelow(err error) bool {
	_, ok := errors.AsType[*lockdown.BelowError](err)
	return ok
}

// ProbeSandbox finds out how far this machine lets child processes be locked down, by locking one down. exe is the program to start, "" = this
// one.
func ProbeSandbox(ctx context.Context, exe string) (SandboxReport, error) {
	exe, err := childProgram(exe)
	if err != nil {
		return SandboxReport{}, err
	}
	_, report, err := wasm.ProbeSandbox(ctx, []string{exe, RunnerCommand}, lockdown.Off)
	return report, err
}

// SandboxReaches reports whether a level is at least what wasm.sandbox asks for.
func SandboxReaches(level, wanted string) bool {
	want, err := lockdown.ParseLevel(wanted)
	return err != nil || SandboxReport{Level: level}.Reached() >= want // "best" names no level, and is always reached
}

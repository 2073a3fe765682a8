package wasm

import (
	"context"
	"errors"
	"fmt"

	"github.com/taskhost/taskhost/handlers/wasm/child"
	"github.com/taskhost/taskhost/handlers/wasm/lockdown"
)

// Sandbox is what Options ask of the kernel.
type Sandbox string

// What can be asked for. Above SandboxOff, child processes get every layer of lock-down that this machine allows; the name says what they
// must get at least.
const (
	SandboxOff      Sandbox = "off"  // nothing beyond resource limits and an empty environment; also ""
	SandboxBest     Sandbox = "best" // what can be had, be it nothing
	SandboxBasic    Sandbox = "basic"
	SandboxStandard Sandbox = "standard"
	SandboxStrict   Sandbox = "strict"
)

// least is the level below which no child goes on; apply is false if none is to be locked down at all.
func (s Sandbox) least() (least lockdown.Level, apply bool, err error) {
	switch s {
	case SandboxOff, "":
		return lockdown.Off, false, nil
	case SandboxBest:
		return lockdown.Off, true, nil
	}
	least, err = lockdown.ParseLevel(string(s))
	return least, true, err
}

// plan finds out what this machine allows, by locking down a process that does nothing else.
func (o *Options) plan() (lockdown.Plan, lockdown.Report, error) {
	least, apply, err := o.Sandbox.least()
	if err != nil || !apply {
		return lockdown.Plan{}, lockdown.Report{Level: lockdown.Off.String()}, err
	}
	return ProbeSandbox(context.Background(), o.Command(RoleRunner), least)
}

// ProbeSandbox finds out how far child processes can be locked down here. command is Options.Command for RoleRunner. Below least the error is
// a *lockdown.BelowError; the report is complete then.
func ProbeSandbox(ctx context.Context, command []string, least lockdown.Level) (lockdown.Plan, lockdown.Report, error) {
	s := child.NewSpawner()
	defer s.Close()
	plan, report, err := lockdown.Probe(ctx, s, command, least)
	if err != nil && !errors.As(err, new(*lockdown.BelowError)) {
		return plan, report, fmt.Errorf("sandbox: %w", err)
	}
	return plan, report, err
}

// SandboxLevel is how far the kernel confines child processes, tested when the runtime was opened: off, basic, standard or strict. A child that
// later reaches less than what was asked for does not go on.
func (r *Runtime) SandboxLevel() string { return r.sandbox.Level }

// SandboxReport says what the level is made of, and what is missing for a higher one.
func (r *Runtime) SandboxReport() lockdown.Report { return r.sandbox }

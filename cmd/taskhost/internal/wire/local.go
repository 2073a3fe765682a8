package wire

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"time"

	"github.com/taskhost/taskhost/config"
	"github.com/taskhost/taskhost/handlers"
	"github.com/taskhost/taskhost/queue"
)

// Local runs one module on this machine, in the engine and within the limits of a server, without a store.
type Local struct {
	o         LocalOptions
	dir       string
	runtime   Runtime
	admission *handlers.Admission
	version   *handlers.Version
}

// LocalOptions say within which limits, and as what.
type LocalOptions struct {
	Type     string
	Defaults config.Defaults
	Config   map[string]string // given to the handler
	Exe      string            // as Options.Exe
}

// OpenLocal admits a module as an upload would. A module at fault gives a *handlers.Refusal.
func OpenLocal(ctx context.Context, module []byte, o LocalOptions) (_ *Local, err error) {
	dir, err := os.MkdirTemp("", "taskhost-local-")
	if err != nil {
		return nil, fmt.Errorf("make a folder for the compiled module: %w", err)
	}
	l := &Local{o: o, dir: dir}
	defer func() {
		if err != nil {
			err = errors.Join(err, l.Close())
		}
	}()
	c := config.Default()
	c.DataDir, c.Defaults = dir, o.Defaults
	c.Wasm.Runners, c.Wasm.Slots, c.Wasm.Sandbox = 1, 1, config.SandboxBest
	if l.runtime, err = openRuntime(&c, o.Exe, slog.New(slog.DiscardHandler)); err != nil {
		return l, err
	}
	l.admission, err = l.runtime.Admit(ctx, handlers.AdmitRequest{Tenant: localTenant, Type: o.Type, Module: module, Limits: l.limits()})
	if err != nil {
		return l, err
	}
	l.version = &handlers.Version{
		Tenant: localTenant, Type: o.Type, Number: 1, Runtime: l.runtime.Name(), SHA256: l.admission.SHA256, Kind: l.admission.Kind,
		Limits: l.limits(), Config: o.Config,
	}
	err = l.runtime.Prepare(ctx, l.version, func(context.Context) ([]byte, error) { return module, nil })
	return l, err
}

const localTenant = "default"

func (l *Local) limits() handlers.Limits { return handlerLimits(l.o.Defaults) }

// Admission is what the check of the module found.
func (l *Local) Admission() *handlers.Admission { return l.admission }

// LocalJob is one attempt to run.
type LocalJob struct {
	Payload  []byte
	Attempt  int
	Headers  map[string]string
	Config   map[string]string // instead of that of LocalOptions; nil = that one
	Log      func(level, message string)
	Progress func(done, total int64, message string) // nil = not shown
}

// Run runs one attempt.
func (l *Local) Run(ctx context.Context, job LocalJob) handlers.Outcome {
	version := *l.version
	if job.Config != nil {
		version.Config = job.Config
	}
	var random [10]byte // there is one job
	return l.runtime.Invoke(ctx, &handlers.Invocation{
		JobID: queue.FormatID("job", queue.NewUUID(time.Now(), random)), Tenant: localTenant, Queue: "default", Type: l.o.Type,
		Run: 1, Attempt: job.Attempt, MaxAttempts: max(job.Attempt, config.Default().Defaults.MaxAttempts),
		Payload: job.Payload, Headers: job.Headers, Version: &version, Limits: l.limits(),
		Deadline: time.Now().Add(l.o.Defaults.Timeout), Events: localEvents{job},
	})
}

// Close ends the child processes and removes what was compiled.
func (l *Local) Close() error {
	var err error
	if l.runtime != nil {
		ctx, cancel := context.WithTimeout(context.Background(), stopRuntimeWithin)
		defer cancel()
		err = l.runtime.Close(ctx)
	}
	return errors.Join(err, os.RemoveAll(l.dir))
}

// localEvents shows what a handler reports. Checkpoints are accepted and forgotten: there is no next attempt.
type localEvents struct{ job LocalJob }

// Log shows a line.
func (e localEvents) Log(_ time.Time, level, message string) {
	if e.job.Log != nil {
		e.job.Log(level, queue.EscapeLogMessage(message))
	}
}

// Progress shows a report.
func (e localEvents) Progress(done, total int64, message string) {
	if e.job.Progress != nil {
		e.job.Progress(done, total, message)
	}
}

// Checkpoint accepts the data.
func (e localEvents) Checkpoint(context.Context, []byte) error { return nil }

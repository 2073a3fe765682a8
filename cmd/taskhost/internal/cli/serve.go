package cli

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/taskhost/taskhost/cmd/taskhost/internal/wire"
	"github.com/taskhost/taskhost/config"
)

func (a *App) serveCommand() *cobra.Command {
	var (
		f        serverFlags
		insecure bool
	)
	base := config.Default()
	cmd := &cobra.Command{
		Use:   "serve",
		Short: "Run a server: the API, and the jobs",
		Long: `Run a server: the API, and the jobs. Settings come from flags, TASKHOST_ variables, the file of --config, and defaults, in this order
(see config show).

SIGINT or SIGTERM drains: no more jobs are started, running ones may finish for worker.drain, what is left then goes back to the front of
its queue, and the exit code is 0. A second signal gives running jobs back at once and exits with 130 (SIGINT) or 143 (SIGTERM).

SIGHUP reads the configuration again and replaces the plugins that changed in it, or whose programs changed; running jobs finish in the
old ones.

This version has no login. It therefore listens on loopback addresses only, unless --insecure-no-login is given.`,
		Args: args(0, 0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			l, err := f.load(a, cmd, base)
			if err != nil {
				return err
			}
			log := newLogger(l.Config.Log, a.Err)
			if len(l.Skipped) > 0 {
				log.Info("variables that Kubernetes adds for a service are not settings", "skipped", l.Skipped)
			}
			for _, w := range l.Config.Warnings(config.ThisMachine()) {
				log.Warn("configuration", "warning", w)
			}
			again := func() (*config.Loaded, error) { return f.load(a, cmd, base) }
			return a.serve(cmd.Context(), wire.Options{Config: l.Config, Log: log, AllowRemote: insecure, Commit: a.Commit}, again, func(s *wire.Server, took time.Duration) {
				log.Info("ready", "api", s.URL(), "store", l.Config.Store, "data_dir", l.Config.DataDir, "roles", l.Config.Roles,
					"sandbox", s.Sandbox(), "jobs_at_once", s.Concurrency(), "took_ms", took.Milliseconds(), "version", a.version().Version)
			})
		},
	}
	f.register(cmd, base)
	cmd.Flags().BoolVar(&insecure, "insecure-no-login", false, "listen on any address although everyone who reaches it can run jobs")
	return cmd
}

// serve runs a server until a signal. ready is called once it takes requests; load reads the configuration again.
func (a *App) serve(parent context.Context, o wire.Options, load loader, ready func(s *wire.Server, took time.Duration)) error {
	started := time.Now()
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(gcPercent)
	}
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, syscall.SIGINT, syscall.SIGTERM)
	defer signal.Stop(signals)
	hangups := make(chan os.Signal, 1) // a lost terminal must not end a server
	signal.Notify(hangups, syscall.SIGHUP)
	defer signal.Stop(hangups)

	o.Log.Info("starting", "version", a.version().Version, "data_dir", o.Config.DataDir)
	ctx, cancel := context.WithCancelCause(parent)
	defer cancel(nil)
	failed := make(chan error, 1)
	o.Fatal = func(err error) {
		select {
		case failed <- err:
		default:
		}
	}
	var server atomic.Pointer[wire.Server]
	forced := make(chan os.Signal, 1)
	done := make(chan struct{})
	defer close(done)
	go func() {
		select {
		case s := <-signals:
			o.Log.Info("stopping", "signal", s.String())
			cancel(&interrupted{s})
		case <-done:
			return
		}
		select {
		case s := <-signals:
			o.Log.Warn("second signal: not waiting for running jobs", "signal", s.String())
			forced <- s
			if sv := server.Load(); sv != nil {
				sv.Kill()
			}
			forceExit(o.Log, s, done)
		case <-done:
		}
	}()

	s, err := wire.Open(ctx, o)
	if err != nil {
		if e, ok := errors.AsType[*interrupted](err); ok {
			o.Log.Info("stopped before the start was complete", "signal", e.signal.String())
			return nil
		}
		return startError(err, o.Config)
	}
	server.Store(s)
	ready(s, time.Since(started))
	var reloading sync.WaitGroup
	reloading.Go(func() { reload(ctx, o.Log, hangups, s, load) })

	var fatal error
	select {
	case <-ctx.Done():
	case fatal = <-failed:
		o.Log.Error("the store failed; stopping", slog.Any("error", fatal))
	}
	cancel(nil)
	reloading.Wait()
	err = s.Close(context.WithoutCancel(ctx))
	select {
	case sig := <-forced:
		return &errQuiet{signalCode(sig)}
	default:
	}
	if fatal != nil {
		return failf(ExitFailed, "the store failed: %w", fatal)
	}
	if parent.Err() != nil {
		return context.Cause(parent)
	}
	return err
}

// gcPercent is how far a server lets its heap grow between collections, unless GOGC says otherwise. Its live heap is small (tens
// of megabytes) beside what it allocates per second under load; measured on the embedded store, a job costs a fifth less
// processor time than at Go's default of 100.
const gcPercent = 200

// forceWithin is how long a second signal leaves for giving jobs back.
const forceWithin = 3 * time.Second

// forceExit ends the process if the orderly way takes too long after a second signal.
func forceExit(log *slog.Logger, s os.Signal, done <-chan struct{}) {
	select {
	case <-done:
	case <-time.After(forceWithin):
		log.Error("not stopped in time; exiting", "after", forceWithin)
		os.Exit(signalCode(s))
	}
}

// startError adds the next step to what commonly keeps a server from starting.
func startError(err error, c config.Config) error {
	switch {
	case errors.Is(err, syscall.EADDRINUSE):
		return &exitError{
			code: ExitFailed, err: fmt.Errorf("%s is in use by another program (another taskhost?)", c.Listen),
			hint: "take a free port: --listen 127.0.0.1:0",
		}
	case wire.SandboxBelow(err):
		return &exitError{code: ExitFailed, err: err, hint: "see what this machine can do: " + self() + " doctor   (or ask for less: wasm.sandbox)"}
	case wire.StoreInUse(err):
		return &exitError{code: ExitFailed, err: err, hint: "stop the other taskhost, or use another folder: --data-dir"}
	case errors.Is(err, wire.ErrRemoteWithoutLogin):
		return &exitError{
			code: ExitUsage, err: err,
			hint: "listen on 127.0.0.1, or allow it with --insecure-no-login (behind a proxy that has a login, or inside a container)",
		}
	}
	return err
}

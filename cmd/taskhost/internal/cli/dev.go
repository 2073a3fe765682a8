package cli

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/taskhost/taskhost/cmd/taskhost/internal/samples"
	"github.com/taskhost/taskhost/cmd/taskhost/internal/wire"
	"github.com/taskhost/taskhost/config"
)

// devDefaults differ from serve's in what a first try needs: data in a hidden folder, and quiet logs.
func devDefaults() config.Config {
	c := config.Default()
	c.DataDir = "./.taskhost"
	c.Log.Level, c.Log.Format = "warn", "text"
	c.Wasm.Sandbox = config.SandboxBest
	return c
}

func (a *App) devCommand() *cobra.Command {
	var f serverFlags
	base := devDefaults()
	cmd := &cobra.Command{
		Use:   "dev",
		Short: "Try taskhost: everything embedded, with sample handlers",
		Long: `Run a server to try taskhost with: on this machine only, without login, jobs in ` + base.DataDir + `, and sample handlers of the types ` +
			strings.Join(samples.Types(), ", ") + `. Not for production; see serve.`,
		Args: args(0, 0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			l, err := f.load(a, cmd, base)
			if err != nil {
				return err
			}
			if !wire.IsLoopback(l.Config.Listen) {
				return usagef("dev listens on this machine only; --listen must be a loopback address such as 127.0.0.1:7070, got %q (see serve)", l.Config.Listen)
			}
			for _, role := range []string{config.RoleAPI, config.RoleWorker} {
				if !l.Config.HasRole(role) {
					return usagef("dev needs the roles api and worker, got %s (see serve)", strings.Join(l.Config.Roles, ", "))
				}
			}
			var provided []wire.Provided
			for _, typ := range samples.Types() {
				provided = append(provided, wire.Provided{Type: typ, Module: samples.Module()})
			}
			log := slog.New(withoutSandboxNotice{newLogger(l.Config.Log, a.Err).Handler()})
			o := wire.Options{Config: l.Config, Log: log, Provided: provided, Commit: a.Commit}
			again := func() (*config.Loaded, error) { return f.load(a, cmd, base) }
			return a.serve(cmd.Context(), o, again, func(s *wire.Server, took time.Duration) { a.greet(s, l.Config, took) })
		},
	}
	f.register(cmd, base)
	return cmd
}

// withoutSandboxNotice drops what the parts log about the sandbox level: dev says it itself, in plain words.
type withoutSandboxNotice struct{ slog.Handler }

// Handle drops records with the attribute "sandbox".
func (h withoutSandboxNotice) Handle(ctx context.Context, r slog.Record) error {
	notice := false
	r.Attrs(func(at slog.Attr) bool {
		notice = at.Key == "sandbox"
		return !notice
	})
	if notice {
		return nil
	}
	return h.Handler.Handle(ctx, r)
}

// WithAttrs keeps dropping.
func (h withoutSandboxNotice) WithAttrs(attrs []slog.Attr) slog.Handler {
	return withoutSandboxNotice{h.Handler.WithAttrs(attrs)}
}

// WithGroup keeps dropping.
func (h withoutSandboxNotice) WithGroup(name string) slog.Handler {
	return withoutSandboxNotice{h.Handler.WithGroup(name)}
}

// greet says what is there and what to type next. It goes to stderr: stdout belongs to answers.
func (a *App) greet(s *wire.Server, c config.Config, took time.Duration) {
	a.say("taskhost %s dev: no login, loopback only, NOT for production; sandbox %s", a.version().Version, s.Sandbox())
	if s.Sandbox() == "off" {
		a.say("the kernel does not confine handlers: do not upload untrusted code (see: %s doctor)", self())
	}
	a.say("API %s/v1  docs %s/docs  data %s  handlers %s", s.URL(), s.URL(), c.DataDir, strings.Join(samples.Types(), " "))
	server := ""
	if s.URL() != defaultServer() {
		server = " --server " + s.URL()
	}
	a.say("ready in %.1f s; try: %s enqueue hello --data '{\"name\":\"Ada\"}' --wait%s", took.Seconds(), self(), server)
}

func defaultServer() string { return fmt.Sprintf("http://%s", config.Default().Listen) }

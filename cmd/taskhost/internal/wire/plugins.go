package wire

import (
	"context"
	"errors"
	"log/slog"
	"reflect"

	"github.com/taskhost/taskhost/config"
	"github.com/taskhost/taskhost/handlers"
	"github.com/taskhost/taskhost/handlers/plugin"
)

// openPlugins starts the runtime of the configured plugins; nil where no jobs run.
func openPlugins(c *config.Config, log *slog.Logger) (*plugin.Runtime, error) {
	if !c.HasRole(config.RoleWorker) {
		return nil, nil
	}
	return plugin.New(plugin.Options{DataDir: c.DataDir, Plugins: pluginSpecs(c), Limits: handlerLimits(c.Defaults), Logger: log.With("part", "plugin")})
}

func pluginSpecs(c *config.Config) []plugin.Spec {
	var specs []plugin.Spec
	for _, p := range c.Plugins {
		specs = append(specs, plugin.Spec{
			Types: p.Types, Command: p.Command, Args: p.Args, SHA256: p.SHA256, Files: p.Files, Env: p.Env, Dir: p.Dir,
			Instances: p.Instances, Concurrency: p.Concurrency, PlainSocket: p.MTLS != nil && !*p.MTLS,
			Grace: p.Grace, Silence: p.Silence, StartTimeout: p.StartTimeout,
			Config: p.Config, Limits: handlers.Limits{Timeout: p.Timeout},
		})
	}
	return specs
}

// ErrNoReload says that a process has nothing that could be replaced while it runs.
var ErrNoReload = errors.New("this process runs no jobs, so it has no plugins to replace")

// Reload puts the plugins of a changed configuration into force: those that differ, by their settings or their program, are started beside the
// old ones and take over, while running jobs finish. When one does not start, nothing changes. rest reports whether anything else in the
// configuration differs from the one in force; that needs a restart.
func (s *Server) Reload(ctx context.Context, c *config.Config) (rest bool, err error) {
	if s.plugins == nil {
		return false, ErrNoReload
	}
	if err := s.plugins.Replace(ctx, pluginSpecs(c)); err != nil {
		return false, err
	}
	now, next := s.o.Config, *c
	now.Plugins, next.Plugins = nil, nil
	return !reflect.DeepEqual(now, next), s.host.Catalog().Install(ctx, s.plugins.Versions())
}

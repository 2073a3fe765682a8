package cli

import (
	"context"
	"log/slog"
	"os"

	"github.com/taskhost/taskhost/cmd/taskhost/internal/wire"
	"github.com/taskhost/taskhost/config"
)

// loader reads the configuration anew, from where it came at the start.
type loader func() (*config.Loaded, error)

// reload reads the configuration anew on every SIGHUP and puts its plugins into force, until ctx ends. A configuration at fault, or a plugin that
// does not start, changes nothing.
func reload(ctx context.Context, log *slog.Logger, hangups <-chan os.Signal, s *wire.Server, load loader) {
	for {
		select {
		case <-hangups:
		case <-ctx.Done():
			return
		}
		l, err := load()
		if err != nil {
			log.Error("configuration not reloaded; the one in force stays", "error", err)
			continue
		}
		rest, err := s.Reload(ctx, &l.Config)
		if err != nil {
			log.Error("plugins not replaced; the ones in force stay", "error", err)
			continue
		}
		log.Info("plugins reloaded", "plugins", len(l.Config.Plugins))
		if rest {
			log.Warn("the configuration differs in more than its plugins; that takes effect with a restart")
		}
	}
}

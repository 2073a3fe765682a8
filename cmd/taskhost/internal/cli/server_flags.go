package cli

import (
	"github.com/spf13/cobra"

	"github.com/taskhost/taskhost/cmd/taskhost/internal/wire"
	"github.com/taskhost/taskhost/config"
)

// serverFlags are the flags of serve, dev and config that stand above the file.
type serverFlags struct {
	file string
}

func (f *serverFlags) register(cmd *cobra.Command, base config.Config) {
	flags := cmd.Flags()
	flags.StringVar(&f.file, "config", "", "configuration file: .yaml, .toml or .json ("+config.EnvFile+")")
	flags.String("listen", "", "address of the API; port 0 takes a free one (default "+base.Listen+")")
	flags.String("data-dir", "", "folder for everything that must survive (default "+base.DataDir+")")
	flags.String("store", "", "where jobs are kept (default "+base.Store+")")
	flags.String("log-level", "", "debug, info, warn or error (default "+base.Log.Level+")")
	flags.String("log-format", "", "text, json or auto (default "+base.Log.Format+")")
	complete(cmd, "log-level", "debug", "info", "warn", "error")
	complete(cmd, "log-format", "auto", "text", "json")
}

// load reads the configuration: flags over environment over file over base.
func (f *serverFlags) load(a *App, cmd *cobra.Command, base config.Config) (*config.Loaded, error) {
	given := map[string]string{}
	for key, flag := range map[string]string{
		"listen": "listen", "data_dir": "data-dir", "store": "store", "log.level": "log-level", "log.format": "log-format",
	} {
		if v := cmd.Flags().Lookup(flag); v.Changed {
			given[key] = v.Value.String()
		}
	}
	return config.Load(config.Source{
		File: firstOf(f.file, a.getenv(config.EnvFile)), Environ: a.Environ, Flags: given, Base: &base, Cron: wire.CheckCron,
	})
}

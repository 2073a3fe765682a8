package cli

import (
	"io"
	"log/slog"

	"github.com/taskhost/taskhost/config"
)

// newLogger logs as the configuration says: text on a terminal, JSON otherwise, unless it names one.
func newLogger(c config.Log, out io.Writer) *slog.Logger {
	level := slog.LevelInfo
	_ = level.UnmarshalText([]byte(c.Level)) // the configuration was checked
	o := &slog.HandlerOptions{Level: level}
	if c.Format == "text" || c.Format == "auto" && isTerminal(out) {
		return slog.New(slog.NewTextHandler(out, o))
	}
	return slog.New(slog.NewJSONHandler(out, o))
}

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
	o.ReplaceAttr = durationText
	return slog.New(slog.NewJSONHandler(out, o))
}

// durationText writes a duration as text such as "1.5s", as the text format does. JSON would have a bare number of nanoseconds.
func durationText(_ []string, a slog.Attr) slog.Attr {
	if a.Value.Kind() == slog.KindDuration {
		a.Value = slog.StringValue(a.Value.Duration().String())
	}
	return a
}

package guest

import (
	"context"
	"log/slog"
	"strings"
	"sync"
)

// Level is the level of a line in the job's log.
type Level int32

// The levels of the contract.
const (
	LevelDebug Level = 0
	LevelInfo  Level = 1
	LevelWarn  Level = 2
	LevelError Level = 3
)

// Log adds a line to the job's log. Beyond the host's log limit lines are dropped, and the log says so. Text that is not
// UTF-8 is mended.
func (j *Job) Log(level Level, message string) {
	j.host.Log(int32(level), strings.ToValidUTF8(message, "\uFFFD"))
}

// Logger returns a structured logger that writes to the job's log, from level debug up: the message, then key=value for
// every attribute. The host adds the time.
func (j *Job) Logger() *slog.Logger { return slog.New(j.LogHandler(nil)) }

// LogHandler is the slog.Handler behind [Job.Logger] with options: the lowest level (default debug), the source position,
// replacement of attributes. The line carries neither time nor level; the host keeps both beside it.
func (j *Job) LogHandler(opts *slog.HandlerOptions) slog.Handler {
	o := slog.HandlerOptions{Level: slog.LevelDebug}
	if opts != nil {
		o.AddSource, o.ReplaceAttr = opts.AddSource, opts.ReplaceAttr
		if opts.Level != nil {
			o.Level = opts.Level
		}
	}
	custom := o.ReplaceAttr
	o.ReplaceAttr = func(groups []string, a slog.Attr) slog.Attr {
		if len(groups) == 0 && (a.Key == slog.TimeKey || a.Key == slog.LevelKey || a.Key == slog.MessageKey) {
			return slog.Attr{} // the handler adds the message itself, unquoted
		}
		if custom != nil {
			return custom(groups, a)
		}
		return a
	}
	line := &logLine{}
	return &logHandler{job: j, line: line, attrs: slog.NewTextHandler(&line.attrs, &o)}
}

// logHandler formats a record's attributes with a text handler into line, which handlers derived from it share.
type logHandler struct {
	job   *Job
	line  *logLine
	attrs slog.Handler
}

type logLine struct {
	mu    sync.Mutex
	attrs strings.Builder
}

func (h *logHandler) Enabled(ctx context.Context, level slog.Level) bool {
	return h.attrs.Enabled(ctx, level)
}

func (h *logHandler) Handle(ctx context.Context, r slog.Record) error {
	h.line.mu.Lock()
	defer h.line.mu.Unlock()
	h.line.attrs.Reset()
	if err := h.attrs.Handle(ctx, r); err != nil {
		return err
	}
	text := r.Message
	if attrs := strings.TrimSpace(h.line.attrs.String()); attrs != "" {
		text += " " + attrs
	}
	h.job.Log(levelOf(r.Level), text)
	return nil
}

func (h *logHandler) WithAttrs(attrs []slog.Attr) slog.Handler {
	return &logHandler{h.job, h.line, h.attrs.WithAttrs(attrs)}
}

func (h *logHandler) WithGroup(name string) slog.Handler {
	return &logHandler{h.job, h.line, h.attrs.WithGroup(name)}
}

func levelOf(l slog.Level) Level {
	switch {
	case l >= slog.LevelError:
		return LevelError
	case l >= slog.LevelWarn:
		return LevelWarn
	case l >= slog.LevelInfo:
		return LevelInfo
	}
	return LevelDebug
}

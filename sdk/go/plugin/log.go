package plugin

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"time"

	pb "github.com/taskhost/taskhost/sdk/go/plugin/internal/handlerpb"
	"google.golang.org/protobuf/proto"
)

// Level is the level of a line in the job's log.
type Level int32

// The levels.
const (
	LevelDebug Level = 0
	LevelInfo  Level = 1
	LevelWarn  Level = 2
	LevelError Level = 3
)

// Log adds a line to the job's log. Lines beyond 4 KiB are cut; beyond the log limit of the attempt they are dropped, and the log says
// so. It never waits for the host.
func (j *Job) Log(level Level, message string) {
	message = cut(message, maxLogMessage)
	level = min(max(level, LevelDebug), LevelError)
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.over || j.truncated {
		return
	}
	if j.logged += max(len(message), minLineCost); j.logged > int(j.limits.GetLogBytes()) {
		j.truncated = true
		level, message = LevelWarn, fmt.Sprintf("log truncated: it is over its limit of %d bytes", j.limits.GetLogBytes())
	}
	j.s.logs.add(&pb.LogLine{Id: j.id, AtUnixNano: time.Now().UnixNano(), Level: uint32(level), Message: message})
}

// Logger returns a structured logger that writes to the job's log, from level debug up: the message, then key=value for every attribute.
func (j *Job) Logger() *slog.Logger {
	text := &strings.Builder{}
	handler := slog.NewTextHandler(text, &slog.HandlerOptions{Level: slog.LevelDebug, ReplaceAttr: func(groups []string, a slog.Attr) slog.Attr {
		if len(groups) == 0 && (a.Key == slog.TimeKey || a.Key == slog.LevelKey || a.Key == slog.MessageKey) {
			return slog.Attr{} // the message stands alone, and the host keeps the other two beside it
		}
		return a
	}})
	return slog.New(&logHandler{job: j, line: &logText{text: text}, attrs: handler})
}

// logHandler formats the attributes of a record with a text handler into line, which the handlers derived from it share.
type logHandler struct {
	job   *Job
	line  *logText
	attrs slog.Handler
}

type logText struct {
	mu   sync.Mutex
	text *strings.Builder
}

func (h *logHandler) Enabled(context.Context, slog.Level) bool { return true }

func (h *logHandler) Handle(ctx context.Context, r slog.Record) error {
	h.line.mu.Lock()
	defer h.line.mu.Unlock()
	h.line.text.Reset()
	if err := h.attrs.Handle(ctx, r); err != nil {
		return err
	}
	message := r.Message
	if attrs := strings.TrimSpace(h.line.text.String()); attrs != "" {
		message += " " + attrs
	}
	level := LevelDebug
	switch {
	case r.Level >= slog.LevelError:
		level = LevelError
	case r.Level >= slog.LevelWarn:
		level = LevelWarn
	case r.Level >= slog.LevelInfo:
		level = LevelInfo
	}
	h.job.Log(level, message)
	return nil
}

func (h *logHandler) WithAttrs(attrs []slog.Attr) slog.Handler {
	return &logHandler{h.job, h.line, h.attrs.WithAttrs(attrs)}
}

func (h *logHandler) WithGroup(name string) slog.Handler {
	return &logHandler{h.job, h.line, h.attrs.WithGroup(name)}
}

// Bounds of the log lines that wait to be sent.
const (
	ringBytes = 4 << 20
	lineCost  = 64 // charged for each line besides its text
)

// logRing holds log lines until they are sent. Adding never waits: when the host does not keep up, the newest lines are lost and counted.
type logRing struct {
	mu      sync.Mutex
	lines   []*pb.LogLine
	bytes   int
	dropped uint64 // since the last batch
	seq     uint64 // lines ever added, lost ones too
	wake    chan struct{}
}

func newLogRing() *logRing { return &logRing{wake: make(chan struct{}, 1)} }

func (l *logRing) add(line *pb.LogLine) {
	l.mu.Lock()
	l.seq++
	if cost := len(line.GetMessage()) + lineCost; l.bytes+cost > ringBytes {
		l.dropped++
	} else {
		l.bytes += cost
		l.lines = append(l.lines, line)
	}
	l.mu.Unlock()
	wake(l.wake)
}

// sequence is how many lines were ever added.
func (l *logRing) sequence() uint64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.seq
}

// batch takes lines that fit into one message; nil when there are none. Lines lost are counted after the lines that came before them.
func (l *logRing) batch() *pb.LogBatch {
	l.mu.Lock()
	defer l.mu.Unlock()
	room, n := maxMessage-64, 0
	for ; n < len(l.lines); n++ {
		if room -= proto.Size(l.lines[n]) + 4; room < 0 && n > 0 {
			break
		}
		l.bytes -= len(l.lines[n].GetMessage()) + lineCost
	}
	b := &pb.LogBatch{Lines: l.lines[:n:n]}
	if l.lines = l.lines[n:]; len(l.lines) == 0 {
		l.lines = nil
		b.Dropped, l.dropped = l.dropped, 0
	}
	if len(b.Lines) == 0 && b.Dropped == 0 {
		return nil
	}
	return b
}

func (l *logRing) run(ctx context.Context, send func(*pb.LogBatch) error) error {
	for {
		if b := l.batch(); b != nil {
			if err := send(b); err != nil {
				return err
			}
			continue
		}
		select {
		case <-l.wake:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

func wake(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

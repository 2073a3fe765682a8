package httpapi

import (
	"context"
	"encoding/json"
	"net/http"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/taskhost/taskhost/queue"
)

// LogLine is one line of a job's log.
type LogLine struct {
	Seq     int64     `json:"seq" doc:"rises within a job"`
	Run     int       `json:"run"`
	Attempt int       `json:"attempt"`
	At      Timestamp `json:"at"`
	Level   string    `json:"level" enum:"debug,info,warn,error"`
	Message string    `json:"message" doc:"control characters are escaped"`
}

// LogList is a part of a job's log.
type LogList struct {
	Lines     []LogLine `json:"lines"`
	Truncated bool      `json:"truncated" doc:"an attempt wrote more than is kept"`
	NextAfter int64     `json:"next_after" doc:"after of the next part"`
}

// LogEnd is the last line of a followed log whose job is finished.
type LogEnd struct {
	End       bool        `json:"end"`
	State     queue.State `json:"state"`
	Truncated bool        `json:"truncated"`
}

type logsInput struct {
	JobPath
	After  string `query:"after" doc:"lines with a larger seq only; default 0"`
	Limit  string `query:"limit" doc:"1 to 1000 lines; default 1000. Not with follow"`
	Follow string `query:"follow" enum:"true,false" doc:"stream one JSON object per line (application/x-ndjson) until the job is finished"`
}

// logsAnswer is a LogList, or a stream.
type logsAnswer struct {
	Body func(huma.Context)
}

// Bounds of logs.
const (
	logPage = 1000
	// logBeat is how often a silent stream sends an empty line, so that both ends learn that the other is gone.
	logBeat = 15 * time.Second
	// streamWriteTimeout is how long a reader may let one write wait.
	streamWriteTimeout = 30 * time.Second
)

func (s *Server) logRoutes() {
	register(s, route{
		id: "get-logs", method: http.MethodGet, path: "/v1/jobs/{id}/logs", tag: "jobs", summary: "The log of a job",
		description: "With follow=true the answer is application/x-ndjson: the lines there are, then every new line as it is written, and " +
			`{"end":true,"state":…} when the job is finished. An empty line every 15 s keeps the connection alive; it carries nothing.`,
	}, s.getLogs)
	op := s.api.OpenAPI().Paths["/v1/jobs/{id}/logs"].Get
	op.Responses["200"].Content = map[string]*huma.MediaType{
		"application/json": {Schema: schemaOf[LogList](s)},
		"application/x-ndjson": {Schema: &huma.Schema{AnyOf: []*huma.Schema{
			schemaOf[LogLine](s), schemaOf[LogEnd](s),
		}}},
	}
}

func (s *Server) getLogs(ctx context.Context, in *logsInput) (*logsAnswer, error) {
	after, limit := 0, logPage
	var err error
	if in.After != "" {
		if after, err = parseInteger("after", in.After, 0, 1<<53); err != nil {
			return nil, err
		}
	}
	follow := in.Follow == "true" // bareParam too
	if in.Limit != "" {
		if follow {
			return nil, invalid("limit", "does not go with follow")
		}
		if limit, err = parseInteger("limit", in.Limit, 1, logPage); err != nil {
			return nil, err
		}
	}
	if follow {
		return s.followLogs(ctx, in, int64(after))
	}
	page, err := s.opt.Store.JobLogs(ctx, in.tenant, in.ID, int64(after), limit)
	if err != nil {
		return nil, s.noJob(in.ID, err)
	}
	list := LogList{Lines: viewLines(page.Lines), Truncated: page.Truncated, NextAfter: int64(after)}
	if n := len(page.Lines); n > 0 {
		list.NextAfter = page.Lines[n-1].Seq
	}
	body, err := marshalPlain(list)
	if err != nil {
		return nil, err
	}
	return &logsAnswer{Body: func(c huma.Context) {
		c.SetHeader("Content-Type", "application/json")
		c.SetStatus(http.StatusOK)
		_, _ = c.BodyWriter().Write(append(body, '\n')) // a reader that is gone needs no answer
	}}, nil
}

func viewLines(lines []queue.LogLine) []LogLine {
	list := make([]LogLine, len(lines))
	for i, l := range lines {
		list[i] = LogLine{Seq: l.Seq, Run: l.Run, Attempt: l.Attempt, At: Timestamp{l.At}, Level: l.Level, Message: l.Message}
	}
	return list
}

// followLogs streams the log. What can be refused is refused before the stream begins.
func (s *Server) followLogs(ctx context.Context, in *logsInput, after int64) (*logsAnswer, error) {
	watch, err := s.opt.Store.WatchJob(ctx, in.tenant, in.ID)
	if err != nil {
		return nil, s.noJob(in.ID, err)
	}
	if _, err := s.opt.Store.GetJob(ctx, in.tenant, in.ID); err != nil {
		watch.Stop()
		return nil, s.noJob(in.ID, err)
	}
	return &logsAnswer{Body: func(c huma.Context) {
		defer watch.Stop()
		in.bodyDone() // the stream may last
		c.SetHeader("Content-Type", "application/x-ndjson")
		c.SetHeader("Cache-Control", "no-store")
		c.SetHeader("X-Accel-Buffering", "no")
		c.SetStatus(http.StatusOK)
		stream := logStream{s: s, ctx: ctx, tenant: in.tenant, id: in.ID, after: after, w: in.writer, control: http.NewResponseController(in.writer)}
		stream.run(watch)
	}}, nil
}

// logStream is one followed log.
type logStream struct {
	s          *Server
	ctx        context.Context
	tenant, id string
	after      int64
	truncated  bool
	w          http.ResponseWriter
	control    *http.ResponseController
}

// run sends until the job is finished, the reader is gone, the job is deleted or the server stops. An error ends the
// stream without its last line, by which the reader knows.
func (l *logStream) run(watch queue.Watch) {
	beat := time.NewTicker(logBeat)
	defer beat.Stop()
	for {
		ended, err := l.step()
		if ended || err != nil {
			return
		}
		select {
		case _, open := <-watch.C:
			if !open {
				return
			}
		case <-beat.C:
			if l.write([]byte("\n")) != nil {
				return
			}
		case <-l.ctx.Done():
			return
		case <-l.s.stopping.Done():
			return
		}
	}
}

// step sends what is new. The state is read before the lines: when it is terminal, no line comes after those.
func (l *logStream) step() (ended bool, err error) {
	job, err := l.s.opt.Store.GetJob(l.ctx, l.tenant, l.id)
	if err != nil {
		return false, err
	}
	for {
		page, err := l.s.opt.Store.JobLogs(l.ctx, l.tenant, l.id, l.after, logPage)
		if err != nil {
			return false, err
		}
		l.truncated = l.truncated || page.Truncated
		var batch []byte
		for _, line := range viewLines(page.Lines) {
			l.after = line.Seq
			if batch, err = appendLine(batch, line); err != nil {
				return false, err
			}
		}
		if err := l.write(batch); err != nil {
			return false, err
		}
		if len(page.Lines) < logPage {
			break
		}
	}
	if !job.State.Terminal() {
		return false, nil
	}
	end, err := appendLine(nil, LogEnd{End: true, State: job.State, Truncated: l.truncated})
	if err != nil {
		return false, err
	}
	return true, l.write(end)
}

func appendLine(b []byte, v any) ([]byte, error) {
	text, err := json.Marshal(v)
	if err != nil {
		return b, err
	}
	return append(append(b, text...), '\n'), nil
}

// write sends and flushes; an empty write only flushes, so that the headers arrive.
func (l *logStream) write(b []byte) error {
	// An error means that the connection has no deadlines (a test recorder).
	_ = l.control.SetWriteDeadline(time.Now().Add(streamWriteTimeout))
	if len(b) > 0 {
		if _, err := l.w.Write(b); err != nil {
			return err
		}
	}
	return l.control.Flush()
}

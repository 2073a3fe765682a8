package httpapi

import (
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"strings"
	"time"

	"github.com/taskhost/taskhost/host/httpapi/jsonin"
)

// Times within which a body must have arrived.
const (
	bodyReadTimeout   = time.Minute
	moduleReadTimeout = 5 * time.Minute
)

// errBodyBroken: the connection ended before the announced body.
var errBodyBroken = errors.New("request body cut short")

// bodySizeError says that a body is over its limit. Got is exact when the request announced it, else what was read.
type bodySizeError struct {
	max, got int64
	exact    bool
}

func (e *bodySizeError) Error() string {
	if e.exact {
		return fmt.Sprintf("body: %d bytes are over the limit of %d bytes", e.got, e.max)
	}
	return fmt.Sprintf("body: more than %d bytes are over the limit of %d bytes", e.got, e.max)
}

// bodyReader reads a request body up to a limit that may be raised while reading.
type bodyReader struct {
	r         io.Reader
	read      int64
	limit     int64
	announced int64 // Content-Length, -1 = not known
}

// body prepares to read the body of the request: nothing is read when it announces more than most bytes. limit, at most
// most, is the limit to begin with.
func (c *call) body(limit, most int64, timeout time.Duration) (*bodyReader, error) {
	if coding := c.request.Header.Get("Content-Encoding"); coding != "" && !strings.EqualFold(coding, "identity") {
		return nil, newProblem(CodeUnsupportedMediaType, "Content-Encoding %.80q is not supported; send the body as it is", coding)
	}
	if c.request.ContentLength > most {
		return nil, &bodySizeError{max: most, got: c.request.ContentLength, exact: true}
	}
	// An error means that the connection has no deadlines (a test recorder); then there is no slow sender either.
	_ = http.NewResponseController(c.writer).SetReadDeadline(time.Now().Add(timeout))
	return &bodyReader{r: c.request.Body, limit: limit, announced: c.request.ContentLength}, nil
}

// bodyDone lifts the deadline of a body that was read whole, which would otherwise end the request while it waits for a job.
// One that is refused half-way keeps it, so that a slow sender cannot hold the connection.
func (c *call) bodyDone() {
	_ = http.NewResponseController(c.writer).SetReadDeadline(time.Time{})
}

func (b *bodyReader) Read(p []byte) (int, error) {
	if b.read > b.limit {
		return 0, b.tooLarge()
	}
	if room := b.limit - b.read + 1; int64(len(p)) > room {
		p = p[:room]
	}
	n, err := b.r.Read(p)
	b.read += int64(n)
	if b.read > b.limit {
		return n - int(b.read-b.limit), b.tooLarge()
	}
	if err != nil && errors.Is(err, io.ErrUnexpectedEOF) {
		err = fmt.Errorf("%w: %w", errBodyBroken, err)
	}
	return n, err
}

func (b *bodyReader) tooLarge() error {
	if b.announced > b.limit {
		return &bodySizeError{max: b.limit, got: b.announced, exact: true}
	}
	return &bodySizeError{max: b.limit, got: b.limit}
}

// readAll reads a whole raw body of at most limit bytes.
func (c *call) readAll(limit int64, timeout time.Duration) ([]byte, error) {
	b, err := c.body(limit, limit, timeout)
	if err != nil {
		return nil, err
	}
	var data []byte
	if b.announced < 0 {
		data, err = io.ReadAll(b)
	} else {
		data = make([]byte, b.announced)
		_, err = io.ReadFull(b, data)
	}
	if err != nil {
		return nil, err
	}
	c.bodyDone()
	return data, nil
}

// Bounds of a JSON body that is not jobs.
const smallBodyBytes = 64 << 10

// scan hands a Scanner on a small JSON body to read, and checks that nothing follows. An absent body is an error unless
// optional; read is not called then.
func (c *call) scan(optional bool, limit int64, read func(*jsonin.Scanner) error) error {
	if optional && c.request.ContentLength == 0 {
		return nil
	}
	if err := c.wantJSON(); err != nil {
		return err
	}
	b, err := c.body(limit, limit, bodyReadTimeout)
	if err != nil {
		return err
	}
	s := jsonin.New(b)
	if err := read(s); err != nil {
		return err
	}
	if err := s.End(); err != nil {
		return err
	}
	c.bodyDone()
	return nil
}

// wantJSON refuses a body that does not say it is JSON.
func (c *call) wantJSON() error {
	if t := c.contentType(); t == "application/json" {
		return nil
	} else if t == "" {
		return newProblem(CodeUnsupportedMediaType, "the request has no Content-Type; this route takes application/json")
	}
	return newProblem(CodeUnsupportedMediaType, "Content-Type %.80q is not supported; this route takes application/json",
		c.request.Header.Get("Content-Type"))
}

// contentType is the media type of the body in lower case, "" when there is none that can be read.
func (c *call) contentType() string {
	t, _, err := mime.ParseMediaType(c.request.Header.Get("Content-Type"))
	if err != nil {
		return ""
	}
	return strings.ToLower(t)
}

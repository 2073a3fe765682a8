// Package scenarios is the test handler of abi/testdata/scenarios.json: the payload's first word says what to do.
package scenarios

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/taskhost/taskhost/sdk/go/guest"
)

// Handle plays one scenario.
func Handle(ctx context.Context, job *guest.Job) ([]byte, error) {
	word, rest, _ := bytes.Cut(job.Payload(), []byte(" "))
	switch string(word) {
	case "echo":
		return rest, nil
	case "nothing":
		return nil, nil
	case "stream":
		_, err := io.CopyBuffer(struct{ io.Writer }{job.Output()}, struct{ io.Reader }{job.Input()}, make([]byte, 7))
		return nil, err
	case "error":
		return nil, errors.New("plain")
	case "retry-after":
		return nil, guest.RetryAfter(1500*time.Millisecond, errors.New("busy"))
	case "permanent":
		return nil, guest.Permanent(errors.New("bad width 0"))
	case "defer":
		return nil, guest.Defer(250 * time.Millisecond)
	case "yield":
		return nil, guest.Yield()
	case "panic":
		panic("boom")
	case "bad-text":
		return nil, errors.New("bad \xff byte")
	case "about":
		trace, _ := job.Header("trace")
		size, _ := job.Config("SIZE")
		return fmt.Appendf(nil, "%s %d %d %s %s", job.Type(), job.Attempt(), job.MaxAttempts(), trace, size), nil
	case "absent":
		_, header := job.Header("trace")
		_, config := job.Config("SIZE")
		checkpoint, err := job.Checkpoint()
		if header || config || checkpoint != nil {
			return nil, errors.New("something is there")
		}
		return []byte("no header, no config, no checkpoint"), err
	case "save":
		return nil, errors.Join(job.SaveCheckpoint([]byte("row 10")), errors.New("saved"))
	case "resume":
		return job.Checkpoint()
	case "log":
		job.Log(guest.LevelDebug, "a")
		job.Logger().Info("b")
		job.Logger().Warn("c")
		job.Log(guest.LevelError, "d \xff")
		return nil, nil
	case "progress":
		job.Progress(1, 4, "first")
		job.Progress(3, 4, "third")
		return nil, nil
	case "oversize":
		_, _ = job.Output().Write([]byte("123456789"))
		return nil, nil
	case "deadline":
		if deadline, ok := ctx.Deadline(); !ok || !time.Now().Before(deadline) || job.ShouldStop() || ctx.Err() != nil {
			return nil, errors.New("no time left")
		}
		return []byte("ahead"), nil
	}
	return nil, guest.Permanent(fmt.Errorf("unknown scenario %q", word))
}

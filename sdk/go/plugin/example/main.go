// A native plugin with two handlers: text.upper answers in capitals, text.count counts words and takes its time.
package main

import (
	"bytes"
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/taskhost/taskhost/sdk/go/plugin"
)

func main() {
	plugin.Serve(plugin.Handlers{
		"text.upper": upper,
		"text.count": plugin.JSON(count),
	})
}

func upper(_ context.Context, job *plugin.Job) ([]byte, error) {
	if len(job.Payload()) == 0 {
		return nil, plugin.Permanent(fmt.Errorf("payload is empty"))
	}
	job.Logger().Info("upper", "bytes", len(job.Payload()), "attempt", job.Attempt())
	return bytes.ToUpper(job.Payload()), nil
}

type text struct {
	Text    string `json:"text"`
	PauseMS int    `json:"pause_ms"` // after each word
}

type counts struct {
	Words int `json:"words"`
}

func count(ctx context.Context, job *plugin.Job, in text) (counts, error) {
	words := strings.Fields(in.Text)
	for i := range words {
		select {
		case <-time.After(time.Duration(in.PauseMS) * time.Millisecond):
		case <-ctx.Done(): // the deadline, a cancel, a host that drains
			return counts{}, context.Cause(ctx)
		}
		job.Progress(int64(i+1), int64(len(words)), "")
	}
	return counts{Words: len(words)}, nil
}

package cli

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/taskhost/taskhost/config"
)

// Durations have a unit in every format, and also inside a group.
func TestLogsWriteDurationsAsText(t *testing.T) {
	t.Parallel()
	for format, want := range map[string][]string{
		"json": {`"drain":"30s"`, `"job":{"took":"5ms"}`, `"n":7`},
		"text": {"drain=30s", "job.took=5ms", "n=7"},
	} {
		var out bytes.Buffer
		newLogger(config.Log{Level: "info", Format: format}, &out).With("drain", 30*time.Second).
			Info("draining", slog.Group("job", slog.Duration("took", 5*time.Millisecond)), "n", 7)
		for _, w := range want {
			if !strings.Contains(out.String(), w) {
				t.Errorf("%s: no %s in %s", format, w, out.String())
			}
		}
	}
}

package outage

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/taskhost/taskhost/queue"
)

func TestGateLogsOncePerChangeAndBacksOff(t *testing.T) {
	var out bytes.Buffer
	g := Gate{Log: slog.New(slog.NewTextHandler(&out, nil)), What: "reserve jobs", Random: func() float64 { return 0 }}
	if !g.Open() {
		t.Fatal("closed before any failure")
	}
	var last time.Duration
	for range 20 {
		d := g.Failed(queue.ErrUnavailable)
		if d < last || d > 5*time.Second {
			t.Fatalf("waits %s after %s", d, last)
		}
		last = d
	}
	if g.Open() || last != 5*time.Second {
		t.Errorf("open %t, last wait %s; want closed, 5s", g.Open(), last)
	}
	g.OK()
	g.OK()
	if !g.Open() || g.Failed(errors.New("x")) != 50*time.Millisecond {
		t.Error("the backoff does not begin anew")
	}
	if n := strings.Count(out.String(), "\n"); n != 3 { // failed, answers again, failed
		t.Errorf("%d log lines, want 3:\n%s", n, &out)
	}
}

func TestSleepEndsWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cause := errors.New("enough")
		ctx, cancel := context.WithCancelCause(t.Context())
		time.AfterFunc(time.Second, func() { cancel(cause) })
		begin := time.Now()
		if err := Sleep(ctx, time.Hour); !errors.Is(err, cause) || time.Since(begin) != time.Second {
			t.Errorf("got %v after %s", err, time.Since(begin))
		}
		if err := Sleep(t.Context(), time.Hour); err != nil {
			t.Error(err)
		}
	})
}

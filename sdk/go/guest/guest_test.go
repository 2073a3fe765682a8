package guest_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/taskhost/taskhost/sdk/go/guest"
	"github.com/taskhost/taskhost/sdk/go/guest/guesttest"
)

func returning(err error) guest.Handler {
	return func(context.Context, *guest.Job) ([]byte, error) { return []byte("result"), err }
}

func TestErrorsBecomeVerdicts(t *testing.T) {
	t.Parallel()
	cause := errors.New("the mirror is busy")
	for _, c := range []struct {
		name    string
		err     error
		outcome guesttest.Outcome
		after   time.Duration
		message string
	}{
		{"none", nil, guesttest.Done, guest.ByPolicy, ""},
		{"plain", cause, guesttest.Retry, guest.ByPolicy, "the mirror is busy"},
		{"retry", guest.Retry(cause), guesttest.Retry, guest.ByPolicy, "the mirror is busy"},
		{"retry of nothing", guest.Retry(nil), guesttest.Done, guest.ByPolicy, ""},
		{"retry after", guest.RetryAfter(1500*time.Millisecond, cause), guesttest.Retry, 1500 * time.Millisecond, "the mirror is busy"},
		{"retry after rounds up", guest.RetryAfter(time.Microsecond, cause), guesttest.Retry, time.Millisecond, "the mirror is busy"},
		{"retry at once", guest.RetryAfter(-time.Second, cause), guesttest.Retry, 0, "the mirror is busy"},
		{"permanent", guest.Permanent(cause), guesttest.Permanent, guest.ByPolicy, "the mirror is busy"},
		{"permanent of nothing", guest.Permanent(nil), guesttest.Done, guest.ByPolicy, ""},
		{"wrapped", fmt.Errorf("page 3: %w", guest.Permanent(cause)), guesttest.Permanent, guest.ByPolicy, "page 3: the mirror is busy"},
		{"outermost decides", guest.Retry(guest.Permanent(cause)), guesttest.Retry, guest.ByPolicy, "the mirror is busy"},
		{"defer", guest.Defer(2 * time.Second), guesttest.Deferred, 2 * time.Second, "deferred for 2s"},
		{"yield", guest.Yield(), guesttest.Deferred, 0, "yielded"},
		{"not UTF-8", errors.New("bad \xff byte"), guesttest.Retry, guest.ByPolicy, "bad \uFFFD byte"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			got := guesttest.Run(returning(c.err), guesttest.Job{})
			if got.Outcome != c.outcome || got.RetryAfter != c.after || got.Message != c.message {
				t.Errorf("got %s after %v %q, want %s after %v %q", got.Outcome, got.RetryAfter, got.Message, c.outcome, c.after, c.message)
			}
		})
	}
	if !errors.Is(guest.Permanent(cause), cause) {
		t.Error("Permanent hides its cause from errors.Is")
	}
}

func TestPanicIsRetriedWithItsTextAndStack(t *testing.T) {
	t.Parallel()
	for _, value := range []any{"bad width 0", guest.Permanent(errors.New("bad width 0"))} {
		got := guesttest.Run(func(context.Context, *guest.Job) ([]byte, error) { panic(value) }, guesttest.Job{})
		if got.Outcome != guesttest.Retry || got.Message != "panic: bad width 0" {
			t.Errorf("panic(%T): got %s %q", value, got.Outcome, got.Message)
		}
		var log strings.Builder
		for _, line := range got.Log {
			log.WriteString(line.Message + "\n")
		}
		if !strings.Contains(log.String(), "guest_test.go:") {
			t.Errorf("the log does not show where the panic was:\n%s", log.String())
		}
	}
}

func TestModuleWithoutHandlerFailsPermanently(t *testing.T) {
	t.Parallel()
	got := guesttest.Run(nil, guesttest.Job{})
	if got.Outcome != guesttest.Permanent || !strings.Contains(got.Message, "guest.Handle") {
		t.Errorf("got %s %q", got.Outcome, got.Message)
	}
}

func TestJSON(t *testing.T) {
	t.Parallel()
	type in struct{ Name string }
	type out struct {
		Greeting string `json:"greeting"`
	}
	greet := guest.JSON(func(_ context.Context, _ *guest.Job, in in) (out, error) {
		if in.Name == "nobody" {
			return out{}, errors.New("nobody is there")
		}
		return out{"Hello, " + in.Name}, nil
	})
	for _, c := range []struct {
		payload string
		outcome guesttest.Outcome
		want    string
	}{
		{`{"name":"Ada","extra":1}`, guesttest.Done, `{"greeting":"Hello, Ada"}`},
		{`{"name":"nobody"}`, guesttest.Retry, "nobody is there"},
		{``, guesttest.Permanent, "payload is empty, want JSON"},
		{`{"name":`, guesttest.Permanent, "payload: unexpected end of JSON input"},
	} {
		got := guesttest.Run(greet, guesttest.Job{Payload: []byte(c.payload)})
		if text := string(got.Output) + got.Message; got.Outcome != c.outcome || text != c.want {
			t.Errorf("%s: got %s %q, want %s %q", c.payload, got.Outcome, text, c.outcome, c.want)
		}
	}
	unfit := guest.JSON(func(context.Context, *guest.Job, any) (func(), error) { return func() {}, nil })
	if got := guesttest.Run(unfit, guesttest.Job{Payload: []byte("1")}); got.Outcome != guesttest.Permanent {
		t.Errorf("a result that cannot be JSON: got %s %q", got.Outcome, got.Message)
	}
}

func TestJobShowsWhatTheHostKnows(t *testing.T) {
	t.Parallel()
	deadline := time.Now().Add(time.Hour).Truncate(time.Millisecond)
	long := strings.Repeat("x", 5000)
	got := guesttest.Run(func(ctx context.Context, job *guest.Job) ([]byte, error) {
		trace, ok := job.Header("traceparent")
		_, absent := job.Header("absent")
		size, granted := job.Config("SIZE")
		if d, has := ctx.Deadline(); !has || !d.Equal(deadline) || !job.Deadline().Equal(deadline) {
			t.Errorf("deadline %v and %v, want %v", d, job.Deadline(), deadline)
		}
		if !job.HostHas("log") || job.HostHas("teleport") {
			t.Error("HostHas")
		}
		return fmt.Append(nil, job.ID(), job.Tenant(), job.Queue(), job.Type(), job.Attempt(), job.MaxAttempts(),
			trace == long, ok, absent, size, granted, string(job.Payload())), nil
	}, guesttest.Job{
		ID: "job_1", Tenant: "acme", Queue: "q", Type: "t", Attempt: 2, MaxAttempts: 5, Deadline: deadline, Payload: []byte("p"),
		Headers: map[string]string{"traceparent": long}, Config: map[string]string{"SIZE": "64"},
	})
	if want := fmt.Sprint("job_1", "acme", "q", "t", 2, 5, true, true, false, "64", true, "p"); string(got.Output) != want {
		t.Errorf("got  %s\nwant %s", got.Output, want)
	}
}

func TestStreams(t *testing.T) {
	t.Parallel()
	payload := strings.Repeat("0123456789", 50_000)
	upper := func(_ context.Context, job *guest.Job) ([]byte, error) {
		if _, err := io.Copy(job.Output(), job.Input()); err != nil {
			return nil, err
		}
		return []byte("end"), nil
	}
	got := guesttest.Run(upper, guesttest.Job{Payload: []byte(payload)})
	if got.Outcome != guesttest.Done || string(got.Output) != payload+"end" {
		t.Errorf("got %s, %d bytes, want %d", got.Outcome, len(got.Output), len(payload)+3)
	}
	got = guesttest.Run(upper, guesttest.Job{Payload: []byte(payload), ResultLimit: 100_000})
	if got.Outcome != guesttest.Permanent {
		t.Errorf("result over its limit: got %s", got.Outcome)
	}
	careless := func(_ context.Context, job *guest.Job) ([]byte, error) {
		_, _ = job.Output().Write(make([]byte, 10))
		return nil, nil
	}
	host := guesttest.NewHost(guesttest.Job{ResultLimit: 1})
	if code := guest.Serve(host, careless); code != 2 {
		t.Errorf("a handler that ignores a failed write returned %d, want 2: its result is not whole", code)
	}
}

func TestCheckpoint(t *testing.T) {
	t.Parallel()
	resume := func(_ context.Context, job *guest.Job) ([]byte, error) {
		last, err := job.Checkpoint()
		if err != nil {
			return nil, err
		}
		if last == nil {
			return nil, errors.Join(job.SaveCheckpoint([]byte("half")), errors.New("interrupted"))
		}
		return append(last, " and rest"...), nil
	}
	first := guesttest.Run(resume, guesttest.Job{})
	if first.Outcome != guesttest.Retry || string(first.Checkpoint) != "half" {
		t.Fatalf("first attempt: %+v", first)
	}
	second := guesttest.Run(resume, guesttest.Job{Attempt: 2, Checkpoint: first.Checkpoint})
	if string(second.Output) != "half and rest" {
		t.Errorf("second attempt: %+v", second)
	}
	guesttest.Run(func(_ context.Context, job *guest.Job) ([]byte, error) {
		if err := job.SaveCheckpoint(make([]byte, 9)); !errors.Is(err, guest.ErrTooLarge) {
			t.Errorf("checkpoint over its limit: %v", err)
		}
		return nil, nil
	}, guesttest.Job{CheckpointLimit: 8})
}

func TestContextLearnsToStop(t *testing.T) {
	t.Parallel()
	asked := 0
	stop := func() bool { asked++; return asked > 3 }
	got := guesttest.Run(func(ctx context.Context, _ *guest.Job) ([]byte, error) {
		child, cancel := context.WithCancel(ctx)
		defer cancel()
		loops := 0
		for ctx.Err() == nil {
			loops++
		}
		<-child.Done() // ends with its parent
		if loops != 3 || !errors.Is(context.Cause(child), guest.ErrStopped) {
			t.Errorf("stopped after %d loops with cause %v", loops, context.Cause(child))
		}
		return nil, guest.Retry(ctx.Err())
	}, guesttest.Job{Stop: stop})
	if got.Outcome != guesttest.Retry {
		t.Errorf("got %+v", got)
	}
	guesttest.Run(func(ctx context.Context, job *guest.Job) ([]byte, error) {
		<-ctx.Done()
		if !errors.Is(ctx.Err(), context.DeadlineExceeded) || !job.ShouldStop() {
			t.Errorf("after the deadline: %v, should stop %v", ctx.Err(), job.ShouldStop())
		}
		return nil, nil
	}, guesttest.Job{Deadline: time.Now().Add(20 * time.Millisecond)})
}

func TestLogAndProgress(t *testing.T) {
	t.Parallel()
	got := guesttest.Run(func(_ context.Context, job *guest.Job) ([]byte, error) {
		job.Log(guest.LevelInfo, "plain")
		log := job.Logger().With("page", 3)
		log.Debug("fetched", "url", "a b")
		log.WithGroup("http").Warn("slow", slog.Int("ms", 900))
		job.Logger().Error("gone")
		quiet := slog.New(job.LogHandler(&slog.HandlerOptions{Level: slog.LevelWarn}))
		quiet.Info("not shown")
		job.Progress(1, 2, "half \xff")
		return nil, nil
	}, guesttest.Job{})
	want := []guesttest.LogLine{
		{Level: guest.LevelInfo, Message: "plain"},
		{Level: guest.LevelDebug, Message: `fetched page=3 url="a b"`},
		{Level: guest.LevelWarn, Message: `slow page=3 http.ms=900`},
		{Level: guest.LevelError, Message: "gone"},
	}
	if fmt.Sprint(got.Log) != fmt.Sprint(want) {
		t.Errorf("log\ngot  %v\nwant %v", got.Log, want)
	}
	if got.Progress != (guesttest.Progress{Done: 1, Total: 2, Message: "half \uFFFD"}) {
		t.Errorf("progress %+v", got.Progress)
	}
	flood := guesttest.Run(func(_ context.Context, job *guest.Job) ([]byte, error) {
		for range 100 {
			job.Log(guest.LevelInfo, "0123456789")
		}
		return nil, nil
	}, guesttest.Job{LogLimit: 100})
	if n := len(flood.Log); n != 11 || flood.Log[10].Message != "log truncated at 100 bytes" {
		t.Errorf("%d lines, last %+v", n, flood.Log[n-1])
	}
}

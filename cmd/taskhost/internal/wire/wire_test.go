package wire

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/taskhost/taskhost/cmd/taskhost/internal/samples"
	"github.com/taskhost/taskhost/config"
	"github.com/taskhost/taskhost/handlers"
	"github.com/taskhost/taskhost/queue"
)

// program is what child processes are made of: the built binary, without the race detector, whose shadow memory does not fit into
// their limits. The server's part runs in this process, with it.
var program string

func TestMain(m *testing.M) {
	dir, err := os.MkdirTemp("", "taskhost-wire-")
	if err != nil {
		panic(err)
	}
	program = filepath.Join(dir, "taskhost")
	build := exec.Command("go", "build", "-o", program, "../..")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		fmt.Fprintf(os.Stderr, "build the program: %v\n%s", err, out)
		os.Exit(1)
	}
	code := m.Run()
	http.DefaultClient.CloseIdleConnections()
	if err := goleak.Find(); err != nil && code == 0 {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	_ = os.RemoveAll(dir)
	os.Exit(code)
}

func options(t *testing.T) Options {
	t.Helper()
	c := config.Default()
	c.DataDir, c.Listen = t.TempDir(), "127.0.0.1:0"
	c.Wasm.Runners, c.Wasm.Slots, c.Defaults.Memory = 1, 4, 4*config.MiB
	o := Options{Config: c, Log: slog.New(slog.NewTextHandler(t.Output(), nil)), Exe: program}
	for _, typ := range samples.Types() {
		o.Provided = append(o.Provided, Provided{Type: typ, Module: samples.Module()})
	}
	return o
}

func open(t *testing.T, o Options) *Server {
	t.Helper()
	s, err := Open(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func post(t *testing.T, url, body string) string {
	t.Helper()
	resp, err := http.Post(url, "application/json", strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode/100 != 2 {
		t.Fatalf("%s %s %v", resp.Status, answer, err)
	}
	return string(answer)
}

func TestServerRunsJobsAndStops(t *testing.T) {
	o := options(t)
	for range 2 { // the second finds its handlers and jobs in the store
		s := open(t, o)
		answer := post(t, s.URL()+"/v1/jobs?wait=20s", `{"type":"hello","payload":{"name":"Ada"}}`)
		if !strings.Contains(answer, `"state":"succeeded"`) || !strings.Contains(answer, "Hello, Ada") {
			t.Errorf("got %s", answer)
		}
		if s.Sandbox() == "" || s.Concurrency() != 4 {
			t.Errorf("sandbox %s, %d jobs at once", s.Sandbox(), s.Concurrency())
		}
		if err := s.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
}

// A cancel reaches the handler at once, not with the next third of a lease.
func TestCancelStopsARunningJob(t *testing.T) {
	o := options(t)
	o.Config.Worker.Lease = time.Hour
	s := open(t, o)
	defer func() {
		if err := s.Close(context.WithoutCancel(t.Context())); err != nil {
			t.Error(err)
		}
	}()
	answer := post(t, s.URL()+"/v1/jobs", `{"type":"sleep","payload":{"ms":600000}}`)
	_, id, _ := strings.Cut(answer, `"id":"`)
	id, _, _ = strings.Cut(id, `"`)
	watch, err := s.store.WatchJob(t.Context(), "default", id)
	if err != nil {
		t.Fatal(err)
	}
	defer watch.Stop()
	await := func(want queue.State) {
		for range watch.C {
			j, err := s.store.GetJob(t.Context(), "default", id)
			if err != nil {
				t.Fatal(err)
			}
			if j.State == want {
				return
			}
		}
	}
	await(queue.StateRunning)
	start := time.Now()
	post(t, s.URL()+"/v1/jobs/"+id+"/cancel", "")
	await(queue.StateCancelled)
	if took := time.Since(start); took > 5*time.Second {
		t.Errorf("cancelled after %s", took)
	}
}

func TestOpenRefusesAndLeavesNothing(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*Options)
		want   string
	}{
		"remote":  {func(o *Options) { o.Config.Listen = "0.0.0.0:0" }, ErrRemoteWithoutLogin.Error()},
		"module":  {func(o *Options) { o.Provided[0].Module = []byte("nope") }, "WebAssembly"},
		"missing": {func(o *Options) { o.Config.Handlers = []config.Handler{{Type: "a", Wasm: "/nonexistent"}} }, "handlers[0].wasm"},
		"folder":  {func(o *Options) { o.Config.DataDir = "/proc/nope" }, "data_dir"},
	} {
		t.Run(name, func(t *testing.T) {
			o := options(t)
			c.change(&o)
			if _, err := Open(t.Context(), o); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Fatalf("got %v, want %q", err, c.want)
			}
		})
	}
	t.Run("port taken", func(t *testing.T) {
		s := open(t, options(t))
		o := options(t)
		o.Config.Listen = strings.TrimPrefix(s.URL(), "http://")
		if _, err := Open(t.Context(), o); err == nil || !strings.Contains(err.Error(), "address already in use") {
			t.Errorf("got %v", err)
		}
		o.Config.Listen, o.Config.DataDir = "127.0.0.1:0", s.o.Config.DataDir
		if _, err := Open(t.Context(), o); !StoreInUse(err) {
			t.Errorf("got %v, want that the store is in use", err)
		}
		if err := s.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
	})
	t.Run("cancelled", func(t *testing.T) {
		cause := errors.New("signal")
		ctx, cancel := context.WithCancelCause(t.Context())
		cancel(cause)
		if _, err := Open(ctx, options(t)); !errors.Is(err, cause) {
			t.Errorf("got %v, want the cause", err)
		}
	})
}

func TestLocal(t *testing.T) {
	d := config.Default().Defaults
	l, err := OpenLocal(t.Context(), samples.Module(), LocalOptions{Type: "flaky", Defaults: d, Exe: program})
	if err != nil {
		t.Fatal(err)
	}
	if ad := l.Admission(); ad.Kind != handlers.KindReactor || ad.SizeBytes != len(samples.Module()) {
		t.Errorf("admission %+v", ad)
	}
	var log []string
	job := LocalJob{Payload: []byte(`{"fail":1}`), Attempt: 1, Log: func(level, message string) { log = append(log, level+" "+message) }}
	if out := l.Run(t.Context(), job); out.Kind != handlers.OutcomeRetry || len(log) != 1 || !strings.HasPrefix(log[0], "warn attempt 1 fails") {
		t.Errorf("first attempt: %+v, log %q", out, log)
	}
	job.Attempt = 2
	if out := l.Run(t.Context(), job); out.Kind != handlers.OutcomeSucceeded || string(out.Result) != `{"attempts":2}` {
		t.Errorf("second attempt: %+v", out)
	}
	if err := l.Close(); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(l.dir); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("left behind: %s", l.dir)
	}
	var refusal *handlers.Refusal
	if _, err := OpenLocal(t.Context(), []byte("nope"), LocalOptions{Type: "a", Defaults: d, Exe: program}); !errors.As(err, &refusal) {
		t.Errorf("got %v, want a refusal", err)
	}
}

package plugin

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/taskhost/taskhost/handlers"
	"github.com/taskhost/taskhost/handlers/handlertest"
)

// scripted is the program of sdk/go/plugin/internal/scripted, a plugin that does what its payload says.
var scripted string

func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == hostRole {
		hostChild(os.Args[2:])
	}
	dir, err := os.MkdirTemp("", "taskhost-plugin-")
	if err != nil {
		panic(err)
	}
	scripted = filepath.Join(dir, "scripted")
	build := exec.Command("go", "build", "-o", scripted, "./internal/scripted")
	build.Dir = filepath.Join("..", "..", "sdk", "go", "plugin")
	build.Env = append(os.Environ(), "CGO_ENABLED=0", "GOFLAGS=")
	if out, err := build.CombinedOutput(); err != nil {
		fmt.Fprintf(os.Stderr, "build the scripted plugin: %v\n%s", err, out)
		os.Exit(1)
	}
	goleak.VerifyTestMain(m, goleak.Cleanup(func(code int) {
		if err := os.RemoveAll(dir); err != nil {
			panic(err)
		}
		os.Exit(code)
	}))
}

// script is the specification of the scripted plugin.
func script() Spec {
	return Spec{Types: []string{"scripted"}, Command: scripted, Instances: 2, Concurrency: 4, Grace: 50 * time.Millisecond,
		Config: map[string]string{"REGION": "north"}, StartTimeout: time.Minute}
}

func newRuntime(tb testing.TB, specs ...Spec) *Runtime {
	tb.Helper()
	r, err := New(Options{DataDir: tb.TempDir(), Plugins: specs, BackoffMin: time.Millisecond, BackoffMax: 20 * time.Millisecond,
		Limits: handlers.Limits{ResultBytes: 1 << 20, LogBytes: 256 << 10, CheckpointBytes: 1 << 20},
		Logger: slog.New(slog.NewTextHandler(tb.Output(), nil))})
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
		defer cancel()
		if err := r.Close(ctx); err != nil {
			tb.Error(err)
		}
	})
	return r
}

// invocation is of the first type of the first plugin.
func invocation(r *Runtime, payload []byte, timeout time.Duration) *handlers.Invocation {
	v := r.routes[r.State()[0].Types[0]].version
	return &handlers.Invocation{JobID: "job-1", Tenant: "acme", Queue: "q", Type: v.Type, Attempt: 1, MaxAttempts: 3, Payload: payload, Version: v,
		Limits:   handlers.Limits{ResultBytes: 64 << 20, LogBytes: 64 << 10, CheckpointBytes: 1 << 20},
		Deadline: time.Now().Add(timeout), Events: &handlertest.Recorder{}}
}

func run(tb testing.TB, r *Runtime, payload string) handlers.Outcome {
	tb.Helper()
	return r.Invoke(tb.Context(), invocation(r, []byte(payload), time.Minute))
}

// started begins an attempt, and returns when it has reported that it runs.
func started(tb testing.TB, r *Runtime, payload string) <-chan handlers.Outcome {
	tb.Helper()
	inv := invocation(r, []byte(payload), time.Minute)
	running, out := make(chan struct{}), make(chan handlers.Outcome, 1)
	var once sync.Once
	inv.Events.(*handlertest.Recorder).Notify = func() { once.Do(func() { close(running) }) }
	go func() { out <- r.Invoke(tb.Context(), inv) }()
	select {
	case <-running:
	case o := <-out:
		tb.Fatalf("%s ended before it ran: %s %v", payload, o.Kind, o.Error)
	}
	return out
}

// await asks until a condition holds. The runtime has no events for its state.
func await(tb testing.TB, what string, holds func() bool) {
	tb.Helper()
	tick, limit := time.NewTicker(5*time.Millisecond), time.After(time.Minute)
	defer tick.Stop()
	for !holds() {
		select {
		case <-tick.C:
		case <-limit:
			tb.Fatalf("not within a minute: %s", what)
		}
	}
}

func alive(pid int) bool {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	return err == nil && processState(stat) != 'Z'
}

// processState is the state in /proc/PID/stat, after the name in parentheses.
func processState(stat []byte) byte {
	for i := len(stat) - 1; i > 1; i-- {
		if stat[i-2] == ')' {
			return stat[i]
		}
	}
	return 0
}

func digestOf(tb testing.TB, path string) string {
	tb.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		tb.Fatal(err)
	}
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}

// program writes an executable script.
func program(tb testing.TB, text string) string {
	tb.Helper()
	path := filepath.Join(tb.TempDir(), "program")
	// Written by another process: a file that this one has open for writing, and that a fork of another test inherits, cannot be executed.
	cmd := exec.Command("sh", "-c", `cat >"$1" && chmod 700 "$1"`, "sh", path)
	in, err := cmd.StdinPipe()
	if err != nil {
		tb.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		tb.Fatal(err)
	}
	_, err = io.WriteString(in, text)
	if err := errors.Join(err, in.Close(), cmd.Wait()); err != nil {
		tb.Fatal(err)
	}
	return path
}

func signal(tb testing.TB, pid int, s syscall.Signal) {
	tb.Helper()
	if err := syscall.Kill(pid, s); err != nil {
		tb.Errorf("signal %s to %d: %v", s, pid, err)
	}
}

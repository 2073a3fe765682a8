package wasm

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/taskhost/taskhost/handlers"
	"github.com/taskhost/taskhost/handlers/handlertest"
	"github.com/taskhost/taskhost/handlers/wasm/wasmtest"
)

// childPath is the program of testdata/child.
var childPath string

func TestMain(m *testing.M) {
	dir, err := os.MkdirTemp("", "taskhost-wasm-")
	if err != nil {
		panic(err)
	}
	childPath = filepath.Join(dir, "child")
	build := exec.Command("go", "build", "-o", childPath, "./testdata/child")
	build.Env = append(os.Environ(), "CGO_ENABLED=0", "GOFLAGS=")
	if out, err := build.CombinedOutput(); err != nil {
		fmt.Fprintf(os.Stderr, "build the child: %v\n%s", err, out)
		os.Exit(1)
	}
	goleak.VerifyTestMain(m, goleak.Cleanup(func(code int) {
		if err := os.RemoveAll(dir); err != nil {
			panic(err)
		}
		os.Exit(code)
	}))
}

var guests = handlertest.Guests{BuildReactor: wasmtest.GoReactor, BuildCommand: wasmtest.GoCommand}

func newRuntime(tb testing.TB, change func(*Options)) *Runtime {
	tb.Helper()
	o := Options{
		DataDir: tb.TempDir(), Runners: 2, Slots: 4, Sandbox: SandboxBest, Logger: slog.New(slog.NewTextHandler(tb.Output(), nil)),
		Command: func(role string) []string { return []string{childPath, role} },
	}
	if change != nil {
		change(&o)
	}
	r, err := New(o)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		if err := r.Close(ctx); err != nil {
			tb.Error(err)
		}
	})
	return r
}

// upload admits and prepares a module, as the host does.
func upload(tb testing.TB, r *Runtime, typ string, module []byte) *handlers.Version {
	tb.Helper()
	a, err := r.Admit(tb.Context(), handlers.AdmitRequest{Tenant: "acme", Type: typ, Module: module})
	if err != nil {
		tb.Fatal(err)
	}
	v := &handlers.Version{Tenant: "acme", Type: typ, Number: 1, Runtime: Name, SHA256: a.SHA256, Kind: a.Kind, Config: map[string]string{"REGION": "north"}}
	if err := r.Prepare(tb.Context(), v, func(context.Context) ([]byte, error) { return module, nil }); err != nil {
		tb.Fatal(err)
	}
	return v
}

func crash(r *Runtime) func(testing.TB) {
	return func(tb testing.TB) {
		for _, p := range r.Stats().Runners {
			if p.Busy > 0 {
				if err := syscall.Kill(p.PID, syscall.SIGABRT); err != nil {
					tb.Error(err)
				}
			}
		}
	}
}

func TestConformance(t *testing.T) {
	t.Parallel()
	t.Run("Reactor", func(t *testing.T) {
		t.Parallel()
		r := newRuntime(t, nil)
		v := upload(t, r, "reactor", guests.Reactor(t))
		handlertest.Run(t, handlertest.Harness{Runtime: r, Version: v, Sandboxed: true, Crash: crash(r)})
	})
	t.Run("Command", func(t *testing.T) {
		t.Parallel()
		r := newRuntime(t, nil)
		v := upload(t, r, "command", guests.Command(t))
		handlertest.Run(t, handlertest.Harness{Runtime: r, Version: v, Command: true, Sandboxed: true, Crash: crash(r)})
	})
}

func TestUnprepared(t *testing.T) {
	t.Parallel()
	r := newRuntime(t, nil)
	h := handlertest.Harness{Runtime: r, Version: &handlers.Version{Type: "x", Number: 3, SHA256: strings.Repeat("ab", 32)}}
	out := r.Invoke(t.Context(), h.Invocation(handlertest.Echo(nil), time.Minute))
	if out.Kind != handlers.OutcomeUnavailable || !strings.Contains(out.Error.Message, "version 3 of x (abababababab) was not prepared") {
		t.Errorf("%s %v", out.Kind, out.Error)
	}
}

// Artifacts outlive the process; one that was tampered with is made anew from the uploaded bytes.
func TestPrepareAfterRestart(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	module := wasmtest.EchoReactor()
	keep := func(o *Options) { o.DataDir = dir }
	v := upload(t, newRuntime(t, keep), "echo", module)

	r := newRuntime(t, keep)
	unneeded := func(context.Context) ([]byte, error) { return nil, errors.New("source was called") }
	if err := r.Prepare(t.Context(), v, unneeded); err != nil {
		t.Fatal(err)
	}
	h := handlertest.Harness{Runtime: r, Version: v}
	p, _ := r.prepared.Load(v.SHA256)
	if err := os.RemoveAll(p.(prepared).Dir); err != nil {
		t.Fatal(err)
	}
	for range 2 { // the second time it is known to be gone
		out := r.Invoke(t.Context(), h.Invocation(handlertest.Script("ab"), time.Minute))
		if out.Kind != handlers.OutcomeUnavailable {
			t.Errorf("%s %v", out.Kind, out.Error)
		}
	}
	if err := r.Prepare(t.Context(), v, unneeded); err == nil || !strings.Contains(err.Error(), "source was called") {
		t.Errorf("an artifact that is gone is not made anew: %v", err)
	}
	if err := r.Prepare(t.Context(), v, func(context.Context) ([]byte, error) { return module, nil }); err != nil {
		t.Fatal(err)
	}
	if out := r.Invoke(t.Context(), h.Invocation(handlertest.Script("ab"), time.Minute)); string(out.Result) != "ab" {
		t.Errorf("%s %v", out.Kind, out.Error)
	}
}

func TestOptionsAreChecked(t *testing.T) {
	t.Parallel()
	command := func(role string) []string { return []string{childPath, role} }
	for _, o := range []Options{
		{Command: command}, {DataDir: t.TempDir()},
		{DataDir: t.TempDir(), Command: command, MaxMemoryBytes: 1},
		{DataDir: t.TempDir(), Command: command, Slots: 1000},
	} {
		if r, err := New(o); err == nil || !strings.HasPrefix(err.Error(), "wasm: ") {
			t.Errorf("%+v, %v", r, err)
		}
	}
}

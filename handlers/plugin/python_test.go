package plugin

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/taskhost/taskhost/handlers"
	"github.com/taskhost/taskhost/handlers/handlertest"
)

// pythonWithGRPC finds an interpreter that has what the example needs.
func pythonWithGRPC(t *testing.T) string {
	t.Helper()
	for _, python := range []string{"/usr/bin/python3", "python3"} {
		if path, err := exec.LookPath(python); err == nil && exec.Command(path, "-c", "import grpc, google.protobuf").Run() == nil {
			return path
		}
	}
	if os.Getenv("CI") != "" {
		t.Fatal("no python3 with grpcio; scripts/setup.sh installs it")
	}
	t.Skip("no python3 with grpcio (scripts/setup.sh installs it)")
	return ""
}

// The example in Python speaks the same protocol: it succeeds, fails, logs, saves, carries more than one message holds, stops when it is
// asked to, and is replaced when it dies.
func TestPythonExample(t *testing.T) {
	t.Parallel()
	program, err := filepath.Abs(filepath.Join("..", "..", "sdk", "python-example", "plugin.py"))
	if err != nil {
		t.Fatal(err)
	}
	r := newRuntime(t, Spec{Types: []string{"py.*"}, Command: pythonWithGRPC(t), Args: []string{program}, PlainSocket: true, StartTimeout: time.Minute,
		Env: map[string]string{"PYTHONDONTWRITEBYTECODE": "1"}, Files: map[string]string{program: digestOf(t, program)}})
	if err := r.Prepare(t.Context(), r.Versions()[0], nil); err != nil {
		t.Fatal(err)
	}
	invoke := func(typ string, payload []byte) (handlers.Outcome, *handlertest.Recorder) {
		inv := invocation(r, payload, time.Minute)
		inv.Type = typ
		return r.Invoke(t.Context(), inv), inv.Events.(*handlertest.Recorder)
	}
	out, events := invoke("py.reverse", []byte("straight"))
	if string(out.Result) != "thgiarts" {
		t.Fatalf("%s %v %s", out.Kind, out.Error, out.Result)
	}
	if lines := events.Lines(); len(lines) != 1 || lines[0].Message != "reversing 8 characters" || lines[0].Level != "info" {
		t.Errorf("%+v", lines)
	}
	big := append([]byte("x"), bytes.Repeat([]byte("y"), 5<<20)...)
	if out, _ := invoke("py.reverse", big); len(out.Result) != len(big) || out.Result[len(big)-1] != 'x' {
		t.Errorf("%s %v, %d bytes", out.Kind, out.Error, len(out.Result))
	}
	out, events = invoke("py.sum", []byte(`{"numbers":[1,2,39]}`))
	if string(out.Result) != `{"sum": 42}` || len(events.Checkpoints()) != 1 || len(events.Reports()) != 3 {
		t.Errorf("%s %v %s, %d checkpoints", out.Kind, out.Error, out.Result, len(events.Checkpoints()))
	}
	if out, _ := invoke("py.sum", []byte(`no JSON`)); out.Kind != handlers.OutcomePermanent || !strings.Contains(out.Error.Message, "numbers") {
		t.Errorf("%s %v", out.Kind, out.Error)
	}
	if out, _ := invoke("py.none", nil); out.Kind != handlers.OutcomePermanent || !strings.Contains(out.Error.Message, "py.none") {
		t.Errorf("%s %v", out.Kind, out.Error)
	}
	if out, events := invoke("py.reverse", []byte("\xff")); out.Kind != handlers.OutcomeRetry || !strings.Contains(out.Error.Message, "utf-8") || len(events.Lines()) < 3 {
		t.Errorf("%s %v, %d lines", out.Kind, out.Error, len(events.Lines()))
	}
	signal(t, r.State()[0].Processes[0].PID, syscall.SIGKILL)
	await(t, "a new process serves", func() bool {
		out, _ := invoke("py.reverse", []byte("ab"))
		return string(out.Result) == "ba"
	})
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	if err := r.Close(ctx); err != nil {
		t.Error(err)
	}
}

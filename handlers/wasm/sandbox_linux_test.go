package wasm

import (
	"bytes"
	"errors"
	"log/slog"
	"os"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/taskhost/taskhost/handlers"
	"github.com/taskhost/taskhost/handlers/handlertest"
	"github.com/taskhost/taskhost/handlers/wasm/lockdown"
	"github.com/taskhost/taskhost/handlers/wasm/wasmtest"
)

type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lockedBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lockedBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

func TestSandboxOffIsSaidLoudly(t *testing.T) {
	t.Parallel()
	log := &lockedBuffer{}
	r := newRuntime(t, func(o *Options) { o.Sandbox, o.Logger = SandboxOff, slog.New(slog.NewTextHandler(log, nil)) })
	if r.SandboxLevel() != "off" || !strings.Contains(log.String(), "level=WARN") || !strings.Contains(log.String(), "sandbox=off") {
		t.Errorf("%s, log %q", r.SandboxLevel(), log.String())
	}
}

// The level that was tested at the start is the level of every runner.
func TestRunnersReachTheLevel(t *testing.T) {
	t.Parallel()
	log := &lockedBuffer{}
	r := newRuntime(t, func(o *Options) { o.Logger = slog.New(slog.NewTextHandler(log, nil)) })
	v := upload(t, r, "echo", wasmtest.EchoReactor())
	h := handlertest.Harness{Runtime: r, Version: v}
	if out := r.Invoke(t.Context(), h.Invocation(handlertest.Script("ab"), time.Minute)); string(out.Result) != "ab" {
		t.Fatalf("%s %v", out.Kind, out.Error)
	}
	runners := r.Stats().Runners
	for _, p := range runners {
		if p.Sandbox != r.SandboxLevel() {
			t.Errorf("a runner at level %q, the runtime at %q", p.Sandbox, r.SandboxLevel())
		}
	}
	if len(runners) == 0 || !strings.Contains(log.String(), "sandbox="+r.SandboxLevel()) || r.SandboxReport().Level != r.SandboxLevel() {
		t.Errorf("%d runners; log %q", len(runners), log.String())
	}
	if runtime.GOOS == "linux" && r.SandboxLevel() == "off" {
		t.Errorf("nothing is locked down: %s", r.SandboxReport().Missing(lockdown.Basic))
	}
}

// A program that cannot be locked down far enough is refused at the start, with the reason.
func TestSandboxBelowIsRefused(t *testing.T) {
	t.Parallel()
	old := []string{childPath, "without-landlock"} // as on a kernel without Landlock
	o := Options{DataDir: t.TempDir(), Runners: 1, Sandbox: SandboxStandard, Logger: slog.New(slog.DiscardHandler),
		Command: func(role string) []string { return append(old, role) }}
	r, err := New(o)
	var below *lockdown.BelowError
	if r != nil || !errors.As(err, &below) || !strings.Contains(err.Error(), "wasm: sandbox level standard is required, this machine reaches basic: landlock: ") {
		t.Errorf("%v, %v", r, err)
	}
	o.Sandbox = "high"
	if _, err := New(o); err == nil || !strings.Contains(err.Error(), `sandbox level "high": allowed are`) {
		t.Error(err)
	}
}

// When the sandbox falls below its level after the start, uploads and runners are refused: nothing of a tenant is touched.
func TestSandboxThatFallsBelowLater(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	flag := dir + "/fallen"
	r := newRuntime(t, func(o *Options) {
		o.Sandbox, o.Runners, o.RecycleAfter, o.Slots = SandboxStandard, 1, 1, 1
		o.Command = func(role string) []string { return []string{childPath, "landlock-unless", flag, role} }
	})
	v := upload(t, r, "echo", wasmtest.EchoReactor())
	h := handlertest.Harness{Runtime: r, Version: v}
	if err := os.WriteFile(flag, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	_, err := r.Admit(t.Context(), handlers.AdmitRequest{Tenant: "acme", Type: "other", Module: wasmtest.LoopReactor()})
	if !errors.Is(err, handlers.ErrSandbox) || !strings.Contains(err.Error(), "landlock: ") {
		t.Errorf("an upload: %v", err)
	}
	// The runner that was there already runs one more job, and is replaced after it: in vain.
	var last handlers.Outcome
	for range 3 {
		last = r.Invoke(t.Context(), h.Invocation(handlertest.Script("ab"), time.Minute))
		if last.Kind == handlers.OutcomeUnavailable {
			break
		}
	}
	if last.Kind != handlers.OutcomeUnavailable || !strings.Contains(last.Error.Message, "sandbox level standard is required") {
		t.Errorf("a job: %s %v", last.Kind, last.Error)
	}
}

package pool

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/taskhost/taskhost/abi"
	"github.com/taskhost/taskhost/handlers"
	"github.com/taskhost/taskhost/handlers/handlertest"
	"github.com/taskhost/taskhost/handlers/wasm/artifact"
	"github.com/taskhost/taskhost/handlers/wasm/engine"
	"github.com/taskhost/taskhost/handlers/wasm/meter"
	childside "github.com/taskhost/taskhost/handlers/wasm/runner"
	w "github.com/taskhost/taskhost/handlers/wasm/wasmtest"
)

// childCommand makes this test binary a runner.
const childCommand = "test-runner"

// victimCommand makes it a process that does nothing.
const victimCommand = "test-victim"

func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == childCommand {
		os.Exit(childside.Child(context.Background(), os.Args[2:]))
	}
	if len(os.Args) > 1 && os.Args[1] == hostileCommand {
		os.Exit(hostileChild(os.Args[2]))
	}
	if len(os.Args) > 1 && os.Args[1] == victimCommand { // there to be attacked, until its stdin ends
		_, _ = io.Copy(io.Discard, os.Stdin)
		return
	}
	if len(os.Args) > 1 && os.Args[1] == hostCommand {
		hostChild()
	}
	goleak.VerifyTestMain(m)
}

func newPool(tb testing.TB, change func(*Options)) *Pool {
	tb.Helper()
	o := Options{
		Command: []string{"/proc/self/exe", childCommand},
		Runners: 1, Slots: 4, MemoryBytes: 64 << 20,
		BackoffMin: time.Millisecond, BackoffMax: 10 * time.Millisecond,
		Logger: slog.New(slog.NewTextHandler(testWriter{tb}, &slog.HandlerOptions{Level: slog.LevelWarn})),
	}
	if change != nil {
		change(&o)
	}
	p, err := New(o)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		if err := p.Close(ctx); err != nil && !errors.Is(err, errExpected) {
			tb.Error(err)
		}
		if n := childCount(tb, p); n > 0 {
			tb.Errorf("%d processes are left", n)
		}
	})
	return p
}

var errExpected = errors.New("expected")

type testWriter struct{ tb testing.TB }

func (t testWriter) Write(b []byte) (int, error) {
	t.tb.Log(strings.TrimSpace(string(b)))
	return len(b), nil
}

func childCount(tb testing.TB, p *Pool) int { tb.Helper(); return len(p.Stats().Runners) }

// compile makes an artifact of a module; its kind shows in its exports.
func compile(tb testing.TB, module []byte) Artifact {
	tb.Helper()
	dir := tb.TempDir()
	cache := filepath.Join(dir, artifact.CacheDir)
	if err := os.MkdirAll(cache, 0o700); err != nil {
		tb.Fatal(err)
	}
	if !bytes.Contains(module, []byte(meter.TickModule)) {
		module = w.Metered(tb, module)
	}
	if err := engine.Compile(context.Background(), module, cache); err != nil {
		tb.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, artifact.ModuleFile), module, 0o600); err != nil {
		tb.Fatal(err)
	}
	kind := handlers.KindCommand
	if bytes.Contains(module, []byte(abi.ExportHandle)) {
		kind = handlers.KindReactor
	}
	return Artifact{dir, kind}
}

var jobs atomic.Int64

func invocation(payload []byte, timeout time.Duration) *handlers.Invocation {
	n := jobs.Add(1)
	return &handlers.Invocation{
		JobID: fmt.Sprint("job-", n), Tenant: "acme", Queue: "q", Type: "t", Attempt: 1, MaxAttempts: 3, Payload: payload,
		Version:  &handlers.Version{Config: map[string]string{}},
		Limits:   handlers.Limits{MemoryBytes: 16 << 20, ResultBytes: 8 << 20, LogBytes: 64 << 10, CheckpointBytes: 1 << 20},
		Deadline: time.Now().Add(timeout),
		Events:   &handlertest.Recorder{},
	}
}

// echo is a reactor whose result is its whole payload.
func echo() []byte {
	var b w.Builder
	size, read, write := b.ImportHost("input_len"), b.ImportHost("input_read"), b.ImportHost("output_write")
	b.Memory(1)
	return b.Reactor([]w.Local{{Count: 1, Type: w.I32}},
		w.Call(size), w.Ops(w.OpI32WrapI64), w.LocalTee(0), w.I32Const(65536), w.Ops(0x6e), w.I32Const(1), w.Ops(w.OpI32Add), w.MemoryGrow(), w.Ops(w.OpDrop),
		w.I64Const(0), w.I32Const(0), w.LocalGet(0), w.Call(read), w.Ops(w.OpDrop),
		w.I32Const(0), w.LocalGet(0), w.Call(write), w.Ops(w.OpDrop), w.I32Const(0))
}

// sleeper is a command that sleeps for so many milliseconds, then succeeds.
func sleeper(ms int64) []byte {
	var b w.Builder
	poll := b.ImportFunc(abi.ModuleWASI, "poll_oneoff", w.Types(w.I32, w.I32, w.I32, w.I32), w.Types(w.I32))
	b.Memory(1)
	sub := make([]byte, 48)
	sub[16] = 1
	for i := range 8 {
		sub[24+i] = byte(uint64(ms*1e6) >> (8 * i))
	}
	b.Data(0, sub)
	return b.Command(nil, w.I32Const(0), w.I32Const(100), w.I32Const(1), w.I32Const(200), w.Call(poll), w.Ops(w.OpDrop))
}

// busyLoop reports progress, then loops for ever.
func busyLoop() []byte {
	var b w.Builder
	progress := b.ImportHost("progress")
	return b.Reactor(nil, w.I64Const(1), w.I64Const(2), w.I32Const(0), w.I32Const(0), w.Call(progress), w.Ops(w.OpDrop), w.Forever(), w.I32Const(0))
}

// unstoppable loops for ever without a tick, as no metered module does; it stands for a fault that the pool has to deal with. It reports
// progress first.
func unstoppable() []byte {
	var b w.Builder
	b.ImportFunc(meter.TickModule, meter.TickName, nil, nil)
	progress := b.ImportHost("progress")
	b.Global(w.I64, true, w.I64Const(0))
	b.Export(meter.ExportFuel, 3, 0)
	return b.Reactor(nil, w.I64Const(1), w.I64Const(2), w.I32Const(0), w.I32Const(0), w.Call(progress), w.Ops(w.OpDrop), w.Forever(), w.I32Const(0))
}

// reported makes an invocation tell of the guest's first report.
func reported(inv *handlers.Invocation) <-chan struct{} {
	c := make(chan struct{}, 1)
	inv.Events = &handlertest.Recorder{Notify: func() {
		select {
		case c <- struct{}{}:
		default:
		}
	}}
	return c
}

func TestEcho(t *testing.T) {
	t.Parallel()
	p := newPool(t, nil)
	dir := compile(t, echo())
	for _, n := range []int{0, 1, 32 << 10, 32<<10 + 1, 5 << 20} {
		payload := bytes.Repeat([]byte("0123456789abcdef!"), n/17+1)[:n]
		out := p.Invoke(t.Context(), invocation(payload, time.Minute), dir)
		if out.Kind != handlers.OutcomeSucceeded || !bytes.Equal(out.Result, payload) || out.Duration <= 0 || out.PeakMemory < 64<<10 {
			t.Errorf("%d bytes: %s %v, %d bytes back, %s, %d", n, out.Kind, out.Error, len(out.Result), out.Duration, out.PeakMemory)
		}
	}
}

func TestManyAtOnce(t *testing.T) {
	t.Parallel()
	p := newPool(t, func(o *Options) { o.Runners, o.RecycleAfter = 2, 50 })
	dir := compile(t, echo())
	var wg sync.WaitGroup
	for i := range 16 {
		wg.Go(func() {
			for j := range 20 {
				payload := []byte(strings.Repeat(fmt.Sprint(i, ".", j, " "), 1+i*j*30))
				out := p.Invoke(t.Context(), invocation(payload, time.Minute), dir)
				if out.Kind != handlers.OutcomeSucceeded || !bytes.Equal(out.Result, payload) {
					t.Errorf("%d.%d: %s %v", i, j, out.Kind, out.Error)
				}
			}
		})
	}
	wg.Wait()
	if s := p.Stats(); s.Recycled == 0 || s.Crashed+s.Violations+s.Killed > 0 {
		t.Errorf("%+v", s)
	}
}

// A guest that loops is ended at its deadline wherever it loops, and its runner lives on.
func TestCase086DeadlineHolds(t *testing.T) {
	t.Parallel()
	p := newPool(t, nil)
	var handler, start, section, init w.Builder
	section.Start(section.Func(nil, nil, nil, w.Forever()))
	init.ExportFunc(abi.ExportInitialize, init.Func(nil, nil, nil, w.Forever()))
	echo := compile(t, echo())
	waitFor(t, p, func(s Stats) bool { return len(s.Runners) == 1 })
	pid := p.Stats().Runners[0].PID
	for name, c := range map[string]struct {
		module []byte
	}{
		"handler":       {handler.Reactor(nil, w.Forever(), w.I32Const(0))},
		"_start":        {start.Command(nil, w.Forever())},
		"start section": {section.Reactor(nil, w.I32Const(0))},
		"_initialize":   {init.Reactor(nil, w.I32Const(0))},
	} {
		inv := invocation(nil, 300*time.Millisecond)
		artifact := compile(t, c.module)
		inv.Deadline = time.Now().Add(300 * time.Millisecond)
		out := p.Invoke(t.Context(), inv, artifact)
		if late := time.Since(inv.Deadline); out.Kind != handlers.OutcomeRetry || out.Error.Kind != abi.KindDeadline || late > 500*time.Millisecond {
			t.Errorf("%s: %s %v, %s after the deadline", name, out.Kind, out.Error, late)
		}
	}
	if out := p.Invoke(t.Context(), invocation([]byte("next"), time.Minute), echo); string(out.Result) != "next" {
		t.Errorf("the job after: %s %v", out.Kind, out.Error)
	}
	if s := p.Stats(); s.Killed+s.Crashed+s.Violations > 0 || s.Runners[0].PID != pid {
		t.Errorf("%+v, the runner was %d", s, pid)
	}
}

// An attempt that does not end is ended with its runner, and what shares it is interrupted. Metered guests end before that.
func TestUnstoppableIsKilled(t *testing.T) {
	t.Parallel()
	p := newPool(t, nil)
	artifact := compile(t, unstoppable())
	waitFor(t, p, func(s Stats) bool { return len(s.Runners) == 1 })
	inv := invocation(nil, 300*time.Millisecond)
	out := p.Invoke(t.Context(), inv, artifact)
	if late := time.Since(inv.Deadline); out.Kind != handlers.OutcomeRetry || out.Error.Kind != abi.KindKilled || late > 500*time.Millisecond {
		t.Errorf("%s %v, %s after the deadline", out.Kind, out.Error, late)
	}
	waitFor(t, p, func(s Stats) bool { return s.Killed == 1 && s.Crashed+s.Violations == 0 })
}

// Code without loops can run for ages; so can one instruction.
func TestCase087LooplessDeadline(t *testing.T) {
	t.Parallel()
	p := newPool(t, nil)
	var tree w.Builder
	f := tree.Func(nil, nil, nil)
	for range 60 {
		f = tree.Func(nil, nil, nil, w.Call(f), w.Call(f))
	}
	artifact := compile(t, tree.Reactor(nil, w.Call(f), w.I32Const(0)))
	waitFor(t, p, func(s Stats) bool { return len(s.Runners) == 1 })
	inv := invocation(nil, 300*time.Millisecond)
	out := p.Invoke(t.Context(), inv, artifact)
	if late := time.Since(inv.Deadline); out.Kind != handlers.OutcomeRetry || out.Error.Kind != abi.KindDeadline || late > 500*time.Millisecond {
		t.Errorf("%s %v, %s after the deadline", out.Kind, out.Error, late)
	}
	if out := p.Invoke(t.Context(), invocation([]byte("next"), time.Minute), compile(t, echo())); string(out.Result) != "next" {
		t.Errorf("the job after: %s %v", out.Kind, out.Error)
	}
}

func TestNeighboursAreInterrupted(t *testing.T) {
	t.Parallel()
	p := newPool(t, nil)
	loop, sleep := compile(t, unstoppable()), compile(t, sleeper(60_000))
	outs := make(chan handlers.Outcome, 2)
	for range 2 {
		go func() { outs <- p.Invoke(t.Context(), invocation(nil, time.Minute), sleep) }()
	}
	waitFor(t, p, func(s Stats) bool { return len(s.Runners) == 1 && s.Runners[0].Busy == 2 })
	out := p.Invoke(t.Context(), invocation(nil, 200*time.Millisecond), loop)
	if out.Kind != handlers.OutcomeRetry || out.Error.Kind != abi.KindKilled {
		t.Errorf("%s %v", out.Kind, out.Error)
	}
	for range 2 {
		if out := <-outs; out.Kind != handlers.OutcomeInterrupted || out.Error.Kind != abi.KindInterrupted {
			t.Errorf("neighbour: %s %v", out.Kind, out.Error)
		}
	}
}

// waitFor waits until the pool's state is as asked, looking again whenever a runner starts or ends something.
func waitFor(tb testing.TB, p *Pool, ok func(Stats) bool) {
	tb.Helper()
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	limit := time.After(20 * time.Second)
	for !ok(p.Stats()) {
		select {
		case <-tick.C:
		case <-limit:
			tb.Fatalf("the pool is still %+v", p.Stats())
		}
	}
}

func TestCancel(t *testing.T) {
	t.Parallel()
	p := newPool(t, nil)
	for name, c := range map[string]struct {
		module []byte
		killed uint64
	}{
		"sleeping": {sleeper(60_000), 0},
		"looping":  {busyLoop(), 0},
		"stuck":    {unstoppable(), 1},
	} {
		dir := compile(t, c.module)
		before := p.Stats().Killed
		waitFor(t, p, func(s Stats) bool { return len(s.Runners) == 1 })
		ctx, cancel := context.WithCancelCause(t.Context())
		out := make(chan handlers.Outcome, 1)
		inv := invocation(nil, time.Minute)
		runs := reported(inv)
		go func() { out <- p.Invoke(ctx, inv, dir) }()
		if name != "sleeping" {
			<-runs
		}
		waitFor(t, p, func(s Stats) bool { return len(s.Runners) == 1 && s.Runners[0].Busy == 1 })
		cancel(handlers.ErrCancelled)
		asked := time.Now()
		o := <-out
		if o.Kind != handlers.OutcomeInterrupted || o.Error.Message != handlers.ErrCancelled.Error() || time.Since(asked) > time.Second {
			t.Errorf("%s: %s %v after %s", name, o.Kind, o.Error, time.Since(asked))
		}
		waitFor(t, p, func(s Stats) bool { return s.Killed-before == c.killed })
	}
}

// A runner that dies takes its attempts with it as crashes, and is replaced.
func TestCrash(t *testing.T) {
	t.Parallel()
	p := newPool(t, nil)
	sleep := compile(t, sleeper(60_000))
	out := make(chan handlers.Outcome, 1)
	go func() { out <- p.Invoke(t.Context(), invocation(nil, time.Minute), sleep) }()
	waitFor(t, p, func(s Stats) bool { return len(s.Runners) == 1 && s.Runners[0].Busy == 1 })
	if err := syscall.Kill(p.Stats().Runners[0].PID, syscall.SIGSEGV); err != nil {
		t.Fatal(err)
	}
	if o := <-out; o.Kind != handlers.OutcomeCrashed || o.Error.Kind != abi.KindCrash || !strings.Contains(o.Error.Message, "runner died") {
		t.Errorf("%s %v", o.Kind, o.Error)
	}
	if o := p.Invoke(t.Context(), invocation([]byte("next"), time.Minute), compile(t, echo())); string(o.Result) != "next" {
		t.Errorf("%s %v", o.Kind, o.Error)
	}
	if s := p.Stats(); s.Crashed != 1 {
		t.Errorf("%+v", s)
	}
}

// An attempt that wants to be alone gets a runner of its own, an extra one when the others are busy; others do not join it.
func TestAlone(t *testing.T) {
	t.Parallel()
	p := newPool(t, func(o *Options) { o.Extra = 1 })
	sleep, echo := compile(t, sleeper(60_000)), compile(t, echo())
	ctx, cancel := context.WithCancelCause(t.Context())
	var wg sync.WaitGroup
	wg.Go(func() { p.Invoke(ctx, invocation(nil, time.Minute), sleep) })
	waitFor(t, p, func(s Stats) bool { return len(s.Runners) == 1 && s.Runners[0].Busy == 1 })
	var two sync.WaitGroup
	for range 2 {
		two.Go(func() {
			inv := invocation([]byte("alone"), time.Minute)
			inv.Alone = true
			if out := p.Invoke(t.Context(), inv, echo); string(out.Result) != "alone" {
				t.Errorf("%s %v", out.Kind, out.Error)
			}
		})
	}
	two.Wait()
	alone := invocation(nil, time.Minute)
	alone.Alone = true
	wg.Go(func() { p.Invoke(ctx, alone, sleep) })
	waitFor(t, p, func(s Stats) bool {
		for _, r := range s.Runners {
			if r.Alone && r.Busy == 1 && s.Waiting == 0 {
				return len(s.Runners) == 2
			}
		}
		return false
	})
	if out := p.Invoke(t.Context(), invocation([]byte("beside"), time.Minute), echo); string(out.Result) != "beside" {
		t.Errorf("%s %v", out.Kind, out.Error)
	}
	cancel(handlers.ErrCancelled)
	wg.Wait()
	waitFor(t, p, func(s Stats) bool { return len(s.Runners) == 1 }) // the extra one goes
}

// A runner that has come to a standstill keeps its attempts, and gets no new ones until it answers again.
func TestStalledRunnerGetsNothing(t *testing.T) {
	t.Parallel()
	p := newPool(t, func(o *Options) { o.Runners = 2 })
	sleep, echo := compile(t, sleeper(60_000)), compile(t, echo())
	waitFor(t, p, func(s Stats) bool { return len(s.Runners) == 2 })
	ctx, cancel := context.WithCancelCause(t.Context())
	out := make(chan handlers.Outcome, 1)
	go func() { out <- p.Invoke(ctx, invocation(nil, time.Minute), sleep) }()
	var pid int
	waitFor(t, p, func(s Stats) bool {
		for _, r := range s.Runners {
			if r.Busy == 1 {
				pid = r.PID
			}
		}
		return pid != 0
	})
	if err := syscall.Kill(pid, syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	stalled := func(s Stats) bool {
		for _, r := range s.Runners {
			if r.PID == pid {
				return r.Stalled
			}
		}
		return false
	}
	waitFor(t, p, stalled)
	var wg sync.WaitGroup
	for range 8 { // twice what the other one has slots
		wg.Go(func() {
			if o := p.Invoke(t.Context(), invocation([]byte("x"), time.Minute), echo); string(o.Result) != "x" {
				t.Errorf("%s %v", o.Kind, o.Error)
			}
		})
	}
	wg.Wait()
	if err := syscall.Kill(pid, syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	waitFor(t, p, func(s Stats) bool { return !stalled(s) })
	cancel(handlers.ErrCancelled)
	if o := <-out; o.Kind != handlers.OutcomeInterrupted {
		t.Errorf("%s %v", o.Kind, o.Error)
	}
}

func TestStartFailures(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		command []string
		want    string
	}{
		"no such program":  {[]string{"/no/such/program"}, "no such file"},
		"not a runner":     {[]string{"/bin/sh", "-c", "echo I am no runner >&2; exit 3"}, "I am no runner"},
		"says nothing":     {[]string{"/bin/sh", "-c", "exec sleep 60"}, "no answer within 300ms"},
		"speaks otherwise": {[]string{"/bin/sh", "-c", "echo hello >&3; exec sleep 60"}, "failed to start"},
	} {
		p := newPool(t, func(o *Options) { o.Command, o.StartTimeout = c.command, 300*time.Millisecond })
		out := p.Invoke(t.Context(), invocation(nil, time.Minute), Artifact{t.TempDir(), handlers.KindReactor})
		if out.Kind != handlers.OutcomeUnavailable || out.Error.Kind != abi.KindUnavailable || !strings.Contains(out.Error.Message, c.want) {
			t.Errorf("%s: %s %v", name, out.Kind, out.Error)
		}
	}
}

func TestMissingArtifact(t *testing.T) {
	t.Parallel()
	p := newPool(t, nil)
	out := p.Invoke(t.Context(), invocation(nil, time.Minute), Artifact{t.TempDir(), handlers.KindReactor})
	if out.Kind != handlers.OutcomeUnavailable || !strings.Contains(out.Error.Message, artifact.ModuleFile) {
		t.Errorf("%s %v", out.Kind, out.Error)
	}
	inv := invocation(nil, time.Minute)
	inv.Limits.MemoryBytes = 1 << 40
	if out := p.Invoke(t.Context(), inv, Artifact{t.TempDir(), handlers.KindReactor}); out.Kind != handlers.OutcomeUnavailable {
		t.Errorf("%s %v", out.Kind, out.Error)
	}
}

func TestClose(t *testing.T) {
	t.Parallel()
	p := newPool(t, nil)
	sleep := compile(t, sleeper(60_000))
	out := make(chan handlers.Outcome, 1)
	go func() { out <- p.Invoke(t.Context(), invocation(nil, time.Minute), sleep) }()
	waitFor(t, p, func(s Stats) bool { return len(s.Runners) == 1 && s.Runners[0].Busy == 1 })
	ctx, cancel := context.WithTimeoutCause(t.Context(), 50*time.Millisecond, errExpected)
	defer cancel()
	if err := p.Close(ctx); !errors.Is(err, errExpected) || !strings.Contains(err.Error(), "1 attempts were still running") {
		t.Errorf("%v", err)
	}
	if o := <-out; o.Kind != handlers.OutcomeInterrupted || o.Error.Message != handlers.ErrStopped.Error() {
		t.Errorf("%s %v", o.Kind, o.Error)
	}
	if o := p.Invoke(t.Context(), invocation(nil, time.Minute), sleep); o.Kind != handlers.OutcomeInterrupted {
		t.Errorf("after Close: %s %v", o.Kind, o.Error)
	}
}

func TestOptions(t *testing.T) {
	t.Parallel()
	log := slog.New(slog.DiscardHandler)
	for _, o := range []Options{
		{Runners: 1, Slots: 1, Logger: log}, {Command: []string{"x"}, Runners: 1, Slots: 1}, {Command: []string{"x"}, Slots: 1, Logger: log},
		{Command: []string{"x"}, Runners: 1, Slots: 1000, Logger: log}, {Command: []string{"x"}, Runners: 1, Slots: 1, Logger: log, Extra: -1},
		{Command: []string{"x"}, Runners: 1, Slots: 1, Logger: log, Grace: -1},
	} {
		if p, err := New(o); err == nil || !strings.HasPrefix(err.Error(), "pool: ") {
			t.Errorf("%+v: %v, %v", o, p, err)
		}
	}
}

package handlertest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/taskhost/taskhost/abi"
	"github.com/taskhost/taskhost/handlers"
)

// Harness is a runtime under test.
type Harness struct {
	// Runtime runs the handler; it is shared by all tests and must have at least 4 slots.
	Runtime handlers.Runtime
	// Version is a prepared version of the conformance handler.
	Version *handlers.Version
	// Command: the handler cannot use host calls, so what needs them is left out.
	Command bool
	// Sandboxed: the runtime is Bounded, keeps a handler to its memory, and gives every job a fresh instance.
	Sandboxed bool
	// Bounded: handlers run in processes, so that what does not stop by itself is stopped, and limits of results, logs and checkpoints hold.
	Bounded bool
	// Crash makes the process that runs an invocation die; nil if the handler shares the process of the test.
	Crash func(tb testing.TB)
}

// Times the contract promises, with the slack a busy machine needs.
const (
	stopWithin = 500 * time.Millisecond
	long       = time.Minute
)

// Invocation returns an invocation of the harness's version.
func (h Harness) Invocation(s Script, timeout time.Duration) *handlers.Invocation {
	return &handlers.Invocation{
		JobID: fmt.Sprintf("job-%016x", rand.Uint64()), Tenant: "acme", Queue: "mail", Type: h.Version.Type, Run: 1, Attempt: 2, MaxAttempts: 5,
		Payload: s, Headers: map[string]string{"trace": "t-1"}, Version: h.Version,
		Limits:   handlers.Limits{MemoryBytes: 64 << 20, ResultBytes: 4 << 20, LogBytes: 256 << 10, CheckpointBytes: 1 << 20, Timeout: timeout},
		Deadline: time.Now().Add(timeout),
		Events:   &Recorder{},
	}
}

// Run runs the contract of handlers.Runtime against a harness. The version's configuration must be REGION=north.
func Run(t *testing.T, h Harness) {
	for _, c := range []struct {
		name  string
		test  func(*testing.T, Harness)
		needs func(Harness) bool
	}{
		{"Succeeds", testSucceeds, nil},
		{"BigPayloadAndResult", testBig, nil},
		{"FailsRetryable", testRetryable, nil},
		{"FailsPermanently", testPermanent, nil},
		{"Defers", testDefers, Harness.hasCalls},
		{"Traps", testTrap, nil},
		{"Logs", testLogs, nil},
		{"LogLimit", testLogLimit, Harness.bounds},
		{"Progress", testProgress, Harness.hasCalls},
		{"Checkpoint", testCheckpoint, Harness.hasCalls},
		{"CheckpointFails", testCheckpointFails, func(h Harness) bool { return h.hasCalls() && h.bounds() }},
		{"Metadata", testMetadata, nil},
		{"ResultLimit", testResultLimit, Harness.bounds},
		{"MemoryLimit", testMemoryLimit, Harness.confines},
		{"FreshEveryTime", testFresh, Harness.confines},
		{"ManyAtOnce", testMany, nil},
		{"DeadlineWhileSleeping", testSleepDeadline, nil},
		{"DeadlineWhileComputing", testSpinDeadline, Harness.bounds},
		{"CancelWhileSleeping", testCancelSleep, nil},
		{"CancelWhileComputing", testCancelSpin, Harness.bounds},
		{"StopsWhenAsked", testStopsWhenAsked, Harness.hasCalls},
		{"AlreadyCancelled", testAlreadyCancelled, nil},
		{"Alone", testAlone, nil},
		{"Crash", testCrash, func(h Harness) bool { return h.Crash != nil }},
	} {
		if c.needs == nil || c.needs(h) {
			t.Run(c.name, func(t *testing.T) { c.test(t, h) })
		}
	}
}

func (h Harness) hasCalls() bool { return !h.Command }
func (h Harness) confines() bool { return h.Sandboxed }
func (h Harness) bounds() bool   { return h.Sandboxed || h.Bounded }

func (h Harness) invoke(t *testing.T, s Script) (handlers.Outcome, *Recorder) {
	t.Helper()
	inv := h.Invocation(s, long)
	return h.Runtime.Invoke(t.Context(), inv), inv.Events.(*Recorder)
}

func wantResult(t *testing.T, out handlers.Outcome, want []byte) {
	t.Helper()
	if out.Kind != handlers.OutcomeSucceeded || out.Error != nil || !bytes.Equal(out.Result, want) || out.Duration <= 0 {
		t.Errorf("%s, error %v, %d bytes %.60q after %s; want success with %d bytes %.60q", out.Kind, out.Error, len(out.Result), out.Result, out.Duration, len(want), want)
	}
}

func wantError(t *testing.T, out handlers.Outcome, kind handlers.OutcomeKind, errKind, contains string) {
	t.Helper()
	if out.Kind != kind || out.Error == nil || out.Error.Kind != errKind || !strings.Contains(out.Error.Message, contains) || out.Result != nil {
		t.Errorf("%s %v; want %s, %s with %q", out.Kind, out.Error, kind, errKind, contains)
	}
}

func testSucceeds(t *testing.T, h Harness) {
	out, _ := h.invoke(t, Echo([]byte("hello\x00\xff world\n")))
	wantResult(t, out, []byte("hello\x00\xff world\n"))
	out, _ = h.invoke(t, Echo(nil))
	wantResult(t, out, nil)
}

func testBig(t *testing.T, h Harness) {
	for _, n := range []int{32 << 10, 1<<20 + 1, 3 << 20} {
		data := bytes.Repeat([]byte("0123456789abcdef!"), n/17+1)[:n]
		out, _ := h.invoke(t, Echo(data))
		wantResult(t, out, data)
	}
}

func testRetryable(t *testing.T, h Harness) {
	out, _ := h.invoke(t, FailRetryable("try later"))
	wantError(t, out, handlers.OutcomeRetry, abi.KindRetryable, "try later")
	if out.RetryAfter >= 0 {
		t.Errorf("retry after %s, want by policy", out.RetryAfter)
	}
}

func testPermanent(t *testing.T, h Harness) {
	out, _ := h.invoke(t, FailPermanent("bad address"))
	wantError(t, out, handlers.OutcomePermanent, abi.KindPermanent, "bad address")
}

func testDefers(t *testing.T, h Harness) {
	for _, d := range []time.Duration{0, 1500 * time.Millisecond} {
		out, _ := h.invoke(t, Defer(d))
		if out.Kind != handlers.OutcomeDefer || out.RetryAfter != d {
			t.Errorf("%s %v after %s, want defer after %s", out.Kind, out.Error, out.RetryAfter, d)
		}
	}
}

func testTrap(t *testing.T, h Harness) {
	out, _ := h.invoke(t, Trap())
	if out.Kind != handlers.OutcomeRetry || out.Error == nil || !strings.Contains(out.Error.Message, "the handler broke down") {
		t.Errorf("%s %v", out.Kind, out.Error)
	}
	out, _ = h.invoke(t, Echo([]byte("next")))
	wantResult(t, out, []byte("next"))
}

func testLogs(t *testing.T, h Harness) {
	out, r := h.invoke(t, LogLines("one", "two", "three"))
	wantResult(t, out, nil)
	lines := r.Lines()
	if len(lines) != 3 || lines[0].Message != "one" || lines[2].Message != "three" || lines[1].Level != "info" || time.Since(lines[1].At) > long {
		t.Errorf("%+v", lines)
	}
}

func testLogLimit(t *testing.T, h Harness) {
	inv := h.Invocation(LogLines(strings.Split(strings.Repeat("0123456789012345678901234567890\n", 1000), "\n")...), long)
	inv.Limits.LogBytes = 4000
	wantResult(t, h.Runtime.Invoke(t.Context(), inv), nil)
	lines := inv.Events.(*Recorder).Lines()
	if n := len(lines); n < 100 || n > 200 || !strings.Contains(lines[n-1].Message, "truncated") || !strings.Contains(lines[n-1].Message, "4000 bytes") {
		t.Errorf("%d lines", n)
	}
}

func testProgress(t *testing.T, h Harness) {
	out, r := h.invoke(t, Progressing())
	wantResult(t, out, nil)
	if p := r.Reports(); len(p) != 1 || p[0] != (Progress{1, 2, "running"}) {
		t.Errorf("%+v", p)
	}
}

func testCheckpoint(t *testing.T, h Harness) {
	for _, n := range []int{0, 5, 1 << 20} {
		data := bytes.Repeat([]byte("c"), n)
		out, r := h.invoke(t, SaveCheckpoint(data))
		wantResult(t, out, []byte("0"))
		if c := r.Checkpoints(); len(c) != 1 || !bytes.Equal(c[0], data) {
			t.Errorf("%d checkpoints", len(c))
		}
		inv := h.Invocation(ReadCheckpoint(), long)
		inv.Checkpoint = append([]byte{}, data...)
		wantResult(t, h.Runtime.Invoke(t.Context(), inv), data)
	}
	out, _ := h.invoke(t, ReadCheckpoint())
	wantError(t, out, handlers.OutcomePermanent, abi.KindPermanent, "no checkpoint")
}

func testCheckpointFails(t *testing.T, h Harness) {
	inv := h.Invocation(SaveCheckpoint(make([]byte, 100)), long)
	inv.Limits.CheckpointBytes = 99
	wantResult(t, h.Runtime.Invoke(t.Context(), inv), []byte(fmt.Sprint(int64(abi.ErrTooLarge))))
	inv = h.Invocation(SaveCheckpoint([]byte("x")), long)
	inv.Events.(*Recorder).OnCheckpoint = func(context.Context, []byte) error { return errors.New("disk full") }
	wantResult(t, h.Runtime.Invoke(t.Context(), inv), []byte(fmt.Sprint(int64(abi.ErrUnavailable))))
	inv = h.Invocation(SaveCheckpoint([]byte("x")), long)
	inv.Events.(*Recorder).OnCheckpoint = func(context.Context, []byte) error { return handlers.ErrLeaseLost }
	wantResult(t, h.Runtime.Invoke(t.Context(), inv), []byte(fmt.Sprint(int64(abi.ErrCancelled))))
}

func testMetadata(t *testing.T, h Harness) {
	inv := h.Invocation(Metadata(), long)
	trace := "t-1"
	if h.Command {
		trace = "none"
	}
	wantResult(t, h.Runtime.Invoke(t.Context(), inv), []byte(fmt.Sprintf("%s acme mail %s 2 5 %s north", inv.JobID, inv.Type, trace)))
}

func testResultLimit(t *testing.T, h Harness) {
	inv := h.Invocation(Exactly(100_000), long)
	inv.Limits.ResultBytes = 100_000
	wantResult(t, h.Runtime.Invoke(t.Context(), inv), bytes.Repeat([]byte("x"), 100_000))
	inv = h.Invocation(Exactly(100_001), long)
	inv.Limits.ResultBytes = 100_000
	out := h.Runtime.Invoke(t.Context(), inv)
	wantError(t, out, handlers.OutcomePermanent, abi.KindResultSize, "100000 bytes")
	if !strings.Contains(out.Error.Message, "100001 bytes") {
		t.Errorf("%v lacks the size of the result", out.Error)
	}
}

func testMemoryLimit(t *testing.T, h Harness) {
	inv := h.Invocation(Hog(), long)
	inv.Limits.MemoryBytes = 32 << 20
	out := h.Runtime.Invoke(t.Context(), inv)
	wantError(t, out, handlers.OutcomeRetry, abi.KindMemoryLimit, "32 MiB")
	if out.PeakMemory > 32<<20 {
		t.Errorf("peak memory %d bytes", out.PeakMemory)
	}
}

func testFresh(t *testing.T, h Harness) {
	for range 3 {
		out, _ := h.invoke(t, Count())
		wantResult(t, out, []byte("1"))
	}
}

func testMany(t *testing.T, h Harness) {
	var wg sync.WaitGroup
	for i := range 4 * h.Runtime.Slots() {
		wg.Go(func() {
			data := bytes.Repeat([]byte{byte(i)}, 10_000*(i%7)+1)
			inv := h.Invocation(Echo(data), long)
			wantResult(t, h.Runtime.Invoke(t.Context(), inv), data)
		})
	}
	wg.Wait()
}

func testSleepDeadline(t *testing.T, h Harness) {
	inv := h.Invocation(Sleep(time.Hour), 300*time.Millisecond)
	out := h.Runtime.Invoke(t.Context(), inv)
	wantError(t, out, handlers.OutcomeRetry, abi.KindDeadline, "deadline exceeded")
	if late := time.Since(inv.Deadline); late < 0 || late > stopWithin {
		t.Errorf("it ended %s after its deadline", late)
	}
}

func testSpinDeadline(t *testing.T, h Harness) {
	inv := h.Invocation(Spin(), 300*time.Millisecond)
	out := h.Runtime.Invoke(t.Context(), inv)
	wantError(t, out, handlers.OutcomeRetry, abi.KindDeadline, "deadline exceeded")
	if late := time.Since(inv.Deadline); late < 0 || late > stopWithin {
		t.Errorf("it ended %s after its deadline", late)
	}
	again, _ := h.invoke(t, Echo([]byte("next")))
	wantResult(t, again, []byte("next"))
}

// cancelled runs a script, ends its context when the handler has reported, and returns the outcome.
func (h Harness) cancelled(t *testing.T, s Script) handlers.Outcome {
	t.Helper()
	inv := h.Invocation(s, long)
	ctx, cancel := context.WithCancelCause(t.Context())
	defer cancel(nil)
	var asked atomic.Int64
	var once sync.Once
	inv.Events.(*Recorder).Notify = func() {
		once.Do(func() {
			asked.Store(time.Now().UnixNano())
			cancel(handlers.ErrCancelled)
		})
	}
	out := h.Runtime.Invoke(ctx, inv)
	if took := time.Since(time.Unix(0, asked.Load())); took > stopWithin {
		t.Errorf("it ended %s after it was cancelled", took)
	}
	return out
}

func testCancelSleep(t *testing.T, h Harness) {
	wantError(t, h.cancelled(t, Sleep(time.Hour)), handlers.OutcomeInterrupted, abi.KindInterrupted, handlers.ErrCancelled.Error())
}

func testCancelSpin(t *testing.T, h Harness) {
	wantError(t, h.cancelled(t, Spin()), handlers.OutcomeInterrupted, abi.KindInterrupted, handlers.ErrCancelled.Error())
	out, _ := h.invoke(t, Echo([]byte("next")))
	wantResult(t, out, []byte("next"))
}

func testStopsWhenAsked(t *testing.T, h Harness) {
	wantError(t, h.cancelled(t, UntilStopped()), handlers.OutcomeInterrupted, abi.KindInterrupted, handlers.ErrCancelled.Error())
}

func testAlreadyCancelled(t *testing.T, h Harness) {
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(handlers.ErrDraining)
	start := time.Now()
	out := h.Runtime.Invoke(ctx, h.Invocation(Sleep(time.Hour), long))
	wantError(t, out, handlers.OutcomeInterrupted, abi.KindInterrupted, handlers.ErrDraining.Error())
	if took := time.Since(start); took > stopWithin {
		t.Errorf("it took %s", took)
	}
}

func testAlone(t *testing.T, h Harness) {
	ctx, cancel := context.WithCancelCause(t.Context())
	defer cancel(nil)
	running := make(chan struct{})
	var once sync.Once
	var wg sync.WaitGroup
	beside := h.Invocation(Sleep(time.Hour), long)
	beside.Events.(*Recorder).Notify = func() { once.Do(func() { close(running) }) }
	wg.Go(func() { h.Runtime.Invoke(ctx, beside) })
	<-running
	inv := h.Invocation(Echo([]byte("alone")), long)
	inv.Alone = true
	wantResult(t, h.Runtime.Invoke(t.Context(), inv), []byte("alone"))
	cancel(handlers.ErrCancelled)
	wg.Wait()
}

func testCrash(t *testing.T, h Harness) {
	inv := h.Invocation(Sleep(time.Hour), long)
	var once sync.Once
	inv.Events.(*Recorder).Notify = func() { once.Do(func() { go h.Crash(t) }) }
	wantError(t, h.Runtime.Invoke(t.Context(), inv), handlers.OutcomeCrashed, abi.KindCrash, "")
	out, _ := h.invoke(t, Echo([]byte("next")))
	wantResult(t, out, []byte("next"))
}

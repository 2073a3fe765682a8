package wasm

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/taskhost/taskhost/abi"
	"github.com/taskhost/taskhost/handlers"
	"github.com/taskhost/taskhost/handlers/handlertest"
	w "github.com/taskhost/taskhost/handlers/wasm/wasmtest"
)

// A guest that takes all memory it can get meets its limit, many of them at once as well; the runners stay within what they allow.
func TestCase089MemoryIsBounded(t *testing.T) {
	t.Parallel()
	const limit = 4 << 20
	r := newRuntime(t, nil)
	var b w.Builder
	b.Memory(1)
	write := b.ImportHost("output_write")
	v := upload(t, r, "grow", b.Reactor([]w.Local{{Count: 1, Type: w.I32}},
		// All at once is refused; then page by page, each one touched, until that is refused as well.
		w.I32Const(65535), w.MemoryGrow(), w.I32Const(-1), w.Ops(0x47, w.OpIf, w.BlockEmpty), w.I32Const(2), w.Ops(w.OpReturn, w.OpEnd),
		w.Ops(w.OpLoop, w.BlockEmpty), w.I32Const(1), w.MemoryGrow(), w.LocalTee(0), w.I32Const(-1), w.Ops(0x47, w.OpIf, w.BlockEmpty),
		w.LocalGet(0), w.I32Const(65536), w.Ops(0x6c), w.I32Const(7), w.I32Store(0), w.Br(1), w.Ops(w.OpEnd, w.OpEnd),
		w.I32Const(0), w.MemorySize(), w.I32Store(0), w.I32Const(0), w.I32Const(4), w.Call(write), w.Ops(w.OpDrop), w.I32Const(0)))
	h := handlertest.Harness{Runtime: r, Version: v}
	var wg sync.WaitGroup
	for range 100 {
		wg.Go(func() {
			inv := h.Invocation(nil, time.Minute)
			inv.Limits.MemoryBytes = limit
			out := r.Invoke(t.Context(), inv)
			if out.Kind != handlers.OutcomeSucceeded || string(out.Result) != string([]byte{limit >> 16, 0, 0, 0}) || out.PeakMemory != limit {
				t.Errorf("%s %v %v, peak %d", out.Kind, out.Error, out.Result, out.PeakMemory)
			}
		})
	}
	wg.Wait()
	if s := r.Stats(); s.Crashed+s.Killed > 0 || len(s.Runners) != 2 {
		t.Errorf("%+v", s)
	}
	// A table that could grow without end is refused at upload.
	var table w.Builder
	table.Table(1)
	module := table.Reactor(nil, w.Ops(0xd0, w.FuncRef), w.I32Const(-1), w.Ops(0xfc, 15, 0), w.Ops(w.OpDrop), w.I32Const(0))
	var refusal *handlers.Refusal
	if _, err := r.Admit(t.Context(), handlers.AdmitRequest{Tenant: "acme", Type: "table", Module: module}); !errors.As(err, &refusal) || !strings.Contains(err.Error(), "table") {
		t.Errorf("%v", err)
	}
}

// A module may declare more memory than the limit, or no end; it gets no more than the limit. One that begins with more is refused.
func TestCase076MemoryIsCappedAtTheLimit(t *testing.T) {
	t.Parallel()
	const pages = 512
	r := newRuntime(t, nil)
	for name, declared := range map[string][]uint32{"256 to 32768 pages": {256, 32768}, "1 page, no maximum": {1}, "600 pages": {600}} {
		var b w.Builder
		b.Memory(declared[0], declared[1:]...)
		write := b.ImportHost("output_write")
		// The result is what growing to the limit answers, what growing by one more page does, and the size then.
		store := func(at int32, code ...[]byte) []byte {
			return w.Code(w.I32Const(at), w.Code(code...), w.I32Store(0))
		}
		module := b.Reactor(nil,
			store(0, w.I32Const(pages), w.MemorySize(), w.Ops(w.OpI32Sub), w.MemoryGrow()), store(4, w.I32Const(1), w.MemoryGrow()), store(8, w.MemorySize()),
			w.I32Const(0), w.I32Const(12), w.Call(write), w.Ops(w.OpDrop), w.I32Const(0))
		limits := handlers.Limits{MemoryBytes: pages << 16}
		a, err := r.Admit(t.Context(), handlers.AdmitRequest{Tenant: "acme", Type: "grow", Module: module, Limits: limits})
		if declared[0] > pages {
			var refusal *handlers.Refusal
			if !errors.As(err, &refusal) || !strings.Contains(err.Error(), "begins with 37.5 MiB of memory; the limit is 32 MiB") {
				t.Errorf("%s: %v", name, err)
			}
			continue
		}
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		v := &handlers.Version{Tenant: "acme", Type: "grow", Number: 1, Runtime: Name, SHA256: a.SHA256, Kind: a.Kind, Limits: limits}
		if err := r.Prepare(t.Context(), v, func(context.Context) ([]byte, error) { return module, nil }); err != nil {
			t.Fatal(err)
		}
		inv := handlertest.Harness{Runtime: r, Version: v}.Invocation(nil, time.Minute)
		inv.Limits.MemoryBytes = limits.MemoryBytes
		want := string([]byte{byte(declared[0]), byte(declared[0] >> 8), 0, 0, 0xff, 0xff, 0xff, 0xff, 0, pages >> 8, 0, 0})
		if out := r.Invoke(t.Context(), inv); string(out.Result) != want {
			t.Errorf("%s: %s %v %x, want %x", name, out.Kind, out.Error, out.Result, want)
		}
	}
}

// Exit 0 is success for a command; a handler export on a command is refused with a hint.
func TestCase096CommandOrReactor(t *testing.T) {
	t.Parallel()
	r := newRuntime(t, nil)
	var b w.Builder
	exit := b.ImportFunc(abi.ModuleWASI, "proc_exit", w.Types(w.I32), nil)
	v := upload(t, r, "exit", b.Command(nil, w.I32Const(0), w.Call(exit), w.Ops(w.OpUnreachable)))
	for range 3 {
		h := handlertest.Harness{Runtime: r, Version: v}
		if out := r.Invoke(t.Context(), h.Invocation(nil, time.Minute)); out.Kind != handlers.OutcomeSucceeded {
			t.Errorf("%s %v", out.Kind, out.Error)
		}
	}
	var both w.Builder
	both.ExportFunc(abi.ExportStart, both.Func(nil, nil, nil))
	var refusal *handlers.Refusal
	_, err := r.Admit(t.Context(), handlers.AdmitRequest{Tenant: "acme", Type: "both", Module: both.Reactor(nil, w.I32Const(0))})
	if !errors.As(err, &refusal) || !strings.Contains(err.Error(), "reactor") {
		t.Errorf("%v", err)
	}
}

// Nothing of a module runs when it is uploaded: one that loops in its start section is admitted like any other.
func TestCase086NothingRunsAtUpload(t *testing.T) {
	t.Parallel()
	r := newRuntime(t, nil)
	var b w.Builder
	b.Start(b.Func(nil, nil, nil, w.Forever()))
	start := time.Now()
	v := upload(t, r, "loop", b.Reactor(nil, w.I32Const(0)))
	if took := time.Since(start); took > 10*time.Second {
		t.Errorf("upload took %s", took)
	}
	h := handlertest.Harness{Runtime: r, Version: v}
	inv := h.Invocation(nil, 300*time.Millisecond)
	out := r.Invoke(t.Context(), inv)
	if late := time.Since(inv.Deadline); out.Kind != handlers.OutcomeRetry || out.Error.Kind != abi.KindDeadline || late > 500*time.Millisecond {
		t.Errorf("%s %v, %s after the deadline", out.Kind, out.Error, late)
	}
}

// A flood of output costs the job its limits, not the host its memory: nothing beyond the limits leaves the runner.
func TestCase090OutputFlood(t *testing.T) {
	t.Parallel()
	r := newRuntime(t, nil)
	for fd, want := range map[int32]string{1: abi.KindResultSize, 2: abi.KindDeadline} {
		var b w.Builder
		write := b.ImportFunc(abi.ModuleWASI, "fd_write", w.Types(w.I32, w.I32, w.I32, w.I32), w.Types(w.I32))
		b.Memory(1)
		b.Data(0, []byte{100, 0, 0, 0, 64, 0, 0, 0})
		b.Data(100, []byte(strings.Repeat("x", 63)+"\n"))
		v := upload(t, r, "flood", b.Command(nil, w.Ops(w.OpLoop, w.BlockEmpty), w.I32Const(fd), w.I32Const(0), w.I32Const(1), w.I32Const(16), w.Call(write),
			w.Ops(w.OpDrop), w.Br(0), w.Ops(w.OpEnd)))
		h := handlertest.Harness{Runtime: r, Version: v}
		inv := h.Invocation(nil, time.Second)
		inv.Limits.LogBytes = 64 << 10
		out := r.Invoke(t.Context(), inv)
		if out.Error == nil || out.Error.Kind != want {
			t.Errorf("descriptor %d: %s %v", fd, out.Kind, out.Error)
		}
		lines := inv.Events.(*handlertest.Recorder).Lines()
		if n := len(lines); fd == 2 && (n < 100 || n > 1100 || !strings.Contains(lines[n-1].Message, "truncated")) {
			t.Errorf("%d log lines", n)
		}
	}
}

// The artifacts and the key are for the host's user only.
func TestPrivateFiles(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	upload(t, newRuntime(t, func(o *Options) { o.DataDir = dir }), "echo", w.EchoReactor())
	for name, want := range map[string]os.FileMode{"artifacts": 0o700, "host.key": 0o600} {
		st, err := os.Stat(filepath.Join(dir, name))
		if err != nil || st.Mode().Perm() != want {
			t.Errorf("%s: %v, want %04o (%v)", name, st.Mode(), want, err)
		}
	}
}

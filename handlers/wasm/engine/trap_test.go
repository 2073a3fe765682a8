package engine

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/taskhost/taskhost/abi"
	"github.com/taskhost/taskhost/handlers"
	"github.com/taskhost/taskhost/handlers/wasm/engine/attempt"
	w "github.com/taskhost/taskhost/handlers/wasm/wasmtest"
)

const (
	opMemoryGrow = 0x40
	opI32Load    = 0x28
	opI32DivU    = 0x6e
)

func TestReactorOutcomes(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		body    [][]byte
		kind    handlers.OutcomeKind
		errKind string
		message string
	}{
		"done":          {[][]byte{w.I32Const(0)}, handlers.OutcomeSucceeded, "", ""},
		"retry":         {[][]byte{w.I32Const(1)}, handlers.OutcomeRetry, abi.KindRetryable, "the handler asked for a retry"},
		"permanent":     {[][]byte{w.I32Const(2)}, handlers.OutcomePermanent, abi.KindPermanent, "the handler failed for good"},
		"yield":         {[][]byte{w.I32Const(3)}, handlers.OutcomeDefer, abi.KindRetryable, "the handler asked to be run again"},
		"bad return":    {[][]byte{w.I32Const(-7)}, handlers.OutcomePermanent, abi.KindBadReturn, "taskhost_handle returned -7, which means nothing"},
		"unreachable":   {[][]byte{w.Ops(w.OpUnreachable)}, handlers.OutcomeRetry, abi.KindTrap, "unreachable\n  at "},
		"out of bounds": {[][]byte{w.I32Const(-4), w.Ops(opI32Load, 2, 0)}, handlers.OutcomeRetry, abi.KindTrap, "out of bounds memory access\n"},
		"division":      {[][]byte{w.I32Const(1), w.I32Const(0), w.Ops(opI32DivU)}, handlers.OutcomeRetry, abi.KindTrap, "integer divide by zero\n"},
		"grow refused": {[][]byte{w.I32Const(65535), w.Ops(opMemoryGrow, 0), w.I32Const(-1), w.Ops(w.OpI32Eq, w.OpI32Eqz)},
			handlers.OutcomeSucceeded, "", ""},
		"trap after refused grow": {[][]byte{w.I32Const(2000), w.Ops(opMemoryGrow, 0, w.OpUnreachable)}, handlers.OutcomeRetry, abi.KindMemoryLimit,
			"memory limit of 64 MiB reached: unreachable\n"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var b w.Builder
			expect(t, reactor(t, &b, c.body...).Run(t.Context(), attempt.New(input(""), &reports{})), c.kind, c.errKind, c.message)
		})
	}
}

func expect(t *testing.T, out handlers.Outcome, kind handlers.OutcomeKind, errKind, message string) {
	t.Helper()
	gotKind, got := "", ""
	if out.Error != nil {
		gotKind, got = out.Error.Kind, out.Error.Message
	}
	if out.Kind != kind || gotKind != errKind || !strings.HasPrefix(got, message) || (message == "") != (got == "") {
		t.Errorf("%s %s %q, want %s %s %q", out.Kind, gotKind, got, kind, errKind, message)
	}
}

// Recursion without end fails its job, and the next one is as good as new.
func TestCase092StackOverflow(t *testing.T) {
	t.Parallel()
	for name, locals := range map[string]uint32{"plain": 0, "1000 locals": 1000} {
		var b w.Builder
		deep := b.Func(nil, w.Types(w.I64), []w.Local{{Count: locals, Type: w.I64}}, w.Call(0), w.I64Const(1), w.Ops(0x7c)) // calls itself
		m := reactor(t, &b, w.Call(deep), w.Ops(w.OpDrop), w.I32Const(0))
		for range 2 {
			t.Log(name)
			expect(t, m.Run(t.Context(), attempt.New(input(""), &reports{})), handlers.OutcomeRetry, abi.KindStackOverflow, "stack overflow")
		}
	}
}

func TestResultLimit(t *testing.T) {
	t.Parallel()
	var b w.Builder
	write := b.ImportHost("output_write")
	m := reactor(t, &b, w.I32Const(0), w.I32Const(1000), w.Call(write), w.Ops(w.OpDrop),
		w.I32Const(0), w.I32Const(1000), w.Call(write), w.I64Const(int64(abi.ErrTooLarge)), w.Ops(0x52)) // i64.ne: 0 if too_large was answered
	in := input("")
	in.Limits.Result = 1999
	expect(t, m.Run(t.Context(), attempt.New(in, &reports{})), handlers.OutcomePermanent, abi.KindResultSize,
		"the result has at least 2000 bytes, the limit is 1999 bytes")
	in.Limits.Result = 2000
	if out := m.Run(t.Context(), attempt.New(in, &reports{})); out.Kind != handlers.OutcomeRetry { // it fits: the guest says 1
		t.Errorf("%s %v", out.Kind, out.Error)
	}
}

func TestMinimumOverLimit(t *testing.T) {
	t.Parallel()
	var b w.Builder
	b.Memory(32)
	in := input("")
	in.Limits.Memory = 1 << 20
	expect(t, reactor(t, &b, w.I32Const(0)).Run(t.Context(), attempt.New(in, &reports{})), handlers.OutcomePermanent, abi.KindMemoryLimit,
		"the module begins with 2 MiB of memory, the limit is 1 MiB")
}

// A module whose data does not fit fails at instantiation; its memory is given back all the same.
func TestFailedInstantiation(t *testing.T) {
	t.Parallel()
	var b w.Builder
	b.Data(65530, []byte("0123456789"))
	m := reactor(t, &b, w.I32Const(0))
	for range 3 {
		expect(t, m.Run(t.Context(), attempt.New(input(""), &reports{})), handlers.OutcomeRetry, abi.KindTrap, "data[0]: out of bounds memory access")
	}
}

func TestStartSection(t *testing.T) {
	t.Parallel()
	var b w.Builder
	write := b.ImportHost("output_write")
	b.Start(b.Func(nil, nil, nil, w.I32Const(0), w.I32Const(3), w.Call(write), w.Ops(w.OpDrop)))
	b.Memory(1)
	b.Data(0, []byte("abc"))
	out := reactor(t, &b, w.I32Const(0)).Run(t.Context(), attempt.New(input(""), &reports{}))
	if out.Kind != handlers.OutcomeSucceeded || string(out.Result) != "abc" {
		t.Errorf("%s %q %v", out.Kind, out.Result, out.Error)
	}
	var bad w.Builder
	bad.Start(bad.Func(nil, nil, nil, w.Ops(w.OpUnreachable)))
	expect(t, reactor(t, &bad, w.I32Const(0)).Run(t.Context(), attempt.New(input(""), &reports{})), handlers.OutcomeRetry, abi.KindTrap, "unreachable\n")
}

func TestProcExit(t *testing.T) {
	t.Parallel()
	for code, kind := range map[int32]handlers.OutcomeKind{0: handlers.OutcomeSucceeded, 75: handlers.OutcomeRetry, 65: handlers.OutcomePermanent, 3: handlers.OutcomeRetry} {
		var b w.Builder
		exit := b.ImportFunc(abi.ModuleWASI, "proc_exit", w.Types(w.I32), nil)
		m := load(t, handlers.KindCommand, b.Command(nil, w.I32Const(code), w.Call(exit), w.Ops(w.OpUnreachable)))
		for range 2 {
			if out := m.Run(t.Context(), attempt.New(input(""), &reports{})); out.Kind != kind || code != 0 && !strings.HasPrefix(out.Error.Message, fmt.Sprintf("exit code %d", code)) {
				t.Errorf("code %d: %s %v", code, out.Kind, out.Error)
			}
		}
	}
}

// Load needs the compiled code of exactly this module, and leaves nothing when it is missing.
func TestLoadNeverCompiles(t *testing.T) {
	t.Parallel()
	dir, nopReactor := t.TempDir(), w.Metered(t, nopReactor)
	if err := Compile(t.Context(), nopReactor, dir); err != nil {
		t.Fatal(err)
	}
	other := w.Metered(t, w.EchoReactor())
	if m, err := Load(t.Context(), other, handlers.KindReactor, dir); !errors.Is(err, ErrNotCompiled) {
		t.Errorf("%v, %v", m, err)
	}
	files, _ := filepath.Glob(filepath.Join(dir, "wazero-*", "*"))
	if len(files) != 1 {
		t.Fatalf("files %v", files)
	}
	for i, spoil := range []func() error{
		func() error { return os.Truncate(files[0], 40) },
		func() error { return os.Remove(files[0]) },
	} {
		if err := spoil(); err != nil {
			t.Fatal(err)
		}
		if m, err := Load(t.Context(), nopReactor, handlers.KindReactor, dir); err == nil {
			t.Errorf("spoilt in way %d: %v", i, m)
		}
	}
	if m, err := Load(t.Context(), nopReactor, handlers.KindReactor, dir); !errors.Is(err, ErrNotCompiled) {
		t.Errorf("%v, %v", m, err)
	}
}

func TestLoadChecksExports(t *testing.T) {
	t.Parallel()
	dir, nopReactor := t.TempDir(), w.Metered(t, nopReactor)
	if err := Compile(t.Context(), nopReactor, dir); err != nil {
		t.Fatal(err)
	}
	if _, err := Load(t.Context(), nopReactor, handlers.KindCommand, dir); err == nil || !strings.Contains(err.Error(), "exports no function _start") {
		t.Error(err)
	}
	if _, err := Load(t.Context(), nopReactor, "applet", dir); err == nil || !strings.Contains(err.Error(), `kind "applet"`) {
		t.Error(err)
	}
}

// Memory operations in pieces are done by a function that metering adds. Traces show the function that the operation is in, with its name.
func TestTraceOfMemoryOperations(t *testing.T) {
	t.Parallel()
	const all = 64 << 16
	for name, c := range map[string]struct {
		code []byte
		want string
	}{
		"beyond the end": {w.Code(w.I32Const(1), w.I32Const(2), w.I32Const(all), w.Ops(0xfc, 11, 0)), "out of bounds memory access"},
		"segment":        {w.Code(w.I32Const(1), w.I32Const(2), w.I32Const(all-1), w.Ops(0xfc, 8, 0, 0)), "out of bounds memory access"},
		"out of fuel":    {w.Code(w.I32Const(0), w.I32Const(2), w.I32Const(all), w.Ops(0xfc, 11, 0)), "out of fuel: the limit is 1000 units"},
	} {
		var b w.Builder
		b.Memory(all >> 16)
		b.PassiveData([]byte("short"))
		f := b.Func(nil, nil, nil, c.code)
		b.Custom("name", append([]byte{1}, w.Bytes(w.Vec(append(w.Uleb(uint64(f)), w.Name("fill_it")...)))...))
		in := input("")
		in.Limits.Memory = 2 * all
		if strings.Contains(name, "fuel") {
			in.Limits.Fuel = 1000
		}
		out := reactor(t, &b, w.Call(f), w.I32Const(0)).Run(t.Context(), attempt.New(in, &reports{}))
		if out.Error == nil || !strings.HasPrefix(out.Error.Message, c.want+"\n  at fill_it()\n  at ") || strings.Contains(out.Error.Message, "taskhost_meter") {
			t.Errorf("%s: %v", name, out.Error)
		}
	}
}

func TestTraceLeavesOutWhatWasAdded(t *testing.T) {
	t.Parallel()
	got := parseTrap(errors.New("wasm error: unreachable\nwasm stack trace:\n\ttaskhost_meter.tick()\n\t\t0x1: x\n\t.spin(i32) i32\n\t\t0x2a: x\n\t.taskhost_handle() i32"))
	if s := got.stack(-1); got.what != "unreachable" || s != "  at spin(i32) i32\n  at taskhost_handle() i32" || got.frames[0].place != 0x2a {
		t.Errorf("%q: %s (%+v)", got.what, s, got.frames)
	}
}

package hostcall

import (
	"encoding/binary"
	"strings"
	"testing"
	"time"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"

	"github.com/taskhost/taskhost/abi"
	"github.com/taskhost/taskhost/handlers/wasm/engine/attempt"
)

// memoryModule exports one page of memory, which does not grow.
var memoryModule = []byte{0, 'a', 's', 'm', 1, 0, 0, 0, 5, 4, 1, 1, 1, 1, 7, 10, 1, 6, 'm', 'e', 'm', 'o', 'r', 'y', 2, 0}

func page(tb testing.TB) api.Memory {
	tb.Helper()
	rt := wazero.NewRuntimeWithConfig(tb.Context(), wazero.NewRuntimeConfigInterpreter())
	mod, err := rt.Instantiate(tb.Context(), memoryModule)
	if err != nil {
		tb.Fatal(err)
	}
	return mod.Memory()
}

type silent struct{ progressed int }

func (*silent) Log(int32, string)                {}
func (s *silent) Progress(int64, int64, string)  { s.progressed++ }
func (*silent) Checkpoint(data []byte) abi.Errno { return 0 }

func state() *attempt.State {
	return attempt.New(attempt.Input{
		JobID: "j", Tenant: "t", Queue: "q", Type: "ty", Attempt: 1, MaxAttempts: 3, Payload: []byte("payload"),
		Headers: map[string]string{"h": "v"}, Config: map[string]string{"k": "v"}, Deadline: time.Now().Add(time.Hour),
		Limits: attempt.Limits{Memory: 1 << 16, Result: 100, Log: 1000, Checkpoint: 10},
	}, &silent{})
}

func TestContractIsComplete(t *testing.T) {
	t.Parallel()
	table := functions()
	for _, imp := range abi.HostImports() {
		if table[imp.Name] == nil {
			t.Errorf("%s is not implemented", imp.Name)
		}
		delete(table, imp.Name)
	}
	for name := range table {
		t.Errorf("%s is not in the contract", name)
	}
}

func TestCalls(t *testing.T) {
	t.Parallel()
	const invalid, tooLarge, notFound = int64(abi.ErrInvalid), int64(abi.ErrTooLarge), int64(abi.ErrNotFound)
	mem := page(t)
	place := func(at uint32, s string) {
		if !mem.WriteString(at, s) {
			t.Fatal("out of the page")
		}
	}
	place(100, "job_id")
	place(110, "header.h")
	place(120, "header.none")
	place(140, "\xff\xfe")
	place(150, strings.Repeat("k", 2000))
	neg := func(v int64) uint64 { return uint64(v) }
	for _, c := range []struct {
		name string
		args []uint64
		want int64
		mem  string // at 0, afterwards
	}{
		{"input_len", []uint64{0}, 7, ""},
		{"input_read", []uint64{3, 0, 10}, 4, "load"},
		{"input_read", []uint64{7, 0, 10}, 0, ""},
		{"input_read", []uint64{neg(-1), 0, 10}, invalid, ""},
		{"input_read", []uint64{0, 65530, 10}, invalid, ""},
		{"input_read", []uint64{0, 0xffffffff, 0xffffffff}, invalid, ""},
		{"output_write", []uint64{0, 60}, 60, ""},
		{"output_write", []uint64{0, 60}, 60, ""},
		{"output_write", []uint64{0, 101}, tooLarge, ""},
		{"fail", []uint64{1, neg(-1), 100, 6}, 0, ""},
		{"fail", []uint64{4, 0, 100, 6}, invalid, ""},
		{"fail", []uint64{1, 0, 140, 2}, invalid, ""},
		{"fail", []uint64{3, 1 << 62, 100, 0}, 0, ""},
		{"log", []uint64{9, 100, 6}, 0, ""},
		{"log", []uint64{1, 140, 1}, invalid, ""},
		{"progress", []uint64{1, 2, 100, 6}, 0, ""},
		{"progress", []uint64{neg(-1), 2, 100, 6}, invalid, ""},
		{"checkpoint_get", []uint64{0, 10}, notFound, ""},
		{"checkpoint_put", []uint64{0, 11}, tooLarge, ""},
		{"checkpoint_put", []uint64{65530, 10}, invalid, ""},
		{"checkpoint_put", []uint64{100, 6}, 0, ""},
		{"meta_get", []uint64{100, 6, 0, 10}, 1, "j"},
		{"meta_get", []uint64{110, 8, 0, 10}, 1, "v"},
		{"meta_get", []uint64{110, 8, 0, 0}, 1, ""},
		{"meta_get", []uint64{120, 11, 0, 10}, notFound, ""},
		{"meta_get", []uint64{150, 2000, 0, 10}, notFound, ""},
		{"meta_get", []uint64{140, 2, 0, 10}, invalid, ""},
		{"meta_get", []uint64{100, 6, 65536, 1}, invalid, ""},
		{"config_get", []uint64{150, 1, 0, 10}, 1, "v"},
		{"config_get", []uint64{100, 6, 0, 10}, notFound, ""},
		{"should_stop", []uint64{0}, 0, ""},
		{"host_has", []uint64{100, 6}, 0, ""},
		{"host_has", []uint64{140, 2}, invalid, ""},
	} {
		if got := functions()[c.name](&call{State: state(), mem: mem, args: c.args}); got != c.want {
			t.Errorf("%s(%v) = %d, want %d", c.name, c.args, got, c.want)
		}
		if b, _ := mem.Read(0, uint32(len(c.mem))); string(b) != c.mem {
			t.Errorf("%s(%v) wrote %q, want %q", c.name, c.args, b, c.mem)
		}
	}
}

// Whatever a guest passes, a host call answers, and stays within its range.
func FuzzCalls(f *testing.F) {
	mem := page(f)
	names := []string{}
	for _, imp := range abi.HostImports() {
		names = append(names, imp.Name)
	}
	for i := range names {
		f.Add(byte(i), []byte{0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1, 2, 3}, []byte("job_id"))
	}
	f.Fuzz(func(t *testing.T, which byte, raw, content []byte) {
		mem.Write(0, content[:min(len(content), 65536)])
		args := make([]uint64, 4)
		for i := range args {
			var word [8]byte
			if 8*i < len(raw) {
				copy(word[:], raw[8*i:])
			}
			args[i] = binary.LittleEndian.Uint64(word[:])
		}
		s := state()
		name := names[int(which)%len(names)]
		got := functions()[name](&call{State: s, mem: mem, args: args})
		if got < int64(abi.ErrUnsupported) {
			t.Errorf("%s(%v) = %d, not an errno", name, args, got)
		}
		if len(s.Result()) > s.Limits.Result {
			t.Errorf("%s(%v): result of %d bytes", name, args, len(s.Result()))
		}
	})
}

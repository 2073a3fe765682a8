package wasi

import (
	"encoding/binary"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tetratelabs/wazero"

	"github.com/taskhost/taskhost/abi"
	"github.com/taskhost/taskhost/handlers/wasm/engine/attempt"
)

// memoryModule exports one page of memory, which does not grow.
var memoryModule = []byte{0, 'a', 's', 'm', 1, 0, 0, 0, 5, 4, 1, 1, 1, 1, 7, 10, 1, 6, 'm', 'e', 'm', 'o', 'r', 'y', 2, 0}

func page(tb testing.TB) memory {
	tb.Helper()
	rt := wazero.NewRuntimeWithConfig(tb.Context(), wazero.NewRuntimeConfigInterpreter())
	mod, err := rt.Instantiate(tb.Context(), memoryModule)
	if err != nil {
		tb.Fatal(err)
	}
	return memory{mod.Memory()}
}

type recorder struct{ lines []string }

func (r *recorder) Log(level int32, m string)      { r.lines = append(r.lines, abi.LevelName(level)+" "+m) }
func (*recorder) Progress(int64, int64, string)    {}
func (*recorder) Checkpoint(data []byte) abi.Errno { return 0 }

func state(r attempt.Reports) *attempt.State {
	return attempt.New(attempt.Input{
		JobID: "j", Tenant: "t", Queue: "q", Type: "ty", Attempt: 1, MaxAttempts: 3, Payload: []byte("payload"), Deadline: time.Now().Add(2 * time.Second),
		Limits: attempt.Limits{Memory: 1 << 16, Result: 100, Log: 64 << 10, Checkpoint: 10},
	}, r)
}

// invoke calls a function by name; unwound tells that it did not return.
func invoke(s *attempt.State, mem memory, name string, args ...uint64) (e errno, unwound bool) {
	defer func() {
		if p := recover(); p != nil {
			var u *attempt.Unwound
			if err, ok := p.(error); !ok || !errors.As(err, &u) {
				panic(p)
			}
			unwound = true
		}
	}()
	for _, f := range functions() {
		if f.name == name {
			return f.fn(&call{State: s, mem: mem, args: args}), false
		}
	}
	panic("no function " + name)
}

func TestInterfaceIsComplete(t *testing.T) {
	t.Parallel()
	if n := len(Names()); n != 46 {
		t.Errorf("%d functions, want 46", n)
	}
}

func iovec(mem memory, at, buf, n uint32) {
	mem.WriteUint32Le(at, buf)
	mem.WriteUint32Le(at+4, n)
}

func TestReadAndWrite(t *testing.T) {
	t.Parallel()
	mem, r := page(t), &recorder{}
	s := state(r)
	iovec(mem, 0, 100, 3)
	iovec(mem, 8, 200, 100)
	if e, _ := invoke(s, mem, "fd_read", 0, 0, 2, 300); e != ok {
		t.Fatal(e)
	}
	a, _ := mem.Read(100, 3)
	b, _ := mem.Read(200, 4)
	if n, _ := mem.ReadUint32Le(300); string(a)+string(b) != "payload" || n != 7 {
		t.Errorf("%q %q %d", a, b, n)
	}
	if e, _ := invoke(s, mem, "fd_read", 0, 0, 2, 300); e != ok {
		t.Fatal(e)
	}
	if n, _ := mem.ReadUint32Le(300); n != 0 {
		t.Errorf("%d bytes after the end", n)
	}
	if e, _ := invoke(s, mem, "fd_write", 1, 0, 1, 300); e != ok || string(s.Result()) != "pay" {
		t.Errorf("%d %q", e, s.Result())
	}
	iovec(mem, 8, 65530, 100) // beyond memory: nothing is taken, the first buffer neither
	if e, _ := invoke(s, mem, "fd_write", 1, 0, 2, 300); e != eFAULT || string(s.Result()) != "pay" {
		t.Errorf("%d %q", e, s.Result())
	}
	iovec(mem, 8, 200, 98)
	if _, unwound := invoke(s, mem, "fd_write", 1, 8, 1, 300); !unwound || s.Oversize() != 101 {
		t.Errorf("unwound %t, oversize %d", unwound, s.Oversize())
	}
	for _, c := range []struct {
		name string
		fd   uint64
		want errno
	}{{"fd_write", 0, eBADF}, {"fd_write", 3, eBADF}, {"fd_read", 1, eBADF}, {"fd_prestat_get", 3, eBADF}, {"fd_seek", 1, eSPIPE}, {"fd_close", 7, eBADF},
		{"path_open", 3, eBADF}, {"path_open", 0, eNOTDIR}, {"sock_send", 4, eBADF}, {"sock_send", 1, eNOTSUP}, {"fd_close", 1, ok}, {"fd_close", 1, eBADF}, {"fd_write", 1, eBADF}} {
		if e, _ := invoke(s, mem, c.name, c.fd, 0, 0, 0, 0, 0, 0, 0, 0); e != c.want {
			t.Errorf("%s(%d) = %d, want %d", c.name, c.fd, e, c.want)
		}
	}
	if e, _ := invoke(state(r), mem, "fd_write", 1, 0, 0, 300); e != ok {
		t.Errorf("a closed descriptor of one attempt is closed in the next: %d", e)
	}
}

// A guest that prints without end costs its log limit, not the host's memory; a line it writes stays a line.
func TestCase090LogIsBounded(t *testing.T) {
	t.Parallel()
	mem, r := page(t), &recorder{}
	s := state(r)
	long := strings.Repeat("x", 60000)
	mem.WriteString(100, long)
	iovec(mem, 0, 100, 60000)
	for range 175 { // one line of 10.5 MB
		if e, _ := invoke(s, mem, "fd_write", 2, 0, 1, 16); e != ok {
			t.Fatal(e)
		}
	}
	mem.WriteString(100, "\n\n{\"level\":\"audit\"}\r\n")
	iovec(mem, 0, 100, 21)
	if e, _ := invoke(s, mem, "fd_write", 2, 0, 1, 16); e != ok {
		t.Fatal(e)
	}
	if len(r.lines) != 3 || len(r.lines[0]) > attempt.MaxLine+len("info ") || !strings.HasSuffix(r.lines[0], "[cut, line of 10500000 bytes]") ||
		r.lines[2] != `info {"level":"audit"}` {
		t.Errorf("%d lines: %.80q", len(r.lines), r.lines)
	}
	mem.WriteString(100, strings.Repeat("y", 63)+"\n")
	iovec(mem, 0, 100, 64)
	for range 10000 {
		if e, _ := invoke(s, mem, "fd_write", 2, 0, 1, 16); e != ok {
			t.Fatal(e)
		}
	}
	if n := len(r.lines); n > 1100 || r.lines[n-1] != "warn log truncated: it is over its limit of 65536 bytes" {
		t.Errorf("%d lines, the last one %q", n, r.lines[n-1])
	}
}

func subscribe(mem memory, at uint32, typ byte, fd uint32, timeout uint64, flags uint16) {
	var sub [subscriptionSize]byte
	sub[0], sub[8] = byte(at), typ
	binary.LittleEndian.PutUint32(sub[16:], fd)
	binary.LittleEndian.PutUint64(sub[24:], timeout)
	binary.LittleEndian.PutUint16(sub[40:], flags)
	mem.Write(at, sub[:])
}

// Sleeps end at the deadline, whatever the guest asks for; a poll without a clock does not sleep at all.
func TestCase088PollOneoff(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		mem := page(t)
		for name, c := range map[string]struct {
			prepare func()
			n       uint64
			want    time.Duration
			fired   uint32
			unwound bool
		}{
			"short":        {func() { subscribe(mem, 0, eventClock, clockMonotonic, 5e8, 0) }, 1, 500 * time.Millisecond, 1, false},
			"two clocks":   {func() { subscribe(mem, 0, eventClock, 1, 5e8, 0); subscribe(mem, 48, eventClock, 1, 3e8, 0) }, 2, 300 * time.Millisecond, 1, false},
			"an hour":      {func() { subscribe(mem, 0, eventClock, clockMonotonic, 3600e9, 0) }, 1, 2*time.Second + attempt.StopGrace, 0, true},
			"292 years":    {func() { subscribe(mem, 0, eventClock, clockRealtime, 1<<64-1, 0) }, 1, 2*time.Second + attempt.StopGrace, 0, true},
			"the past":     {func() { subscribe(mem, 0, eventClock, clockRealtime, 1, clockAbsolute) }, 1, 0, 1, false},
			"stdout":       {func() { subscribe(mem, 0, eventWrite, 1, 0, 0) }, 1, 0, 1, false},
			"stdin, clock": {func() { subscribe(mem, 0, eventRead, 0, 0, 0); subscribe(mem, 48, eventClock, 1, 3600e9, 0) }, 2, 0, 1, false},
			"no such fd":   {func() { subscribe(mem, 0, eventRead, 9, 0, 0) }, 1, 0, 1, false},
			"no clock":     {func() { subscribe(mem, 0, eventClock, 17, 1e9, 0) }, 1, 0, 1, false},
		} {
			c.prepare()
			start := time.Now()
			e, unwound := invoke(state(&recorder{}), mem, "poll_oneoff", 0, 4096, c.n, 8192)
			fired, _ := mem.ReadUint32Le(8192)
			if took := time.Since(start); took != c.want || unwound != c.unwound || !unwound && (e != ok || fired != c.fired) {
				t.Errorf("%s: took %s, want %s; errno %d, unwound %t, %d events", name, took, c.want, e, unwound, fired)
			}
		}
		for _, n := range []uint64{0, maxSubscriptions + 1, 0xffffffff} {
			if e, _ := invoke(state(&recorder{}), mem, "poll_oneoff", 0, 4096, n, 8192); e != eINVAL {
				t.Errorf("%d subscriptions: %d", n, e)
			}
		}
	})
}

// A guest told to stop while it sleeps is unwound after a grace, in which a loop of short sleeps may go on.
func TestStopWhileSleeping(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		mem := page(t)
		s := state(&recorder{})
		time.AfterFunc(time.Second, func() { s.Stop("told to") })
		start := time.Now()
		subscribe(mem, 0, eventClock, clockMonotonic, 15e8, 0)
		if _, unwound := invoke(s, mem, "poll_oneoff", 0, 4096, 1, 8192); !unwound || time.Since(start) != time.Second+attempt.StopGrace {
			t.Errorf("unwound %t after %s", unwound, time.Since(start))
		}
		if end, _ := s.Ended(); end != attempt.EndStopped {
			t.Errorf("end %d", end)
		}
		s = state(&recorder{})
		s.Stop("told to")
		subscribe(mem, 0, eventClock, clockMonotonic, 1e7, 0)
		if e, unwound := invoke(s, mem, "poll_oneoff", 0, 4096, 1, 8192); unwound || e != ok {
			t.Errorf("a short sleep within the grace: unwound %t, errno %d", unwound, e)
		}
	})
}

// Whatever a guest passes, a function answers or unwinds.
func FuzzFunctions(f *testing.F) {
	mem := page(f)
	list := functions()
	for i := range list {
		f.Add(byte(i), []byte{0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1, 2, 3}, []byte{1, 0, 0, 0, 8, 0, 0, 0})
	}
	f.Fuzz(func(t *testing.T, which byte, raw, content []byte) {
		mem.Write(0, content[:min(len(content), 65536)])
		args := make([]uint64, 9)
		for i := range args {
			var word [8]byte
			if 8*i < len(raw) {
				copy(word[:], raw[8*i:])
			}
			args[i] = binary.LittleEndian.Uint64(word[:])
		}
		s := state(&recorder{})
		s.Deadline = time.Now().Add(-time.Hour) // sleeps end at once
		e, unwound := invoke(s, mem, list[int(which)%len(list)].name, args...)
		if !unwound && e > eNOTCAPABLE {
			t.Errorf("errno %d", e)
		}
	})
}

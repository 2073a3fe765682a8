package attempt

import (
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/taskhost/taskhost/abi"
)

type lines []string

func (l *lines) Log(level int32, m string)      { *l = append(*l, abi.LevelName(level)+" "+m) }
func (*lines) Progress(int64, int64, string)    {}
func (*lines) Checkpoint(data []byte) abi.Errno { return 0 }
func withLog(l *lines, limit int) *State {
	return New(Input{Deadline: time.Now().Add(time.Minute), Limits: Limits{Log: limit, Result: 10, Checkpoint: 10}}, l)
}

// What a language's run-time says when it gives up is worth more than the last line.
func TestComplaint(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ stderr, want string }{
		"nothing":   {"", ""},
		"last line": {"one\ntwo\n\n  \n", "two"},
		"unended":   {"one\ntwo", "two"},
		"go panic":  {"starting\npanic: boom\n\ngoroutine 1 [running]:\nmain.main()\n\t/src/main.go:3 +0x1d\n", "panic: boom"},
		"go fatal":  {"fatal error: all goroutines are asleep - deadlock!\n\ngoroutine 1 [chan receive]:\n", "fatal error: all goroutines are asleep - deadlock!"},
		"rust":      {"\nthread 'main' panicked at src/main.rs:2:5:\nindex out of bounds\nnote: run with `RUST_BACKTRACE=1`\n", "thread 'main' panicked at src/main.rs:2:5: index out of bounds"},
		"rust, old": {"thread 'main' panicked at 'boom', src/main.rs:2:5\nnote: run\n", "thread 'main' panicked at 'boom', src/main.rs:2:5"},
		"c assert":  {"Assertion failed: x > 0 (a.c: main: 3)\n", "Assertion failed: x > 0 (a.c: main: 3)"},
		"not UTF-8": {"bad \xff byte\r\n", "bad \uFFFD byte"},
	} {
		var l lines
		s := withLog(&l, 1<<20)
		for _, b := range []byte(c.stderr) {
			s.Stderr([]byte{b})
		}
		s.FlushStderr()
		if got := s.Complaint(); got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
		if want := strings.Count(strings.TrimSuffix(c.stderr, "\n"), "\n") + 1; c.stderr != "" && len(l) != want {
			t.Errorf("%s: %d lines, want %d", name, len(l), want)
		}
	}
}

func TestLogBounds(t *testing.T) {
	t.Parallel()
	var l lines
	s := withLog(&l, 1000)
	for range 1000 { // empty lines cost as well
		s.Log(abi.LevelError, "", 0)
	}
	if n := len(l); n != 1000/16+1 || l[n-1] != "warn log truncated: it is over its limit of 1000 bytes" || l[0] != "error " {
		t.Errorf("%d lines, %q", n, l[n-1])
	}
}

func TestCut(t *testing.T) {
	t.Parallel()
	for n := range 12 {
		if got := Cut("aé漢😀z", n); len(got) > n || !utf8.ValidString(got) || !strings.HasPrefix("aé漢😀z", got) {
			t.Errorf("%d: %q", n, got)
		}
	}
}

func TestResult(t *testing.T) {
	t.Parallel()
	var l lines
	s := withLog(&l, 0)
	for _, c := range []struct {
		add  int
		n    int64
		fits bool
	}{{4, 4, true}, {6, 10, true}, {0, 10, true}, {3, 13, false}, {1, 11, false}} {
		if n, fits := s.Write(make([]byte, c.add)); n != c.n || fits != c.fits {
			t.Errorf("%+v: %d, %t", c, n, fits)
		}
	}
	if len(s.Result()) != 10 || s.Oversize() != 13 {
		t.Errorf("%d, %d", len(s.Result()), s.Oversize())
	}
}

func TestCheckpointLimits(t *testing.T) {
	t.Parallel()
	var l lines
	s := withLog(&l, 0)
	if e := s.PutCheckpoint(make([]byte, 11)); e != abi.ErrTooLarge || s.Checkpointed() != nil {
		t.Errorf("%d, %q", e, s.Checkpointed())
	}
	if e := s.PutCheckpoint([]byte("x")); e != 0 || string(s.Checkpointed()) != "x" {
		t.Errorf("%d, %q", e, s.Checkpointed())
	}
	s.Stop("first")
	s.Stop("second")
	if reason, ok := s.StopReason(); !ok || reason != "first" || !s.ShouldStop() {
		t.Errorf("%q, %t", reason, ok)
	}
	if e := s.PutCheckpoint([]byte("y")); e != 0 { // within the grace
		t.Errorf("%d", e)
	}
	s.Deadline = time.Now().Add(-StopGrace - time.Second)
	if e := s.PutCheckpoint([]byte("z")); e != abi.ErrCancelled || string(s.Checkpointed()) != "y" {
		t.Errorf("%d, %q", e, s.Checkpointed())
	}
}

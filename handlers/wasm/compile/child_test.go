package compile

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/taskhost/taskhost/handlers"
	"github.com/taskhost/taskhost/handlers/wasm/artifact"
	wt "github.com/taskhost/taskhost/handlers/wasm/wasmtest"
)

func TestMisbehavingChildren(t *testing.T) {
	t.Parallel()
	m := wt.EchoReactor()
	for name, tc := range map[string]struct {
		mode string
		want []string
	}{
		"killed from outside":         {"kill-self", []string{"killed from outside"}},
		"another exit code":           {"exit", []string{`ended with code 7: first \x1b[31mline`}},
		"garbage":                     {"garbage", []string{"answer is not understood", "not JSON"}},
		"more output than is read":    {"flood", []string{"answered with more than 2097152 bytes"}},
		"a fault of the host":         {"fault", []string{"compile child: disk full"}},
		"a link among its files":      {"link", []string{"passwd", "not a plain file"}},
		"no module":                   {"no-module", []string{"holds no module.wasm"}},
		"a program that is not there": {"", []string{"start a compile child"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t, Options{}, tc.mode)
			if tc.mode == "" {
				b.opts.Command = func() (string, []string) { return "/nonexistent/taskhost", nil }
			}
			b.fails(t, m, tc.want...)
			b.fails(t, m, tc.want...) // an error is not remembered, and nothing is left in the way
			if b.store.Has(b.Key(digest(m))) {
				t.Error("something was published")
			}
		})
	}
	t.Run("a crash of the compiler", func(t *testing.T) {
		t.Parallel()
		newBench(t, Options{}, "panic").refuses(t, m, "the compiler crashed on this module: panic: index out of range")
	})
	t.Run("no end", func(t *testing.T) {
		t.Parallel()
		newBench(t, Options{Limits: Limits{Wall: 200 * time.Millisecond}}, "hang").refuses(t, m, "compile limit: compiling the module took longer than 200ms")
	})
}

// What a child starts dies with it, even when it holds the pipes open.
func TestNothingOfAChildIsLeft(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "pid")
	b := newBench(t, Options{}, "leave-process", file)
	if _, _, err := b.admit(t, wt.EchoReactor()); err != nil {
		t.Fatal(err)
	}
	waitGone(t, readPid(t, file))
}

// A supervisor that is killed takes its children along.
func TestChildDiesWithItsSupervisor(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "pid")
	cmd := exec.Command(childPath, "supervise", filepath.Join(t.TempDir(), "artifacts"), file)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	pid := readPid(t, file)
	if err := errors.Join(cmd.Process.Kill(), ignoreExit(cmd.Wait())); err != nil {
		t.Fatal(err)
	}
	waitGone(t, pid)
}

func ignoreExit(err error) error {
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		return nil
	}
	return err
}

// eventually polls for what another process does; there is no event to wait for.
func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	end := time.After(30 * time.Second)
	for !ok() {
		select {
		case <-tick.C:
		case <-end:
			t.Fatalf("%s: not within 30 s", what)
		}
	}
}

func readPid(t *testing.T, file string) (pid int) {
	t.Helper()
	eventually(t, "a process writes its pid", func() bool {
		data, err := os.ReadFile(file)
		if err != nil || len(data) == 0 {
			return false
		}
		pid, err = strconv.Atoi(string(data))
		return err == nil
	})
	return pid
}

// waitGone waits until no process has the number. An orphan's zombie counts as gone: reaping it is its new parent's business.
func waitGone(t *testing.T, pid int) {
	t.Helper()
	eventually(t, "process "+strconv.Itoa(pid)+" ends", func() bool {
		if errors.Is(syscall.Kill(pid, 0), syscall.ESRCH) {
			return true
		}
		stat, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
		return err != nil || strings.Contains(string(stat), ") Z ")
	})
}

func TestChildEnvironment(t *testing.T) {
	t.Setenv("TASKHOST_API_KEY", "secret")
	file := filepath.Join(t.TempDir(), "env")
	b := newBench(t, Options{}, "environment", file)
	if _, _, err := b.admit(t, wt.EchoReactor()); err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var env []string
	for l := range strings.Lines(strings.TrimSpace(string(data))) {
		switch l = strings.TrimSpace(l); {
		case strings.HasPrefix(l, "/"):
			if !strings.HasPrefix(l, filepath.Join(b.dir, "tmp")+"/") {
				t.Errorf("it runs in %s", l)
			}
		case !strings.HasPrefix(l, "PWD="): // set for every child that has a directory
			env = append(env, l)
		}
	}
	if len(env) != 2 || !strings.HasPrefix(env[0], "GOMAXPROCS=") || !strings.HasPrefix(env[1], "GOMEMLIMIT=") {
		t.Errorf("the environment is %q", env)
	}
}

// Descriptors that the host itself was started with are passed on by the kernel; the child closes them.
func TestChildClosesWhatItInherited(t *testing.T) {
	t.Parallel()
	secret, err := os.Open(os.Args[0])
	if err != nil {
		t.Fatal(err)
	}
	defer secret.Close()
	cmd := exec.Command(os.Args[0], "print-limits")
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.ExtraFiles = []*os.File{secret, secret}
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	if !strings.Contains(string(out), "inherited before: true, after: false") {
		t.Errorf("it says\n%s", out)
	}
}

func TestChildSetsItsLimits(t *testing.T) {
	t.Parallel()
	cmd := exec.Command(os.Args[0], "print-limits")
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	want := "0 0\n7 9\n4611686018427387903 4611686018427387903\n1073741824 1073741824\n"
	if got := string(out); !strings.HasPrefix(got, want) {
		t.Errorf("the limits are\n%swant\n%s", got, want)
	}
	if got := strings.TrimPrefix(string(out), want); !strings.HasPrefix(got, "priority 13 <nil>\n") && !strings.HasPrefix(got, "priority 7 <nil>\n") {
		t.Errorf("the priority is %q", got)
	}
}

func TestChildRefusesToBeRunByHand(t *testing.T) {
	t.Parallel()
	cmd := exec.Command(childPath, "compile")
	cmd.Stdin = strings.NewReader("hello")
	out, err := cmd.CombinedOutput()
	if err == nil || !strings.Contains(string(out), "is started by taskhost itself") {
		t.Errorf("%v: %s", err, out)
	}
}

// held is a bench whose children wait for a file before they compile.
func held(t *testing.T, opts Options) (b *bench, gate string) {
	gate = filepath.Join(t.TempDir(), "gate")
	b = newBench(t, opts, "hold", gate)
	t.Cleanup(func() { os.WriteFile(gate, nil, 0o600) }) // before the bench closes
	return b, gate
}

func waitUp(t *testing.T, gate string) {
	t.Helper()
	eventually(t, "a child comes up", func() bool { _, err := os.Stat(gate + ".up"); return err == nil })
}

func TestOneChildForOneModule(t *testing.T) {
	t.Parallel()
	b, gate := held(t, Options{})
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			if _, _, err := b.Admit(t.Context(), handlers.AdmitRequest{Tenant: "a", Module: wt.EchoReactor()}); err != nil {
				t.Error(err)
			}
		})
	}
	waitUp(t, gate)
	if err := os.WriteFile(gate, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	wg.Wait()
	if n := b.children.Load(); n != 1 {
		t.Errorf("%d children were started", n)
	}
}

// One of two callers leaves: the other gets the artifact. Both leave: the child is killed.
func TestCallersMayLeave(t *testing.T) {
	t.Parallel()
	b, gate := held(t, Options{})
	gone := errors.New("client went away")
	ctx, leave := context.WithCancelCause(t.Context())
	results := make(chan error, 2)
	for _, c := range []context.Context{ctx, t.Context()} {
		go func() {
			_, _, err := b.Admit(c, handlers.AdmitRequest{Module: wt.EchoReactor()})
			results <- err
		}()
	}
	waitUp(t, gate)
	leave(gone)
	if err := <-results; !errors.Is(err, gone) {
		t.Fatalf("the one that left got %v", err)
	}
	if err := os.WriteFile(gate, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := <-results; err != nil {
		t.Errorf("the one that stayed got %v", err)
	}

	file := filepath.Join(t.TempDir(), "pid")
	h := newBench(t, Options{}, "hang", file)
	ctx, leave = context.WithCancelCause(t.Context())
	go func() {
		_, _, err := h.Admit(ctx, handlers.AdmitRequest{Module: wt.EchoReactor()})
		results <- err
	}()
	pid := readPid(t, file)
	leave(gone)
	if err := <-results; !errors.Is(err, gone) {
		t.Errorf("the only one got %v", err)
	}
	waitGone(t, pid)
}

func TestCloseStopsWhatRuns(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "pid")
	b := newBench(t, Options{Concurrency: 1}, "hang", file)
	results := make(chan error, 2)
	for _, m := range [][]byte{wt.EchoReactor(), wt.LoopReactor()} { // one runs, one waits
		go func() {
			_, _, err := b.Admit(t.Context(), handlers.AdmitRequest{Module: m})
			results <- err
		}()
	}
	pid := readPid(t, file)
	if err := b.Close(); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := <-results; !errors.Is(err, handlers.ErrStopped) {
			t.Errorf("the caller got %v", err)
		}
	}
	waitGone(t, pid)
	if _, _, err := b.admit(t, wt.EchoReactor()); !errors.Is(err, handlers.ErrStopped) {
		t.Errorf("after Close: %v", err)
	}
	if err := b.Close(); err != nil {
		t.Errorf("a second Close: %v", err)
	}
}

func TestServiceThatIsNotStarted(t *testing.T) {
	t.Parallel()
	if _, err := NewService(Options{}); err == nil {
		t.Error("a service without a store")
	}
	for _, l := range []Limits{{Data: minData - 1}, {CPU: -1}, {Wall: -1}} {
		if _, err := NewService(Options{Store: new(artifact.Store), Command: func() (string, []string) { return "", nil }, Limits: l}); err == nil {
			t.Errorf("a service with limits %+v", l)
		}
	}
	b := newBench(t, Options{}, "compile")
	if err := b.Start(); err == nil {
		t.Error("started twice")
	}
	s, err := NewService(Options{Store: b.store, Command: b.opts.Command})
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := s.Admit(t.Context(), handlers.AdmitRequest{}); err == nil || !strings.Contains(err.Error(), "not started") {
		t.Errorf("not started: %v", err)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
}

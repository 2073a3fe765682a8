package plugin

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/taskhost/taskhost/abi"
	"github.com/taskhost/taskhost/handlers"
	"github.com/taskhost/taskhost/handlers/handlertest"
)

// The contract of runtimes, over real processes.
func TestConformance(t *testing.T) {
	t.Parallel()
	for name, plain := range map[string]bool{"MutualTLS": false, "PlainSocket": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			spec := script()
			spec.PlainSocket = plain
			r := newRuntime(t, spec)
			v := r.Versions()[0]
			if err := r.Prepare(t.Context(), v, nil); err != nil {
				t.Fatal(err)
			}
			handlertest.Run(t, handlertest.Harness{Runtime: r, Version: v, Bounded: true, Crash: func(tb testing.TB) {
				for _, p := range r.State()[0].Processes {
					if p.Busy > 0 {
						signal(tb, p.PID, syscall.SIGKILL)
					}
				}
			}})
		})
	}
}

// Payloads and results above 4 MiB, the default limit of gRPC messages, in both directions; above the limit of results a permanent failure
// with both sizes.
func TestCase111LargePayloadsAndResults(t *testing.T) {
	t.Parallel()
	r := newRuntime(t, script())
	for _, n := range []int{4<<20 - 1, 4<<20 + 1, 64 << 20} {
		data := bytes.Repeat([]byte("0123456789abcdef"), n/16+1)[:n]
		inv := invocation(r, append([]byte("echo\n"), data...), 5*time.Minute)
		out := r.Invoke(t.Context(), inv)
		if out.Kind != handlers.OutcomeSucceeded || !bytes.Equal(out.Result, data) {
			t.Errorf("%d bytes: %s %v with %d bytes", n, out.Kind, out.Error, len(out.Result))
		}
	}
	inv := invocation(r, []byte("exactly 5000001\n"), time.Minute)
	inv.Limits.ResultBytes = 5_000_000
	if out := r.Invoke(t.Context(), inv); out.Kind != handlers.OutcomePermanent || out.Error.Kind != abi.KindResultSize ||
		!strings.Contains(out.Error.Message, "5000001 bytes") || !strings.Contains(out.Error.Message, "5000000 bytes") {
		t.Errorf("%s %v", out.Kind, out.Error)
	}
}

// A process that dies takes the attempts in it with it, says why, and is replaced.
func TestCase105AfterACrashTheNextProcessServes(t *testing.T) {
	t.Parallel()
	spec := script()
	spec.Instances = 1
	r := newRuntime(t, spec)
	beside := started(t, r, "sleep 3600000\n")
	out := run(t, r, "crash\n")
	if out.Kind != handlers.OutcomeCrashed || out.Error.Kind != abi.KindCrash || !strings.Contains(out.Error.Message, "panic: boom at job-1") {
		t.Errorf("%s %v", out.Kind, out.Error)
	}
	if out := <-beside; out.Kind != handlers.OutcomeCrashed {
		t.Errorf("its neighbour: %s %v, want crashed", out.Kind, out.Error)
	}
	if out := run(t, r, "exit 3\n"); out.Kind != handlers.OutcomeCrashed || !strings.Contains(out.Error.Message, "exit status 3") || !strings.Contains(out.Error.Message, "giving up") {
		t.Errorf("%s %v", out.Kind, out.Error)
	}
	if out := run(t, r, "echo\nstill there"); string(out.Result) != "still there" {
		t.Errorf("%s %v", out.Kind, out.Error)
	}
	if s := r.State()[0]; s.Counts.Crashed != 2 || s.Failures != 0 || r.Ready() != nil {
		t.Errorf("%+v, %v", s, r.Ready())
	}
}

// A plugin that is stopped is noticed because it does not answer, and replaced; what ran in it counts a crash.
func TestCase110AStoppedPluginIsReplaced(t *testing.T) {
	t.Parallel()
	spec := script()
	spec.Instances, spec.Silence = 1, 2*time.Second
	r := newRuntime(t, spec)
	out := started(t, r, "sleep 3600000\n")
	pid := r.State()[0].Processes[0].PID
	signal(t, pid, syscall.SIGSTOP)
	if o := <-out; o.Kind != handlers.OutcomeCrashed || !strings.Contains(o.Error.Message, "did not answer") {
		t.Errorf("%s %v", o.Kind, o.Error)
	}
	if o := run(t, r, "echo\nhealed"); string(o.Result) != "healed" {
		t.Errorf("%s %v", o.Kind, o.Error)
	}
	if now := r.State()[0].Processes[0].PID; now == pid || alive(pid) {
		t.Errorf("process %d was not replaced", pid)
	}
}

// A plugin whose socket was deleted is replaced before its connection breaks; what ran in it is interrupted.
func TestCase110AVanishedSocketIsHealed(t *testing.T) {
	t.Parallel()
	spec := script()
	spec.Instances, spec.Silence = 1, 8*time.Second
	r := newRuntime(t, spec)
	out := started(t, r, "sleep 3600000\n")
	p := r.State()[0].Processes[0]
	if err := os.Remove(p.Socket); err != nil {
		t.Fatal(err)
	}
	if o := <-out; o.Kind != handlers.OutcomeInterrupted || !strings.Contains(o.Error.Message, "has vanished") {
		t.Errorf("%s %v", o.Kind, o.Error)
	}
	if o := run(t, r, "echo\nhealed"); string(o.Result) != "healed" {
		t.Errorf("%s %v", o.Kind, o.Error)
	}
	if alive(p.PID) {
		t.Errorf("process %d goes on", p.PID)
	}
}

// A handler that is deaf to every request to stop is killed after its grace; the other attempts of the process are interrupted.
func TestCase032ADeafHandlerIsKilled(t *testing.T) {
	t.Parallel()
	spec := script()
	spec.Instances = 1
	r := newRuntime(t, spec)
	beside := started(t, r, "sleep 3600000\n")
	out := r.Invoke(t.Context(), invocation(r, []byte("hang 3600000\n"), 300*time.Millisecond))
	if out.Kind != handlers.OutcomeRetry || out.Error.Kind != abi.KindDeadline || !strings.Contains(out.Error.Message, "killed") {
		t.Errorf("%s %v", out.Kind, out.Error)
	}
	if o := <-beside; o.Kind != handlers.OutcomeInterrupted {
		t.Errorf("its neighbour: %s %v, want interrupted", o.Kind, o.Error)
	}
	if o := run(t, r, "echo\nnext"); string(o.Result) != "next" {
		t.Errorf("%s %v", o.Kind, o.Error)
	}
}

// Lines of 10 MB and floods on standard error and output do not hold up the plugin.
func TestFloodsDoNotBlock(t *testing.T) {
	t.Parallel()
	r := newRuntime(t, script())
	if o := run(t, r, "flood 30\n"); string(o.Result) != "flooded" {
		t.Errorf("%s %v", o.Kind, o.Error)
	}
}

// What a plugin has started ends with it.
func TestGrandchildrenEndWithThePlugin(t *testing.T) {
	t.Parallel()
	spec := script()
	spec.Instances = 1
	r := newRuntime(t, spec)
	for _, end := range []string{"exit 1\n", ""} {
		out := run(t, r, "child\n")
		child, err := strconv.Atoi(string(out.Result))
		if err != nil {
			t.Fatalf("%s %v", out.Kind, out.Error)
		}
		pid := r.State()[0].Processes[0].PID
		if end != "" {
			run(t, r, end)
		} else {
			signal(t, pid, syscall.SIGKILL)
		}
		await(t, fmt.Sprintf("the child %d of the plugin is gone", child), func() bool { return !alive(child) })
		await(t, "a new process", func() bool { s := r.State()[0].Processes; return len(s) == 1 && s[0].PID != pid })
	}
}

// A plugin gets a few harmless variables of the host and its own; its descriptors are standard ones, its program, and what it opens.
func TestEnvironment(t *testing.T) {
	t.Setenv("TASKHOST_TEST_SECRET", "do not tell")
	t.Setenv("TZ", "Europe/Paris")
	spec := script()
	spec.Env = map[string]string{"MODEL": "small", "HOME": "/nowhere"}
	r := newRuntime(t, spec)
	env := string(run(t, r, "environment\n").Result)
	for _, want := range []string{"MODEL=small", "HOME=/nowhere", "TZ=Europe/Paris", "PATH="} {
		if !strings.Contains(env, want) {
			t.Errorf("the environment lacks %s", want)
		}
	}
	if strings.Contains(env, "do not tell") || strings.Count(env, "HOME=") != 1 {
		t.Errorf("the environment is\n%s", env)
	}
}

// kill -9 of the host while five plugins are busy: none is left.
func TestCase106NoPluginOutlivesTheHost(t *testing.T) {
	t.Parallel()
	host := exec.Command(os.Args[0], hostRole, t.TempDir(), scripted)
	host.Stderr = t.Output()
	stdout, err := host.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := host.Start(); err != nil {
		t.Fatal(err)
	}
	var pids [5]int
	if _, err := fmt.Fscan(stdout, &pids[0], &pids[1], &pids[2], &pids[3], &pids[4]); err != nil {
		t.Error(err)
	}
	if err := host.Process.Kill(); err != nil {
		t.Error(err)
	}
	_ = host.Wait() // killed
	deadline := time.Now().Add(5 * time.Second)
	for _, pid := range pids {
		await(t, fmt.Sprintf("plugin %d is gone", pid), func() bool { return !alive(pid) })
	}
	if late := time.Since(deadline); late > 0 {
		t.Logf("the last one was seen to be gone %s after the 5 s", late)
	}
}

// hostRole makes this test binary a host whose plugins are busy.
const hostRole = "test-host"

func hostChild(args []string) {
	var specs []Spec
	for i := range 5 {
		specs = append(specs, Spec{Types: []string{fmt.Sprintf("scripted.%d", i)}, Command: args[1]})
	}
	r, err := New(Options{DataDir: args[0], Plugins: specs, Logger: slog.New(slog.NewTextHandler(os.Stderr, nil))})
	if err != nil {
		panic(err)
	}
	var pids []any
	for _, v := range r.Versions() {
		busy := make(chan struct{})
		inv := invocation(r, []byte("hang 3600000\n"), time.Hour)
		inv.Type, inv.Version = v.Type, v
		inv.Events.(*handlertest.Recorder).Notify = func() { close(busy) }
		go r.Invoke(context.Background(), inv)
		<-busy
	}
	for _, s := range r.State() {
		pids = append(pids, s.Processes[0].PID)
	}
	fmt.Println(pids...)
	select {}
}

// The folder of a dead host's sockets is removed at the next start, that of a living one is not.
func TestSocketsOfDeadHostsAreSwept(t *testing.T) {
	t.Parallel()
	dir, err := os.MkdirTemp("", "th") // short enough to be used
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	dead := filepath.Join(dir, "plugins", "0123456789abcdef")
	if err := os.MkdirAll(dead, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dead, lockName), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	first, err := openSockets(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer first.close()
	second, err := openSockets(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer second.close()
	if _, err := os.Stat(dead); !os.IsNotExist(err) {
		t.Errorf("%s: %v", dead, err)
	}
	for _, s := range []*sockets{first, second} {
		if info, err := os.Stat(s.root); err != nil || info.Mode().Perm() != 0o700 || filepath.Dir(s.root) != filepath.Join(dir, "plugins") {
			t.Errorf("%s: %v", s.root, err)
		}
	}
	if info, err := os.Stat(filepath.Join(dir, "plugins")); err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("the folder of all: %v, %v", info.Mode(), err)
	}
}

// With a data_dir and a TMPDIR that are too long for sockets, plugins work nevertheless.
func TestLongTemporaryFolder(t *testing.T) {
	long := filepath.Join(t.TempDir(), strings.Repeat("long/", 40))
	if err := os.MkdirAll(long, 0o700); err != nil {
		t.Fatal(err)
	}
	t.Setenv("TMPDIR", long)
	t.Setenv("XDG_RUNTIME_DIR", "")
	s, err := openSockets(long)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.close(); err != nil {
		t.Error(err)
	}
	if len(s.root)+socketTail > maxSocketPath() {
		t.Errorf("%s is too long", s.root)
	}
}

package compile

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/taskhost/taskhost/abi"
	"github.com/taskhost/taskhost/handlers"
	"github.com/taskhost/taskhost/handlers/wasm/artifact"
	"github.com/taskhost/taskhost/handlers/wasm/engine"
	wt "github.com/taskhost/taskhost/handlers/wasm/wasmtest"
)

// logSink keeps what was logged.
type logSink struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (l *logSink) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.Write(p)
}

func (l *logSink) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.String()
}

func digest(m []byte) string {
	sum := sha256.Sum256(m)
	return hex.EncodeToString(sum[:])
}

func (b *bench) admit(t *testing.T, m []byte) (*handlers.Admission, string, error) {
	t.Helper()
	return b.Admit(t.Context(), handlers.AdmitRequest{Tenant: "a", Type: "t", Module: m})
}

// refuses checks that a module is refused for a reason with every part.
func (b *bench) refuses(t *testing.T, m []byte, parts ...string) {
	t.Helper()
	adm, _, err := b.admit(t, m)
	var r *handlers.Refusal
	if !errors.As(err, &r) {
		t.Fatalf("admitted as %+v, error %v; want a refusal with %q", adm, err, parts)
	}
	for _, p := range parts {
		if !strings.Contains(r.Error(), p) {
			t.Errorf("the reason is %q; want it to contain %q", r.Error(), p)
		}
	}
}

// fails checks for an error of the host, not of the module, with every part.
func (b *bench) fails(t *testing.T, m []byte, parts ...string) {
	t.Helper()
	adm, _, err := b.admit(t, m)
	var r *handlers.Refusal
	if err == nil || errors.As(err, &r) {
		t.Fatalf("admitted as %+v, error %v; want an error of the host with %q", adm, err, parts)
	}
	for _, p := range parts {
		if !strings.Contains(err.Error(), p) {
			t.Errorf("the error is %q; want it to contain %q", err, p)
		}
	}
}

func TestAdmitReactorAndLoadIt(t *testing.T) {
	t.Parallel()
	b := newBench(t, Options{}, "compile")
	m := wt.EchoReactor()
	adm, key, err := b.admit(t, m)
	if err != nil {
		t.Fatal(err)
	}
	if adm.SHA256 != digest(m) || adm.SizeBytes != len(m) || adm.Kind != handlers.KindReactor || adm.Instance.Mode != "fresh" || adm.CompileTime <= 0 ||
		strings.Join(adm.Imports, " ") != "taskhost_v1.input_read taskhost_v1.output_write" || adm.Memory != (handlers.Memory{MinBytes: 65536, MaxBytes: 128 << 20}) {
		t.Errorf("the admission is %+v", adm)
	}
	if key != b.Key(adm.SHA256) {
		t.Errorf("the key is %s; Key says %s", key, b.Key(adm.SHA256))
	}
	a, err := b.store.Open(key)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := os.ReadFile(a.ModulePath()); err != nil || !bytes.Equal(got, wt.Metered(t, m)) {
		t.Errorf("the module to run is not what was uploaded, metered: %v", err)
	}
	// The native code is found by another process of the same program, which may not compile.
	if out, err := exec.Command(childPath, "load", a.Dir, string(adm.Kind)).CombinedOutput(); err != nil {
		t.Errorf("load: %v: %s", err, out)
	}
	// A second upload of the same bytes starts no child.
	if again, _, err := b.admit(t, m); err != nil || again.CompileTime != 0 || again.Kind != adm.Kind {
		t.Errorf("the second admission is %+v, %v", again, err)
	}
	if n := b.children.Load(); n != 1 {
		t.Errorf("%d children were started", n)
	}
}

func TestAdmitGoCommand(t *testing.T) {
	t.Parallel()
	b := newBench(t, Options{}, "compile")
	m := wt.GoCommand(t, "package main\n\nimport \"fmt\"\n\nfunc main() { fmt.Println(\"hello\") }\n")
	adm, _, err := b.admit(t, m)
	if err != nil {
		t.Fatal(err)
	}
	if adm.Kind != handlers.KindCommand || len(adm.Imports) < 5 {
		t.Errorf("the admission is %+v", adm)
	}
	t.Logf("%d bytes compiled in %v", len(m), adm.CompileTime)
}

// bombs are the uploads that must do no harm, by the reason they are refused for.
func bombs() map[string]struct {
	module []byte
	want   []string
} {
	good := wt.EchoReactor()
	flipped := bytes.Replace(good, []byte{0x41, 0x00, 0x42}, []byte{0x42, 0x00, 0x42}, 1) // an i64 where an i32 belongs
	type bomb = struct {
		module []byte
		want   []string
	}
	all := map[string]bomb{
		"truncated":       {good[:len(good)-9], []string{"damaged or cut short"}},
		"text":            {[]byte("#!/bin/sh\necho hello\n"), []string{"this is a text file"}},
		"component (075)": {[]byte{0x00, 0x61, 0x73, 0x6d, 0x0d, 0x00, 0x01, 0x00}, []string{"this is a WebAssembly component; build a core module (wasip1)"}},
		"flipped byte":    {flipped, []string{"the module is not valid", "type mismatch"}},
	}
	for _, b := range wt.Bombs() {
		if !b.Costly {
			all[b.Name] = bomb{b.Module, b.Want}
		}
	}
	return all
}

func TestBombsLeaveTheSupervisorAlone(t *testing.T) {
	b := newBench(t, Options{Concurrency: 2}, "compile")
	all := bombs()
	runtime.GC()
	pid, before := os.Getpid(), rss(t)
	for name, bomb := range all {
		t.Run(name, func(t *testing.T) { b.refuses(t, bomb.module, bomb.want...) })
	}
	if n := int(b.children.Load()); n != len(all) {
		t.Errorf("%d children for %d modules", n, len(all))
	}
	// Uploaded again, eight at once: the answers are remembered.
	var wg sync.WaitGroup
	for name, bomb := range all {
		for range 8 {
			wg.Go(func() {
				var r *handlers.Refusal
				if _, _, err := b.Admit(t.Context(), handlers.AdmitRequest{Module: bomb.module}); !errors.As(err, &r) {
					t.Errorf("%s: %v", name, err)
				}
			})
		}
	}
	wg.Wait()
	if n := int(b.children.Load()); n != len(all) {
		t.Errorf("remembered refusals started %d children", n-len(all))
	}
	if grown := rss(t) - before; os.Getpid() != pid || grown > 48<<20 {
		t.Errorf("the supervisor grew by %d MiB", grown>>20)
	}
}

// rss is the resident size of this process in bytes.
func rss(t *testing.T) int64 {
	t.Helper()
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		t.Skipf("no /proc here: %v", err)
	}
	for l := range strings.Lines(string(status)) {
		if rest, ok := strings.CutPrefix(l, "VmRSS:"); ok {
			kib, err := strconv.ParseInt(strings.Fields(rest)[0], 10, 64)
			if err != nil {
				t.Fatal(err)
			}
			return kib << 10
		}
	}
	t.Fatal("no VmRSS")
	return 0
}

func TestCase080And084ImportsAreRefused(t *testing.T) {
	t.Parallel()
	b := newBench(t, Options{}, "compile")
	var m wt.Builder
	m.ImportFunc("env", "abort", wt.Types(wt.I32), nil)
	m.Import("env", "memory", 2, wt.Limits(1))
	m.ImportFunc("lib", "f", nil, nil)
	m.ImportFunc(abi.ModuleHost, "log", nil, nil)
	b.refuses(t, m.Reactor(nil, wt.I32Const(0)), "4 imports", "env.abort(i32) -> ()", "env.memory (memory)", "lib.f() -> ()",
		"taskhost_v1.log() -> () (the host offers it as (i32, i32, i32) -> i32)")
}

func TestCase081MemoryUnderAnotherName(t *testing.T) {
	t.Parallel()
	b := newBench(t, Options{}, "compile")
	var m wt.Builder
	m.Memory(1)
	m.ExportMemory("mem")
	m.ExportFunc(abi.ExportStart, m.Func(nil, nil, nil))
	b.refuses(t, m.Module(), `exports its memory as mem; export it as "memory"`)
}

func TestCase076MemoryLimit(t *testing.T) {
	t.Parallel()
	b := newBench(t, Options{}, "compile")
	const limit = 512 * 65536
	var wide, large wt.Builder
	wide.Memory(256, 32768)
	large.Memory(600)
	ask := func(m []byte, limit int64) (*handlers.Admission, error) {
		adm, _, err := b.Admit(t.Context(), handlers.AdmitRequest{Module: m, Limits: handlers.Limits{MemoryBytes: limit}})
		return adm, err
	}
	m := wide.Reactor(nil, wt.I32Const(0))
	adm, err := ask(m, limit)
	if err != nil || adm.Memory.MaxBytes != limit || len(adm.Warnings) != 1 {
		t.Errorf("256 to 32768 pages under 512: %+v, %v", adm, err)
	}
	// The limit is no part of the artifact: under a lower one the same module is refused, without a child.
	if adm, err := ask(m, 255*65536); err == nil || !strings.Contains(err.Error(), "begins with 16 MiB of memory") {
		t.Errorf("256 pages under 255: %+v, %v", adm, err)
	}
	if n := b.children.Load(); n != 1 {
		t.Errorf("%d children were started", n)
	}
	if adm, err := ask(large.Reactor(nil, wt.I32Const(0)), limit); err == nil || !strings.Contains(err.Error(), "begins with 37.5 MiB of memory; the limit is 32 MiB") {
		t.Errorf("600 pages under 512: %+v, %v", adm, err)
	}
}

// slowModule passes the scan and takes many seconds and much memory to compile: every function carries as many values into loops as
// is accepted.
func slowModule() []byte {
	for _, b := range wt.Bombs() {
		if b.Costly {
			return b.Module
		}
	}
	panic("there is none")
}

func TestCase078CompileLimitOfProcessorTime(t *testing.T) {
	t.Parallel()
	b := newBench(t, Options{Limits: Limits{CPU: time.Second}}, "compile")
	m := slowModule()
	b.refuses(t, m, "compile limit: compiling the module takes more than 1s of processor time")
	b.refuses(t, m, "compile limit")
	if n := b.children.Load(); n != 1 {
		t.Errorf("%d children were started; the refusal should be remembered", n)
	}
}

func TestCase078CompileLimitOfMemory(t *testing.T) {
	t.Parallel()
	b := newBench(t, Options{Limits: Limits{Data: minData}}, "compile")
	b.refuses(t, slowModule(), "compile limit: compiling the module takes more than 128 MiB of memory")
}

// Artifacts that an earlier version has made are gone after a start.
func TestOldArtifactsArePruned(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "artifacts")
	store, err := artifact.NewStore(dir, artifact.HostKey{1})
	if err != nil {
		t.Fatal(err)
	}
	keys := map[bool]string{}
	for _, now := range []bool{true, false} {
		d, err := store.NewDraft()
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(d.Dir, artifact.ModuleFile), []byte("module"), 0o600); err != nil {
			t.Fatal(err)
		}
		id := artifact.ThisMachine(digest([]byte("module")), Rewriter(), engine.Identity())
		if !now {
			id.Rewriter = "meter 0"
		}
		a, err := store.Publish(d, artifact.Manifest{Identity: id})
		if err != nil {
			t.Fatal(err)
		}
		keys[now] = a.Key
	}
	s, err := NewService(Options{Store: store, Logger: slog.New(slog.DiscardHandler), Command: func() (string, []string) { return childPath, nil }})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Start(); err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	look, limit := time.NewTicker(5*time.Millisecond), time.After(time.Minute)
	defer look.Stop()
	for store.Has(keys[false]) {
		select {
		case <-look.C:
		case <-limit:
			t.Fatal("the artifact of an earlier version is still there")
		}
	}
	if !store.Has(keys[true]) {
		t.Error("the artifact of this version is gone")
	}
}

func TestEnsure(t *testing.T) {
	t.Parallel()
	b := newBench(t, Options{}, "compile")
	m := wt.LoopReactor()
	v := &handlers.Version{Tenant: "a", SHA256: digest(m)}
	calls := 0
	source := func(context.Context) ([]byte, error) { calls++; return m, nil }
	a, err := b.Ensure(t.Context(), v, source)
	if err != nil || calls != 1 {
		t.Fatalf("ensure: %v, source called %d times", err, calls)
	}
	if _, err := b.Ensure(t.Context(), v, source); err != nil || calls != 1 {
		t.Errorf("ensure again: %v, source called %d times", err, calls)
	}
	// A flipped byte of native code is noticed, named in the log and mended.
	var code string
	filepath.Walk(a.CachePath(), func(path string, info os.FileInfo, err error) error {
		if err == nil && !info.IsDir() {
			code = path
		}
		return err
	})
	data, err := os.ReadFile(code)
	if err != nil {
		t.Fatal(err)
	}
	data[len(data)/2] ^= 0x10
	if err := os.WriteFile(code, data, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err = b.Ensure(t.Context(), v, source); err != nil || calls != 2 {
		t.Fatalf("ensure after tampering: %v, source called %d times", err, calls)
	}
	if !strings.Contains(b.logs.String(), filepath.Base(code)) {
		t.Errorf("the log does not name %s:\n%s", filepath.Base(code), b.logs)
	}
	if mended, err := os.ReadFile(code); err != nil || bytes.Equal(mended, data) {
		t.Errorf("the code was not mended: %v", err)
	}
	// Stored bytes that are not the version's are not compiled.
	other := &handlers.Version{SHA256: digest([]byte("other"))}
	if _, err := b.Ensure(t.Context(), other, source); err == nil || !strings.Contains(err.Error(), "is expected") {
		t.Errorf("other bytes: %v", err)
	}
	broken := errors.New("store is down")
	if _, err := b.Ensure(t.Context(), other, func(context.Context) ([]byte, error) { return nil, broken }); !errors.Is(err, broken) {
		t.Errorf("no bytes: %v", err)
	}
}

func TestLargeModuleIsNotSent(t *testing.T) {
	t.Parallel()
	b := newBench(t, Options{}, "compile")
	b.refuses(t, make([]byte, 64<<20+1), "at most 67108864 are accepted")
	if n := b.children.Load(); n != 0 {
		t.Errorf("%d children were started", n)
	}
}

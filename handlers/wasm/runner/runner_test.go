package runner

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/taskhost/taskhost/abi/pluginpb"
	"github.com/taskhost/taskhost/handlers"
	"github.com/taskhost/taskhost/handlers/wasm/artifact"
	"github.com/taskhost/taskhost/handlers/wasm/engine"
	"github.com/taskhost/taskhost/handlers/wasm/lockdown"
	"github.com/taskhost/taskhost/handlers/wasm/wasmtest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestArguments(t *testing.T) {
	t.Parallel()
	want := Config{Slots: 8, MemoryPerSlot: 128 << 20, Modules: 64, Artifacts: "/var/a", Lockdown: lockdown.Plan{Apply: true, Least: lockdown.Basic}}
	if got, err := parse(want.Args()); err != nil || got != want {
		t.Errorf("%+v, %v", got, err)
	}
	for args, message := range map[string]string{
		"": "--slots=0: must be between 1 and 256",
		"--slots=8 --memory-per-slot=1 --modules=1":              "--memory-per-slot=1: must be between",
		"--slots=8 --memory-per-slot=1000000":                    "--modules=0: must be between",
		"--slots=8 --memory-per-slot=1000000 --modules=1 --what": "what",
		"--slots=eight": "eight",
		"--slots=8 --memory-per-slot=1000000 --modules=1 --lockdown=basic": "--artifacts is missing",
		"--slots=8 --memory-per-slot=1000000 --modules=1 --lockdown=some":  `sandbox level "some"`,
		"--slots=8 --memory-per-slot=1000000 --modules=1 unexpected":       `unexpected argument "unexpected"`,
	} {
		if _, err := parse(strings.Fields(args)); err == nil || !strings.Contains(err.Error(), message) {
			t.Errorf("%q: %v", args, err)
		}
	}
}

func artifacts(t *testing.T, n int) (dirs []string) {
	t.Helper()
	for i := range n {
		var b wasmtest.Builder
		module := wasmtest.Metered(t, b.Reactor(nil, wasmtest.I32Const(int32(i))))
		dir := t.TempDir()
		cache := filepath.Join(dir, artifact.CacheDir)
		if err := errors.Join(os.MkdirAll(cache, 0o700), os.WriteFile(filepath.Join(dir, artifact.ModuleFile), module, 0o600)); err != nil {
			t.Fatal(err)
		}
		if err := engine.Compile(t.Context(), module, cache); err != nil {
			t.Fatal(err)
		}
		dirs = append(dirs, dir)
	}
	return dirs
}

// The least recently used module goes, but not while it is used.
func TestModulesAreBounded(t *testing.T) {
	t.Parallel()
	m := newModules(2)
	dirs := artifacts(t, 4)
	use := func(i int) (*engine.Module, func() error) {
		t.Helper()
		mod, done, err := m.use(t.Context(), dirs[i], handlers.KindReactor)
		if err != nil {
			t.Fatal(err)
		}
		return mod, done
	}
	first, done0 := use(0)
	for _, i := range []int{1, 2, 3, 1} {
		if _, done := use(i); done() != nil {
			t.Error("done failed")
		}
	}
	if len(m.loaded) != 2 || m.order.Len() != 2 {
		t.Errorf("%d modules are kept", len(m.loaded))
	}
	if first.MinMemory() != 64<<10 { // still open: it was in use
		t.Error("closed while in use")
	}
	again, done := use(0)
	if again == first {
		t.Error("the module that was used longest ago is kept")
	}
	if err := errors.Join(done0(), done(), m.close()); err != nil {
		t.Error(err)
	}
	if len(m.loaded) != 0 {
		t.Errorf("%d modules are left", len(m.loaded))
	}
}

func TestModulesForgetFailures(t *testing.T) {
	t.Parallel()
	m := newModules(2)
	dir := t.TempDir()
	for range 2 {
		if _, _, err := m.use(t.Context(), dir, handlers.KindReactor); !errors.Is(err, os.ErrNotExist) {
			t.Error(err)
		}
	}
	if len(m.loaded) != 0 {
		t.Error("a failure is kept")
	}
}

// What does not keep to the protocol ends the runner.
func TestProtocolFaults(t *testing.T) {
	t.Parallel()
	start := func(size uint32, body string) *pluginpb.HostFrame {
		return &pluginpb.HostFrame{Id: 1, Kind: &pluginpb.HostFrame_Start{Start: &pluginpb.Start{PayloadBytes: size, Body: []byte(body)}}}
	}
	body := func(id uint64, part string) *pluginpb.HostFrame {
		return &pluginpb.HostFrame{Id: id, Kind: &pluginpb.HostFrame_Body{Body: []byte(part)}}
	}
	second := start(0, "")
	second.Id = 2
	nobody := start(1, "")
	nobody.Id = 0
	for name, c := range map[string]struct {
		frames []*pluginpb.HostFrame
		want   string
	}{
		"twice":       {[]*pluginpb.HostFrame{start(9, ""), start(9, "")}, "begun twice"},
		"id 0":        {[]*pluginpb.HostFrame{nobody}, "begun twice"},
		"over slots":  {[]*pluginpb.HostFrame{start(9, ""), second}, "over the 1 slots"},
		"too much":    {[]*pluginpb.HostFrame{start(2, "abc")}, "1 bytes more than announced"},
		"more parts":  {[]*pluginpb.HostFrame{start(2, "a"), body(1, "bc")}, "expects none"},
		"no attempt":  {[]*pluginpb.HostFrame{body(7, "x")}, "expects none"},
		"empty part":  {[]*pluginpb.HostFrame{start(2, "a"), body(1, "")}, "expects none"},
		"without any": {[]*pluginpb.HostFrame{{Id: 1}}, "of kind <nil>"},
	} {
		r := newRunner(Config{Slots: 1, MemoryPerSlot: 1 << 20, Modules: 1}, lockdown.Report{}, func(error) {})
		var err error
		for _, f := range c.frames {
			if err == nil {
				err = r.frame(f)
			}
		}
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// When the host does not read, lines are dropped and counted, and the rest arrives in order.
func TestLogRingIsLossy(t *testing.T) {
	t.Parallel()
	l := newLogRing()
	line := strings.Repeat("x", 4000)
	const n = 2000 // 8 MB
	for i := range n {
		l.add(&pluginpb.LogLine{Id: uint64(i + 1), Message: line})
	}
	ctx, cancel := context.WithCancel(t.Context())
	var got, dropped, last uint64
	_ = l.run(ctx, func(b *pluginpb.LogBatch) error {
		for _, line := range b.GetLines() {
			if line.GetId() != last+1 {
				t.Errorf("line %d after %d", line.GetId(), last)
			}
			last = line.GetId()
			got++
		}
		if dropped += b.GetDropped(); got+dropped == n {
			cancel()
		}
		return nil
	})
	if got < 900 || dropped < 900 || l.sequence() != n {
		t.Errorf("%d lines and %d dropped of %d", got, dropped, l.sequence())
	}
}

func TestChildWithoutSupervisor(t *testing.T) {
	if code := Child(t.Context(), []string{"--slots=none"}); code != ExitUsage {
		t.Errorf("exit code %d", code)
	}
}

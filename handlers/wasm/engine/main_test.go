package engine

import (
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/taskhost/taskhost/abi"
	"github.com/taskhost/taskhost/handlers"
	"github.com/taskhost/taskhost/handlers/wasm/engine/attempt"
	"github.com/taskhost/taskhost/handlers/wasm/wasmtest"
)

func TestMain(m *testing.M) {
	dir, err := os.MkdirTemp("", "engine-test-")
	if err != nil {
		panic(err)
	}
	guests.cache = dir
	goleak.VerifyTestMain(m, goleak.Cleanup(func(code int) {
		if err := os.RemoveAll(dir); err != nil {
			panic(err)
		}
		os.Exit(code)
	}))
}

// load compiles and loads a module as compile child and runner do.
func load(tb testing.TB, kind handlers.Kind, module []byte) *Module {
	tb.Helper()
	dir := tb.TempDir()
	module = wasmtest.Metered(tb, module)
	if err := Compile(tb.Context(), module, dir); err != nil {
		tb.Fatal(err)
	}
	return loadFrom(tb, kind, module, dir)
}

func loadFrom(tb testing.TB, kind handlers.Kind, module []byte, dir string) *Module {
	tb.Helper()
	m, err := Load(tb.Context(), module, kind, dir)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		if err := m.Close(); err != nil {
			tb.Error(err)
		}
	})
	return m
}

func reactor(tb testing.TB, b *wasmtest.Builder, body ...[]byte) *Module {
	tb.Helper()
	return load(tb, handlers.KindReactor, b.Reactor(nil, body...))
}

func input(payload string) attempt.Input {
	return attempt.Input{
		JobID: "job-1", Tenant: "acme", Queue: "mail", Type: "send", Attempt: 2, MaxAttempts: 5,
		Headers: map[string]string{"trace": "t-1"}, Config: map[string]string{"REGION": "north"},
		Payload:  []byte(payload),
		Deadline: time.Now().Add(time.Minute),
		Limits:   attempt.Limits{Memory: 64 << 20, Result: 1 << 20, Log: 256 << 10, Checkpoint: 1 << 20},
	}
}

// reports keeps what a guest reports.
type reports struct {
	mu         sync.Mutex
	lines      []string
	progress   []int64
	checkpoint []byte
	answer     abi.Errno
}

func (r *reports) Log(level int32, message string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.lines = append(r.lines, abi.LevelName(level)+" "+message)
}

func (r *reports) Progress(done, total int64, _ string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.progress = append(r.progress, done, total)
}

func (r *reports) Checkpoint(data []byte) abi.Errno {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.checkpoint = data
	return r.answer
}

func (r *reports) text() string { return strings.Join(r.lines, "\n") }

// goGuests are the guests in testdata, built and compiled once per process: that is most of what these tests cost.
type goGuests struct {
	mu    sync.Mutex
	made  map[string][]byte
	cache string
}

var guests = goGuests{made: map[string][]byte{}}

func (g *goGuests) module(tb testing.TB, name string, build func(testing.TB, string, ...string) []byte) []byte {
	tb.Helper()
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.made[name] == nil {
		source, err := os.ReadFile("testdata/" + name + ".go")
		if err != nil {
			tb.Fatal(err)
		}
		module := wasmtest.Metered(tb, build(tb, string(source)))
		if err := Compile(tb.Context(), module, g.cache); err != nil {
			tb.Fatal(err)
		}
		g.made[name] = module
	}
	return g.made[name]
}

func goCommand(tb testing.TB) *Module {
	tb.Helper()
	return loadFrom(tb, handlers.KindCommand, guests.module(tb, "command", wasmtest.GoCommand), guests.cache)
}

func goReactor(tb testing.TB) *Module {
	tb.Helper()
	return loadFrom(tb, handlers.KindReactor, guests.module(tb, "reactor", wasmtest.GoReactor), guests.cache)
}

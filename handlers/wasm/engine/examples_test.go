package engine

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"

	"github.com/taskhost/taskhost/abi"
	"github.com/taskhost/taskhost/handlers/wasm/engine/attempt"
	"github.com/taskhost/taskhost/handlers/wasm/engine/hostcall"
	"github.com/taskhost/taskhost/handlers/wasm/engine/wasi"
	"github.com/taskhost/taskhost/handlers/wasm/meter"
	w "github.com/taskhost/taskhost/handlers/wasm/wasmtest"
)

// exampleRun is all that a host sees of an attempt.
type exampleRun struct {
	Returned   uint64
	Trap       string // its first line; the stacks differ by offsets
	End        attempt.End
	Code       uint32
	Result     string
	Complaint  string
	Failure    *attempt.Failure
	Lines      []string
	Progress   []int64
	Checkpoint string
}

// exampleHost runs one module, as it is or metered.
type exampleHost struct {
	rt       wazero.Runtime
	compiled wazero.CompiledModule
	metered  *meter.Result
}

func newExampleHost(t *testing.T, config wazero.RuntimeConfig, module []byte, metered bool) *exampleHost {
	t.Helper()
	ctx := context.Background()
	h := &exampleHost{rt: wazero.NewRuntimeWithConfig(ctx, config.WithCoreFeatures(Features).WithMemoryLimitPages(2048))}
	t.Cleanup(func() { _ = h.rt.Close(ctx) })
	if metered {
		var err error
		if h.metered, err = meter.Instrument(module); err != nil {
			t.Fatal(err)
		}
		module = h.metered.Module
	}
	ticks := h.rt.NewHostModuleBuilder(meter.TickModule).NewFunctionBuilder().WithGoFunction(api.GoFunc(tick), nil, nil).Export(meter.TickName)
	for _, b := range []wazero.HostModuleBuilder{ticks, hostcall.Export(h.rt.NewHostModuleBuilder(abi.ModuleHost)), wasi.Export(h.rt.NewHostModuleBuilder(wasi.Module))} {
		if _, err := b.Instantiate(ctx); err != nil {
			t.Fatal(err)
		}
	}
	var err error
	if h.compiled, err = h.rt.CompileModule(ctx, module); err != nil {
		t.Fatal(err)
	}
	return h
}

// run runs one attempt and returns what came of it, and the fuel that it took.
func (h *exampleHost) run(t *testing.T, in attempt.Input) (exampleRun, int64) {
	t.Helper()
	r := &reports{}
	s := attempt.New(in, r)
	ctx := attempt.Context(context.Background(), s)
	m, err := h.rt.InstantiateModule(ctx, h.compiled, wazero.NewModuleConfig().WithName("").WithStartFunctions())
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close(ctx)
	entries := []string{abi.ExportStart}
	if m.ExportedFunction(abi.ExportHandle) != nil {
		entries = []string{abi.ExportInitialize, abi.ExportHandle}
	}
	if h.metered != nil {
		s.Fuel(m.ExportedGlobal(meter.ExportFuel).(api.MutableGlobal))
		entries = append([]string{meter.ExportStart}, entries...)
	}
	var run exampleRun
	for _, entry := range entries {
		f := m.ExportedFunction(entry)
		if f == nil {
			continue
		}
		results, err := f.Call(ctx)
		if err != nil {
			run.Trap, _, _ = strings.Cut(err.Error(), "\n")
			break
		}
		if len(results) > 0 {
			run.Returned = results[0]
		}
	}
	s.FlushStderr()
	run.End, run.Code = s.Ended()
	run.Result, run.Complaint, run.Failure = string(s.Result()), s.Complaint(), s.Failure
	run.Lines, run.Progress, run.Checkpoint = r.lines, r.progress, string(r.checkpoint)
	return run, s.FuelUsed()
}

// example is a guest and the jobs that it is given.
type example struct {
	name          string
	deterministic bool // it draws no random numbers: its fuel is always the same; others must be given the same ones
	long          bool // it is much like another one
	jobs          []attempt.Input
}

func examples(t *testing.T) []example {
	file := func(name string) string {
		data, err := os.ReadFile(filepath.Join("../../../wasm-examples", name))
		if err != nil {
			t.Fatal(err)
		}
		return string(data)
	}
	job := func(typ, payload string) attempt.Input {
		in := input(payload)
		in.Type, in.Deadline = typ, time.Now().Add(time.Hour)
		return in
	}
	texts := []attempt.Input{job("words", file("wordcount/payload.txt")), job("words", ""), job("words", " one  two\nthree"), job("words", "\xff\xfe broken \xc3(")}
	return []example{
		{"wordcount-c", true, false, texts},
		{"wordcount-go", false, true, texts},
		{"samples-c", true, false, []attempt.Input{job("hello", `{"name":"Ada"}`), job("hello", `{}`), job("hello", `{"name":7}`), job("hello", `[`), job("hello", ""),
			job("flaky", `{"fail":2}`), job("flaky", `{"fail":-1}`), job("sleep", `{"ms":0}`), job("sleep", `{"ms":"x"}`), job("nothing", "{}")}},
		{"thumbnail-go", false, true, []attempt.Input{job("thumbnail", file("thumbnail/payload.jpg")), job("thumbnail", ""), job("thumbnail", "no picture"), job("thumbnail", file("thumbnail/payload.jpg")[:3000])}},
		{"conformance-go", false, false, goldenJobs(t, job)},
	}
}

// goldenJobs makes the conformance guest play all golden vectors, and one that is not as written.
func goldenJobs(t *testing.T, job func(typ, payload string) attempt.Input) (jobs []attempt.Input) {
	data, err := os.ReadFile("../../../abi/testdata/hostcalls.json")
	if err != nil {
		t.Fatal(err)
	}
	var scripts []json.RawMessage
	if err := json.Unmarshal(data, &scripts); err != nil {
		t.Fatal(err)
	}
	for _, raw := range append(scripts, json.RawMessage(`{"calls":[{"call":"input_len","returns":-5}]}`)) {
		var s script
		if err := json.Unmarshal(raw, &s); err != nil {
			t.Fatal(err)
		}
		in := job(s.Job.Type, s.Job.Payload)
		in.Attempt, in.MaxAttempts, in.Headers = max(s.Job.Attempt, 1), max(s.Job.MaxAttempts, 1), s.Job.Headers
		in.Config = map[string]string{"script": string(raw)}
		for k, v := range s.Job.Config {
			in.Config[k] = v
		}
		if s.Job.ResultLimit > 0 {
			in.Limits.Result = s.Job.ResultLimit
		}
		if s.Job.Checkpoint != nil {
			in.Checkpoint = []byte(*s.Job.Checkpoint)
		}
		jobs = append(jobs, in)
	}
	return jobs
}

// The examples do the same before and after the rewriting: results, logs, failures, exit codes, traps. Those that draw no random numbers take
// the same fuel from run to run, compiled and interpreted; the others from run to run, when their random numbers are the same.
func TestExamplesBeforeAndAfterMetering(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("clang"); err != nil && os.Getenv("CI") == "" {
		t.Skip("clang is not installed (scripts/setup.sh installs it)")
	}
	out := t.TempDir()
	build := exec.CommandContext(t.Context(), "make", "OUT="+out)
	build.Dir = "../../../wasm-examples"
	if text, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	built, err := filepath.Glob(filepath.Join(out, "*.wasm"))
	if err != nil {
		t.Fatal(err)
	}
	all := append(examples(t), ownGuests(t, out)...)
	if len(built)+2 != len(all) {
		t.Errorf("%d examples are built, %d are run with the two of this package: %v", len(built), len(all), built)
	}
	for _, e := range all {
		t.Run(e.name, func(t *testing.T) {
			t.Parallel()
			if e.long && os.Getenv("TASKHOST_TEST_LONG") == "" {
				t.Skip("takes long to compile; set TASKHOST_TEST_LONG=1")
			}
			module, err := os.ReadFile(filepath.Join(out, e.name+".wasm"))
			if err != nil {
				t.Fatal(err)
			}
			compareExample(t, &e, module)
		})
	}
}

// ownGuests builds the guests of this package there, which do more than examples should.
func ownGuests(t *testing.T, dir string) []example {
	guest := func(name string, build func(testing.TB, string, ...string) []byte, payloads ...string) example {
		source, err := os.ReadFile("testdata/" + name + ".go")
		if err != nil {
			t.Fatal(err)
		}
		e := example{name: name, long: name == "reactor"}
		if err := os.WriteFile(filepath.Join(dir, e.name+".wasm"), build(t, string(source)), 0o600); err != nil {
			t.Fatal(err)
		}
		for _, payload := range payloads {
			in := input(payload)
			in.Deadline = time.Now().Add(time.Hour)
			e.jobs = append(e.jobs, in)
		}
		return e
	}
	return []example{
		guest("reactor", w.GoReactor, "all", "defer", "fail because", "count", ""),
		guest("command", w.GoCommand, "echo some text", "env", "exit 0", "exit 7", "exit 75", "panic now", "sleep 1ms", "files", "unknown"),
	}
}

func compareExample(t *testing.T, e *example, module []byte) {
	compiler := wazero.NewRuntimeConfigCompiler()
	original, metered := newExampleHost(t, compiler, module, false), newExampleHost(t, compiler, module, true)
	var interpreted *exampleHost
	if e.deterministic {
		interpreted = newExampleHost(t, wazero.NewRuntimeConfigInterpreter(), module, true)
	}
	ends := map[string]int{}
	for i, in := range e.jobs {
		want, _ := original.run(t, in)
		got, fuel := metered.run(t, in)
		if !reflect.DeepEqual(got, want) {
			t.Errorf("job %d (%.40q):\noriginal %+v\nmetered  %+v", i, in.Payload, want, got)
		}
		ends[fmt.Sprintf("returned %d, end %d, exit code %d, trap %q", want.Returned, want.End, want.Code, want.Trap)]++
		if fuel < 100 {
			t.Errorf("job %d took %d units of fuel", i, fuel)
		}
		var same [2]int64
		for k := range same {
			if !e.deterministic {
				in.Random = rand.NewChaCha8([32]byte{1})
			}
			_, same[k] = metered.run(t, in)
		}
		if same[0] != same[1] || e.deterministic && same[0] != fuel {
			t.Errorf("job %d takes %d units of fuel, then %d, %d at first", i, same[0], same[1], fuel)
		}
		if !e.deterministic {
			continue
		}
		if got, slow := interpreted.run(t, in); slow != fuel || !reflect.DeepEqual(got, want) {
			t.Errorf("job %d takes %d units of fuel, interpreted %d, with %+v", i, fuel, slow, got)
		}
	}
	for end, n := range ends {
		t.Logf("%d jobs: %s", n, end)
	}
}

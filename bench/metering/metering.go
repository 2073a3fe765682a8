// Package metering measures what it costs to be able to stop a guest: programs as they were built, metered as taskhost runs them, and with
// wazero's own check (WithCloseOnContextDone), in turns on one thread.
package metering

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
	"github.com/tetratelabs/wazero/imports/wasi_snapshot_preview1"
	"golang.org/x/sys/unix"

	"github.com/taskhost/taskhost/handlers/wasm/meter"
)

// Tight is the workload that is nothing but a short loop. It is the worst case and no part of the means.
const Tight = "b_tight"

// slice is what a guest is granted between two ticks, as in taskhost's engine.
const slice = 50_000

// Workload is what one function of a guest took: medians of processor time.
type Workload struct {
	Language, Name             string
	Original, Metered, Checked time.Duration
}

// Mean is the geometric mean over the workloads but Tight, of metered and checked against the original.
func Mean(all []Workload) (metered, checked float64) {
	n := 0.0
	for _, w := range all {
		if w.Name != Tight {
			metered += math.Log(float64(w.Metered) / float64(w.Original))
			checked += math.Log(float64(w.Checked) / float64(w.Original))
			n++
		}
	}
	return math.Exp(metered / n), math.Exp(checked / n)
}

// Measure builds the guests from their sources, a Go and a C program, and measures each of their workloads for so many rounds. It fails when
// the three do not give the same result.
func Measure(ctx context.Context, sources string, rounds int) (all []Workload, err error) {
	dir, err := os.MkdirTemp("", "taskhost-bench-")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	for _, g := range []struct {
		language string
		dir      string
		command  []string
		env      []string
	}{
		{"Go", filepath.Join(sources, "go"), []string{"go", "build", "-buildmode=c-shared", "-o"}, []string{"GOOS=wasip1", "GOARCH=wasm", "GOFLAGS="}},
		{"C", filepath.Join(sources, "c"), []string{"clang", "--target=wasm32-wasi", "-O2", "-mexec-model=reactor", "bench.c", "-o"}, nil},
	} {
		file := filepath.Join(dir, g.language+".wasm")
		cmd := exec.CommandContext(ctx, g.command[0], append(g.command[1:], file)...)
		cmd.Dir, cmd.Env = g.dir, append(os.Environ(), g.env...)
		if out, err := cmd.CombinedOutput(); err != nil {
			return nil, fmt.Errorf("build the %s guest: %w\n%s", g.language, err, out)
		}
		module, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		measured, err := guest(ctx, g.language, module, rounds)
		if err != nil {
			return nil, fmt.Errorf("%s guest: %w", g.language, err)
		}
		all = append(all, measured...)
	}
	return all, nil
}

func guest(ctx context.Context, language string, module []byte, rounds int) (all []Workload, err error) {
	rewritten, err := meter.Instrument(module)
	if err != nil {
		return nil, err
	}
	var sides [3]api.Module
	for i, side := range []struct {
		module []byte
		check  bool
	}{{module, false}, {rewritten.Module, false}, {module, true}} {
		var closeSide func() error
		if sides[i], closeSide, err = start(ctx, side.module, side.check); err != nil {
			return nil, err
		}
		defer func() { err = errors.Join(err, closeSide()) }()
	}
	var names []string
	for name := range sides[0].ExportedFunctionDefinitions() {
		if strings.HasPrefix(name, "b_") {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	for _, name := range names {
		took, err := turns(ctx, name, sides, rounds)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		all = append(all, Workload{language, name, took[0], took[1], took[2]})
	}
	return all, nil
}

// start makes an instance that is ready to be called.
func start(ctx context.Context, module []byte, check bool) (_ api.Module, closeAll func() error, err error) {
	rt := wazero.NewRuntimeWithConfig(ctx, wazero.NewRuntimeConfigCompiler().WithCloseOnContextDone(check))
	closeAll = func() error { return rt.Close(context.WithoutCancel(ctx)) }
	defer func() {
		if err != nil {
			err = errors.Join(err, closeAll())
		}
	}()
	if _, err := wasi_snapshot_preview1.Instantiate(ctx, rt); err != nil {
		return nil, nil, err
	}
	var fuel api.MutableGlobal
	refuel := func() { fuel.Set(uint64(int64(fuel.Get()) + slice)) }
	deadline := time.Now().Add(time.Hour)
	_, err = rt.NewHostModuleBuilder(meter.TickModule).NewFunctionBuilder().WithGoFunction(api.GoFunc(func(context.Context, []uint64) {
		if time.Now().After(deadline) { // as the engine looks
			panic("an hour has passed")
		}
		refuel()
	}), nil, nil).Export(meter.TickName).Instantiate(ctx)
	if err != nil {
		return nil, nil, err
	}
	m, err := rt.InstantiateWithConfig(ctx, module, wazero.NewModuleConfig().WithName("").WithStartFunctions())
	if err != nil {
		return nil, nil, err
	}
	names := []string{"_initialize"}
	if g := m.ExportedGlobal(meter.ExportFuel); g != nil {
		fuel = g.(api.MutableGlobal)
		refuel()
		names = []string{meter.ExportStart, "_initialize"}
	}
	for _, name := range names {
		if f := m.ExportedFunction(name); f != nil {
			if _, err := f.Call(ctx); err != nil {
				return nil, nil, fmt.Errorf("%s: %w", name, err)
			}
		}
	}
	return m, closeAll, nil
}

// turns calls a function in each instance in turn, after one call to warm up.
func turns(ctx context.Context, name string, sides [3]api.Module, rounds int) (medians [3]time.Duration, err error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	ctx, cancel := context.WithCancel(ctx) // without one wazero's check has nothing to look at
	defer cancel()
	var took [3][]time.Duration
	for round := range rounds + 1 {
		var first []uint64
		for i, m := range sides {
			began := cpuTime()
			got, err := m.ExportedFunction(name).Call(ctx)
			if err != nil {
				return medians, err
			}
			if round > 0 {
				took[i] = append(took[i], cpuTime()-began)
			}
			if i == 0 {
				first = got
			} else if !slices.Equal(got, first) {
				return medians, fmt.Errorf("figure void: results %v and %v", first, got)
			}
		}
	}
	for i := range took {
		slices.Sort(took[i])
		medians[i] = took[i][rounds/2]
	}
	return medians, nil
}

// cpuTime is the processor time of this thread.
func cpuTime() time.Duration {
	var t unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &t); err != nil {
		panic(err)
	}
	return time.Duration(t.Nano())
}

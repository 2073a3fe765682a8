package meter_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
	"github.com/tetratelabs/wazero/imports/wasi_snapshot_preview1"

	"github.com/taskhost/taskhost/handlers/wasm/meter"
)

// host runs modules in one engine, as they are or metered.
type host struct {
	rt      wazero.Runtime
	metered bool
	slice   int64
	limit   int64 // of fuel per call; 0 for none

	modules []api.Module
	granted int64
	ticks   int
	onTick  func(m api.Module)
}

// reduced reports whether only a sample of the long tests is run.
func reduced() bool { return testing.Short() || raceDetector }

var errOutOfFuel = errors.New("out of fuel")

// newHost prepares the module of tick. The engine is closed at the end of the test.
func newHost(tb testing.TB, config wazero.RuntimeConfig, metered bool, slice int64) *host {
	tb.Helper()
	ctx := context.Background()
	h := &host{rt: wazero.NewRuntimeWithConfig(ctx, config), metered: metered, slice: slice}
	tb.Cleanup(func() { _ = h.rt.Close(ctx) })
	if !metered {
		return h
	}
	_, err := h.rt.NewHostModuleBuilder(meter.TickModule).NewFunctionBuilder().
		WithGoModuleFunction(api.GoModuleFunc(h.tick), nil, nil).Export(meter.TickName).Instantiate(ctx)
	if err != nil {
		tb.Fatal(err)
	}
	return h
}

func fuelOf(m api.Module) api.MutableGlobal {
	return m.ExportedGlobal(meter.ExportFuel).(api.MutableGlobal)
}

func (h *host) tick(_ context.Context, m api.Module, _ []uint64) {
	h.ticks++
	if h.onTick != nil {
		h.onTick(m)
	}
	if h.limit > 0 && h.granted >= h.limit {
		panic(errOutOfFuel)
	}
	h.grant(m)
}

func (h *host) grant(m api.Module) {
	h.granted += h.slice
	f := fuelOf(m)
	f.Set(uint64(int64(f.Get()) + h.slice))
}

// used is the fuel that all modules have taken.
func (h *host) used() int64 {
	used := h.granted
	for _, m := range h.modules {
		used -= int64(fuelOf(m).Get())
	}
	return used
}

// start compiles and instantiates a module, metering it first if this is what the host does. The start section runs, too.
func (h *host) start(tb testing.TB, name string, original []byte) (api.Module, error) {
	tb.Helper()
	ctx := context.Background()
	code, hasStart := original, false
	if h.metered {
		res, err := meter.Instrument(original)
		if err != nil {
			return nil, err
		}
		code, hasStart = res.Module, res.HasStart
	}
	compiled, err := h.rt.CompileModule(ctx, code)
	if err != nil {
		if h.metered {
			tb.Errorf("the rewritten module is not valid: %v", err)
		}
		return nil, err
	}
	m, err := h.rt.InstantiateModule(ctx, compiled, wazero.NewModuleConfig().WithName(name).WithStartFunctions())
	if err != nil {
		return nil, err
	}
	if h.metered {
		h.modules = append(h.modules, m)
		h.grant(m)
		if hasStart {
			_, err = m.ExportedFunction(meter.ExportStart).Call(ctx)
		}
	}
	return m, err
}

// wasi makes the host a WASI host.
func (h *host) wasi() *host {
	wasi_snapshot_preview1.MustInstantiate(context.Background(), h.rt)
	return h
}

// trap is the kind of an error: its first line, without the stack, which differs by names and offsets.
func trap(err error) string {
	if err == nil {
		return ""
	}
	line, _, _ := strings.Cut(err.Error(), "\n")
	return line
}

// outcome is what a call did.
type outcome struct {
	results []uint64
	trap    string
}

func (o outcome) String() string {
	if o.trap != "" {
		return o.trap
	}
	return fmt.Sprintf("%x", o.results)
}

func (o outcome) equal(p outcome) bool { return o.trap == p.trap && slices.Equal(o.results, p.results) }

func call(m api.Module, name string, args ...uint64) outcome {
	results, err := m.ExportedFunction(name).Call(context.Background(), args...)
	return outcome{slices.Clone(results), trap(err)}
}

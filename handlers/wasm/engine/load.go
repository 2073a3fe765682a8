package engine

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"path/filepath"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
	"github.com/tetratelabs/wazero/experimental"

	"github.com/taskhost/taskhost/abi"
	"github.com/taskhost/taskhost/handlers"
	"github.com/taskhost/taskhost/handlers/wasm/engine/attempt"
	"github.com/taskhost/taskhost/handlers/wasm/engine/hostcall"
	"github.com/taskhost/taskhost/handlers/wasm/engine/wasi"
	"github.com/taskhost/taskhost/handlers/wasm/meter"
)

// ErrNotCompiled: the cache directory has no native code for this module, build and processor.
var ErrNotCompiled = errors.New("no compiled code for this module, build and processor")

// Module is a loaded module. Run may be called from many goroutines at once.
//
// Every module has a wazero runtime of its own: closing it returns all of it, native code included, and instances of different modules
// share no lock. Its host modules serve all of its instances.
type Module struct {
	kind     handlers.Kind
	runtime  wazero.Runtime
	cache    wazero.CompilationCache
	compiled wazero.CompiledModule
	config   wazero.ModuleConfig
	minBytes int64
	hasInit  bool
	hasStart bool // a start section, which metering has made a function
	asks     bool // it imports should_stop
	lines    string
}

// Load makes ready to run what Compile has compiled into cacheDir, which must be a module that package meter has rewritten: one that cannot be
// stopped is not loaded. It never compiles: without the native code of exactly this module it
// returns ErrNotCompiled. The directory is only read. The caller vouches for its content: wazero checks against accidents only, and what is
// in there is run as native code.
func Load(ctx context.Context, module []byte, kind handlers.Kind, cacheDir string) (_ *Module, err error) {
	if kind != handlers.KindCommand && kind != handlers.KindReactor {
		return nil, fmt.Errorf("load: kind %q is neither %q nor %q", kind, handlers.KindCommand, handlers.KindReactor)
	}
	if tree, err := filepath.Glob(filepath.Join(cacheDir, "wazero-*")); err != nil || len(tree) == 0 { // wazero would make it
		return nil, fmt.Errorf("load: %w", ErrNotCompiled)
	}
	cache, err := wazero.NewCompilationCacheWithDir(cacheDir)
	if err != nil {
		return nil, fmt.Errorf("load: cache directory: %w", err)
	}
	m := &Module{kind: kind, cache: cache, runtime: wazero.NewRuntimeWithConfig(ctx, runtimeConfig(cache))}
	defer func() {
		if err != nil {
			err = errors.Join(fmt.Errorf("load: %w", err), m.Close())
		}
	}()
	if m.compiled, err = m.runtime.CompileModule(neverCompile(ctx), module); err != nil {
		return nil, err
	}
	if err := m.examine(); err != nil {
		return nil, err
	}
	host := m.runtime.NewHostModuleBuilder(abi.ModuleHost)
	if _, err := hostcall.Export(host).Instantiate(ctx); err != nil {
		return nil, fmt.Errorf("host module %s: %w", abi.ModuleHost, err)
	}
	ticks := m.runtime.NewHostModuleBuilder(meter.TickModule).NewFunctionBuilder()
	if _, err := ticks.WithGoFunction(api.GoFunc(tick), nil, nil).Export(meter.TickName).Instantiate(ctx); err != nil {
		return nil, fmt.Errorf("host module %s: %w", meter.TickModule, err)
	}
	if _, err := wasi.Export(m.runtime.NewHostModuleBuilder(wasi.Module)).Instantiate(ctx); err != nil {
		return nil, fmt.Errorf("host module %s: %w", wasi.Module, err)
	}
	// No name, so that many instances can exist at once; no start functions, as Run calls them itself. The source of random numbers is not
	// used, as our WASI has its own: wazero would seed a generator of 5 KB for every instance.
	m.config = wazero.NewModuleConfig().WithName("").WithStartFunctions().WithRandSource(rand.Reader)
	return m, nil
}

// neverCompile returns a context under which wazero finds compiled code but does not compile: a compilation by several workers looks at
// its context before every function, the cache does not. The interpreter has no cache and takes no notice.
func neverCompile(ctx context.Context) context.Context {
	ctx, cancel := context.WithCancelCause(ctx)
	cancel(ErrNotCompiled)
	return experimental.WithCompilationWorkers(ctx, 2)
}

// examine checks what Run relies on. Admission has refused modules without it; a runner does not take that on trust.
func (m *Module) examine() error {
	mem, ok := m.compiled.ExportedMemories()[abi.ExportMemory]
	if !ok {
		return fmt.Errorf("it exports no memory named %q", abi.ExportMemory)
	}
	m.minBytes = int64(mem.Min()) * wasmPage
	if n := len(m.compiled.ImportedMemories()); n > 0 {
		return fmt.Errorf("it imports %d memories", n)
	}
	if m.asks = m.imports(abi.ModuleHost, "should_stop"); !m.imports(meter.TickModule, meter.TickName) {
		return fmt.Errorf("it is not metered, so that nothing could stop it")
	}
	entry, results := abi.ExportStart, 0
	if m.kind == handlers.KindReactor {
		entry, results = abi.ExportHandle, 1
	}
	functions := m.compiled.ExportedFunctions()
	f, ok := functions[entry]
	if !ok {
		return fmt.Errorf("it exports no function %s", entry)
	}
	if len(f.ParamTypes()) != 0 || len(f.ResultTypes()) != results || results == 1 && f.ResultTypes()[0] != api.ValueTypeI32 {
		return fmt.Errorf("its %s has the wrong signature", entry)
	}
	_, m.hasStart = functions[meter.ExportStart]
	if m.kind == handlers.KindReactor {
		var init api.FunctionDefinition
		if init, m.hasInit = functions[abi.ExportInitialize]; m.hasInit && len(init.ParamTypes())+len(init.ResultTypes()) != 0 {
			return fmt.Errorf("its %s has the wrong signature", abi.ExportInitialize)
		}
	}
	return nil
}

// imports tells whether the module can call a function of the host. A metered one can call tick; that it does so often enough is what the
// compile child has seen to.
func (m *Module) imports(from, function string) bool {
	for _, f := range m.compiled.ImportedFunctions() {
		if module, name, _ := f.Import(); module == from && name == function {
			return true
		}
	}
	return false
}

// tick is what a metered guest calls when its fuel is used up.
func tick(ctx context.Context, _ []uint64) { attempt.From(ctx).Tick() }

// SetLines names a file of line information (package srcline), with which traces of traps name source lines. Call it before the first Run.
func (m *Module) SetLines(file string) { m.lines = file }

// MinMemory is the memory an instance begins with, in bytes.
func (m *Module) MinMemory() int64 { return m.minBytes }

// Close returns the native code and everything else. No Run may be under way or follow.
func (m *Module) Close() error {
	return errors.Join(m.runtime.Close(context.Background()), m.cache.Close(context.Background()))
}

package engine

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime"
	"runtime/debug"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
)

// Features are the WebAssembly features a guest may use: WebAssembly 2.0, that is the MVP, sign extension, saturating float
// conversion, multi-value, bulk memory, reference types and SIMD.
const Features = api.CoreFeaturesV2

const wazeroPath = "github.com/tetratelabs/wazero"

// Compile compiles a module into cacheDir, so that Load finds native code there and need not compile. It validates the module fully
// first; what wazero finds wrong is in the error. cacheDir must exist and be writable. Nothing of the module runs.
//
// The caller bounds what this costs: crafted modules can keep wazero busy for minutes or exhaust memory, so it belongs in a process of
// its own, after the checks of package admission. ctx is looked at before and after, not during, compilation.
func Compile(ctx context.Context, module []byte, cacheDir string) (err error) {
	if err := context.Cause(ctx); err != nil {
		return err
	}
	if st, err := os.Stat(cacheDir); err != nil {
		return fmt.Errorf("cache directory: %w", err)
	} else if !st.IsDir() {
		return fmt.Errorf("cache directory %s: not a directory", cacheDir)
	}
	cache, err := wazero.NewCompilationCacheWithDir(cacheDir)
	if err != nil {
		return fmt.Errorf("cache directory: %w", err)
	}
	rt := wazero.NewRuntimeWithConfig(ctx, runtimeConfig(cache))
	defer func() {
		err = errors.Join(err, rt.Close(context.WithoutCancel(ctx)), cache.Close(context.WithoutCancel(ctx)))
	}()
	if _, err := rt.CompileModule(ctx, module); err != nil {
		return fmt.Errorf("compile: %w", err)
	}
	return context.Cause(ctx)
}

// Validate checks a module as Compile does, without making native code: it costs what decoding and type-checking cost. Nothing of the
// module runs. Where there is no compiler it costs what Compile does.
func Validate(ctx context.Context, module []byte) (err error) {
	if err := context.Cause(ctx); err != nil {
		return err
	}
	rt := wazero.NewRuntimeWithConfig(ctx, runtimeConfig(nil).WithDebugInfoEnabled(false))
	defer func() { err = errors.Join(err, rt.Close(context.WithoutCancel(ctx))) }()
	// wazero has no validation by itself: a compilation that ends before the first function is what comes nearest.
	if _, err := rt.CompileModule(neverCompile(ctx), module); err != nil && !errors.Is(err, ErrNotCompiled) {
		return err
	}
	return context.Cause(ctx)
}

// runtimeConfig is the one configuration of compiling and loading; wazero's cache key depends on it. Debug information is read, but what an upload
// brought is not in what is compiled: package srcline has replaced it.
//
// WithCloseOnContextDone stays off: it makes loops 20 to 30 times slower and misses code without loops.
func runtimeConfig(cache wazero.CompilationCache) wazero.RuntimeConfig {
	config := wazero.NewRuntimeConfig().WithCoreFeatures(Features).WithDebugInfoEnabled(true)
	if cache != nil {
		config = config.WithCompilationCache(cache)
	}
	return config
}

// Compiled reports whether this platform runs native code. Where it is false, wazero interprets: every
// guest works and is slower by one to two orders of magnitude.
func Compiled() bool {
	switch runtime.GOARCH {
	case "amd64", "arm64":
		switch runtime.GOOS {
		case "linux", "darwin", "freebsd", "netbsd", "windows":
			return true
		}
	}
	return false
}

// Identity names what decides whether compiled code can be used again, apart from the processor's features: wazero's version, the kind of
// engine, architecture and operating system. It is stable for one build of the program.
func Identity() string {
	kind := "compiler"
	if !Compiled() {
		kind = "interpreter"
	}
	return fmt.Sprintf("wazero %s %s %s/%s", wazeroVersion(), kind, runtime.GOARCH, runtime.GOOS)
}

func wazeroVersion() string {
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, dep := range info.Deps {
			if dep.Path == wazeroPath {
				return dep.Version
			}
		}
	}
	return "dev"
}

package compile

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime/debug"
	"syscall"

	"github.com/taskhost/taskhost/handlers"
	"github.com/taskhost/taskhost/handlers/wasm/admission"
	"github.com/taskhost/taskhost/handlers/wasm/artifact"
	"github.com/taskhost/taskhost/handlers/wasm/engine"
	"github.com/taskhost/taskhost/handlers/wasm/meter"
	"github.com/taskhost/taskhost/handlers/wasm/srcline"
)

// Rewriter is the version of what changes a module between the scan and the compiler; it is part of every artifact's key.
func Rewriter() string { return fmt.Sprintf("meter %d, lines 1", meter.Version) }

// work is one module on its way through the steps. Files are written into the current directory.
type work struct {
	uploaded []byte
	module   []byte // what will run
	lines    []byte // its line information; nil = none
	limits   admission.Limits
	report   *admission.Report
}

// step is one stage of the pipeline. It returns a *handlers.Refusal when the module is at fault.
type step struct {
	name string
	run  func(ctx context.Context, w *work) error
}

// pipeline is the order of the steps. The original is validated before it is rewritten: what is out of range in it could be in range
// after. A step that takes a start-up image belongs after compile.
func pipeline() []step {
	return []step{
		{"scan", scan},
		{"validate", validate},
		{"meter", rewrite},
		{"compile", compile},
	}
}

// maxLines bounds line information, in bytes: reading it takes a runner some 0.1 s at that size. Beyond it, traces have function names only.
const maxLines = 8 << 20

func scan(_ context.Context, w *work) error {
	report, refusal := admission.Check(w.uploaded, w.limits)
	if refusal != nil {
		return refusal
	}
	w.report = report
	return nil
}

func validate(ctx context.Context, w *work) error {
	return judgeEngine(engine.Validate(ctx, w.uploaded))
}

// rewrite makes the module count what it executes. Names that this adds were refused by the scan. What is valid can be rewritten.
func rewrite(_ context.Context, w *work) error {
	result, err := meter.Instrument(w.uploaded)
	if err != nil {
		return &handlers.Refusal{Reason: "the module cannot be metered: " + err.Error()}
	}
	w.module = result.Module
	if !result.HasLines {
		return nil
	}
	module, table, err := srcline.Split(result.Module)
	if err != nil {
		return fmt.Errorf("split what was metered: %w", err)
	}
	w.module, w.lines = module, table
	return nil
}

// compile validates and compiles what will run.
func compile(ctx context.Context, w *work) error {
	if err := os.Mkdir(artifact.CacheDir, 0o700); err != nil {
		return err
	}
	if err := os.WriteFile(artifact.ModuleFile, w.module, 0o600); err != nil {
		return err
	}
	if len(w.lines) > 0 && len(w.lines) <= maxLines {
		if err := os.WriteFile(artifact.LinesFile, w.lines, 0o600); err != nil {
			return err
		}
	}
	if err := judgeEngine(engine.Compile(ctx, w.module, artifact.CacheDir)); err != nil {
		return err
	}
	return nativeCode()
}

// judgeEngine tells what an error of the engine is: a refusal of the module, or an error of the host.
func judgeEngine(err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, syscall.ENOMEM):
		return &handlers.Refusal{Reason: "compile limit: the compiler ran out of memory on this module"}
	case errors.Is(err, syscall.EFBIG):
		return &handlers.Refusal{Reason: "compile limit: the module's native code is too large"}
	case hostFault(err):
		return err
	}
	return &handlers.Refusal{Reason: "the module is not valid: " + err.Error()}
}

// nativeCode makes sure that the engine compiled: where it gets no executable memory it interprets and says nothing.
func nativeCode() error {
	if !engine.Compiled() {
		return nil // this platform interprets, and the host says so at its start
	}
	found := false
	err := filepath.WalkDir(artifact.CacheDir, func(_ string, e fs.DirEntry, err error) error {
		found = found || err == nil && e.Type().IsRegular()
		return err
	})
	if err == nil && !found {
		err = errors.New("the engine wrote no native code: this system denies executable memory")
	}
	return err
}

// hostFault tells errors of files and the system from those of the module.
func hostFault(err error) bool {
	var path *fs.PathError
	var errno syscall.Errno
	return errors.As(err, &path) || errors.As(err, &errno) || errors.Is(err, context.Canceled)
}

// runSteps runs the pipeline. A panic of a step is the module's doing: the steps are deterministic and take nothing else.
func runSteps(ctx context.Context, w *work) (err error) {
	for _, s := range pipeline() {
		if err := runStep(ctx, s, w); err != nil {
			return err
		}
	}
	return nil
}

func runStep(ctx context.Context, s step, w *work) (err error) {
	defer func() {
		if p := recover(); p != nil {
			fmt.Fprintf(os.Stderr, "panic in step %s: %v\n%s", s.name, p, debug.Stack())
			err = &handlers.Refusal{Reason: fmt.Sprintf("the step %q failed on this module: %v", s.name, p)}
		}
	}()
	if err := s.run(ctx, w); err != nil {
		var r *handlers.Refusal
		if errors.As(err, &r) {
			return r
		}
		return fmt.Errorf("%s: %w", s.name, err)
	}
	return nil
}

package wasm

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"runtime"
	"sync"
	"time"

	"github.com/taskhost/taskhost/abi"
	"github.com/taskhost/taskhost/handlers"
	"github.com/taskhost/taskhost/handlers/wasm/artifact"
	"github.com/taskhost/taskhost/handlers/wasm/compile"
	"github.com/taskhost/taskhost/handlers/wasm/engine"
	"github.com/taskhost/taskhost/handlers/wasm/lockdown"
	"github.com/taskhost/taskhost/handlers/wasm/pool"
)

// Name is the name of this runtime, as stored with versions.
const Name = "wasm"

// Roles of child processes, given to Options.Command.
const (
	RoleCompile = "compile"
	RoleRunner  = "runner"
)

// Options configure a Runtime. DataDir and Command are required.
type Options struct {
	// DataDir is the host's own directory. Artifacts are in its folder "artifacts", the key that signs them is "host.key".
	DataDir string
	// Command returns the program and arguments of a child process of a role: one that ends in compile.Child or runner.Child. More
	// arguments may be added.
	Command func(role string) []string
	// Runners is the number of runner processes; 0 = as many as processors.
	Runners int
	// Slots is the number of jobs a runner runs at once; 0 = 8.
	Slots int
	// Limits are the defaults for invocations and uploads that name none. What is 0 here is as SPEC.md §6 says.
	Limits handlers.Limits
	// MaxMemoryBytes is the largest memory limit a job may have; 0 = the default limit.
	MaxMemoryBytes int64
	// MemoryBudget bounds the sum of the memory limits of the jobs in flight, see handlers.MemoryReserver; 0 = no bound.
	MemoryBudget int64
	// RecycleAfter is the number of jobs after which a runner is replaced; 0 = 10,000.
	RecycleAfter int
	// Sandbox is how the kernel confines child processes. The zero value is SandboxOff.
	Sandbox Sandbox
	// CompileLimits bound a compile child.
	CompileLimits compile.Limits
	Logger        *slog.Logger // default slog.Default()

	grace time.Duration // as pool.Options.Grace; for tests
}

// defaultSlots is how many jobs a runner runs at once: enough to hide waiting, few enough that a runner that has to be killed takes few
// neighbours with it.
const defaultSlots = 8

func (o *Options) fill() error {
	if o.DataDir == "" || o.Command == nil {
		return errors.New("wasm: Options.DataDir and Options.Command are required")
	}
	if o.Runners == 0 {
		o.Runners = runtime.NumCPU()
	}
	if o.Slots == 0 {
		o.Slots = defaultSlots
	}
	if o.Logger == nil {
		o.Logger = slog.Default()
	}
	o.Limits = orDefault(o.Limits, handlers.Limits{MemoryBytes: 128 << 20, ResultBytes: 1 << 20, LogBytes: 256 << 10, CheckpointBytes: 1 << 20, Timeout: time.Minute})
	if o.MaxMemoryBytes == 0 {
		o.MaxMemoryBytes = o.Limits.MemoryBytes
	}
	if o.MaxMemoryBytes < o.Limits.MemoryBytes {
		return fmt.Errorf("wasm: the largest memory limit is %d bytes, less than the default of %d bytes", o.MaxMemoryBytes, o.Limits.MemoryBytes)
	}
	if o.MemoryBudget != 0 && o.MemoryBudget < o.MaxMemoryBytes {
		return fmt.Errorf("wasm: a job may have %d bytes of memory, more than the whole memory budget of %d bytes", o.MaxMemoryBytes, o.MemoryBudget)
	}
	return nil
}

// orDefault fills in what is 0.
func orDefault(l, d handlers.Limits) handlers.Limits {
	if l.MemoryBytes == 0 {
		l.MemoryBytes = d.MemoryBytes
	}
	if l.ResultBytes == 0 {
		l.ResultBytes = d.ResultBytes
	}
	if l.LogBytes == 0 {
		l.LogBytes = d.LogBytes
	}
	if l.CheckpointBytes == 0 {
		l.CheckpointBytes = d.CheckpointBytes
	}
	if l.Fuel == 0 {
		l.Fuel = d.Fuel
	}
	if l.Timeout == 0 {
		l.Timeout = d.Timeout
	}
	return l
}

// Runtime runs Wasm handlers. It implements handlers.Runtime and handlers.Admitter.
type Runtime struct {
	*handlers.MemoryBudget

	opts     Options
	sandbox  lockdown.Report
	store    *artifact.Store
	compiler *compile.Service
	pool     *pool.Pool
	prepared sync.Map // sha256 → prepared
}

// prepared is a verified artifact.
type prepared struct {
	key string
	pool.Artifact
}

var (
	_ handlers.Runtime        = (*Runtime)(nil)
	_ handlers.Admitter       = (*Runtime)(nil)
	_ handlers.MemoryReserver = (*Runtime)(nil)
)

// New starts the runtime: the artifact store is opened, and runners start in the background. Close it after use.
func New(o Options) (*Runtime, error) {
	if err := o.fill(); err != nil {
		return nil, err
	}
	plan, report, err := o.plan()
	if err != nil {
		return nil, fmt.Errorf("wasm: %w", err)
	}
	key, err := artifact.LoadHostKey(filepath.Join(o.DataDir, "host.key"))
	if err != nil {
		return nil, fmt.Errorf("wasm: %w", err)
	}
	store, err := artifact.NewStore(filepath.Join(o.DataDir, "artifacts"), key)
	if err != nil {
		return nil, fmt.Errorf("wasm: %w", err)
	}
	compiler, err := compile.NewService(compile.Options{
		Store: store, MemoryBytes: o.Limits.MemoryBytes, Limits: o.CompileLimits, Lockdown: plan, Logger: o.Logger,
		Command: func() (string, []string) {
			c := o.Command(RoleCompile)
			return c[0], c[1:]
		},
	})
	if err != nil {
		return nil, fmt.Errorf("wasm: %w", err)
	}
	if err := compiler.Start(); err != nil {
		return nil, fmt.Errorf("wasm: %w", err)
	}
	r := &Runtime{MemoryBudget: handlers.NewMemoryBudget(o.MemoryBudget), opts: o, sandbox: report, store: store, compiler: compiler}
	r.pool, err = pool.New(pool.Options{
		Command: o.Command(RoleRunner), Runners: o.Runners, Slots: o.Slots, MemoryBytes: o.MaxMemoryBytes, RecycleAfter: o.RecycleAfter, Grace: o.grace, Logger: o.Logger,
		Lockdown: plan, Artifacts: store.Dir(),
	})
	if err != nil {
		return nil, errors.Join(fmt.Errorf("wasm: %w", err), compiler.Close())
	}
	if report.Reached() == lockdown.Off {
		o.Logger.Warn("child processes have no kernel sandbox: what breaks out of the WebAssembly sandbox has the rights of this user", "sandbox", report.Level,
			"missing", report.Missing(lockdown.Basic))
	} else {
		o.Logger.Info("child processes are locked down", "sandbox", report.Level, "missing", report.Missing(lockdown.Strict))
	}
	if !engine.Compiled() {
		o.Logger.Warn("this platform has no compiler; handlers are interpreted, which is slower by far", "engine", engine.Identity())
	}
	return r, nil
}

// Engine names what runs the modules.
func (r *Runtime) Engine() string { return engine.Identity() }

// Name is "wasm".
func (r *Runtime) Name() string { return Name }

// Slots is how many jobs run at once: no more than the memory budget has room for with the default limit.
func (r *Runtime) Slots() int {
	slots := r.pool.Slots()
	if b := r.Bytes(); b > 0 {
		slots = min(slots, int(b/r.opts.Limits.MemoryBytes))
	}
	return slots
}

// Stats is the state of the runners.
func (r *Runtime) Stats() pool.Stats { return r.pool.Stats() }

// Admit checks and compiles an upload in a child process. See handlers.Admitter.
func (r *Runtime) Admit(ctx context.Context, req handlers.AdmitRequest) (*handlers.Admission, error) {
	req.Limits = orDefault(req.Limits, r.opts.Limits)
	if req.Limits.MemoryBytes > r.opts.MaxMemoryBytes {
		return nil, &handlers.Refusal{Reason: fmt.Sprintf("a memory limit of %d bytes was asked for; this host allows %d bytes", req.Limits.MemoryBytes, r.opts.MaxMemoryBytes)}
	}
	admission, _, err := r.compiler.Admit(ctx, req)
	return admission, err
}

// Prepare makes sure that the artifact of a version is here and sound, compiling it anew if it is not. See handlers.Runtime.
func (r *Runtime) Prepare(ctx context.Context, v *handlers.Version, source func(context.Context) ([]byte, error)) error {
	limited := *v
	limited.Limits = orDefault(v.Limits, r.opts.Limits)
	a, err := r.compiler.Ensure(ctx, &limited, source)
	if err != nil {
		return err
	}
	r.prepared.Store(v.SHA256, prepared{a.Key, pool.Artifact{Dir: a.Dir, Kind: a.Manifest.Kind}})
	return nil
}

// Invoke runs one attempt in a runner. See handlers.Runtime.
func (r *Runtime) Invoke(ctx context.Context, inv *handlers.Invocation) handlers.Outcome {
	if inv.Version == nil || inv.Events == nil || inv.Deadline.IsZero() {
		return unavailable("the invocation lacks its version, its events or its deadline")
	}
	found, ok := r.prepared.Load(inv.Version.SHA256)
	if !ok {
		return unavailable(fmt.Sprintf("version %d of %s (%.12s) was not prepared on this host", inv.Version.Number, inv.Version.Type, inv.Version.SHA256))
	}
	full := *inv
	full.Limits = orDefault(inv.Limits, r.opts.Limits)
	p := found.(prepared)
	out := r.pool.Invoke(ctx, &full, p.Artifact)
	if out.Kind == handlers.OutcomeUnavailable && !r.store.Has(p.key) { // it was taken away; Prepare makes it again
		r.prepared.CompareAndDelete(inv.Version.SHA256, found)
	}
	return out
}

func unavailable(message string) handlers.Outcome {
	return handlers.Outcome{Kind: handlers.OutcomeUnavailable, RetryAfter: -1, Error: &handlers.Error{Kind: abi.KindUnavailable, Message: message}}
}

// Close refuses new work, waits for the jobs in flight until ctx ends, kills what is left, and returns when all child processes are
// gone. The error tells what had to be killed.
func (r *Runtime) Close(ctx context.Context) error {
	return errors.Join(r.pool.Close(ctx), r.compiler.Close())
}

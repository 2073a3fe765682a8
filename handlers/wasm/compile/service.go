package compile

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"runtime"
	"sync"

	"github.com/taskhost/taskhost/handlers"
	"github.com/taskhost/taskhost/handlers/wasm/admission"
	"github.com/taskhost/taskhost/handlers/wasm/artifact"
	"github.com/taskhost/taskhost/handlers/wasm/child"
	"github.com/taskhost/taskhost/handlers/wasm/engine"
	"github.com/taskhost/taskhost/handlers/wasm/lockdown"
)

// Options make a Service. Store and Command are required.
type Options struct {
	Store *artifact.Store
	// Command is the program and arguments that run Child, e.g. "/proc/self/exe" and "compile".
	Command func() (path string, args []string)
	// Concurrency is how many children run at once; default half the processors, at least 1.
	Concurrency int
	// WaitingPerTenant is how many uploads of a tenant may wait for a child; more get handlers.ErrBusy. Default 16. Ensure is
	// not bounded: it fetches the module when its turn has come.
	WaitingPerTenant int
	// MemoryBytes is the limit modules are admitted under when a request names none; default 128 MiB.
	MemoryBytes int64
	// RememberRefused is how many refusals are remembered; default 1024.
	RememberRefused int
	Limits          Limits
	// Lockdown is how children are locked down; default: not at all.
	Lockdown lockdown.Plan
	Logger   *slog.Logger // default slog.Default()
}

// Service compiles modules in child processes and keeps the artifacts. All methods may be called from many goroutines.
type Service struct {
	opts    Options
	limits  Limits
	log     *slog.Logger
	turns   *turns
	refused *refusedSet
	spawner *child.Spawner

	ctx  context.Context // of everything that runs; ends with Close
	stop context.CancelCauseFunc
	wg   sync.WaitGroup // flights, and the pruning

	mu      sync.Mutex
	state   serviceState
	flights map[string]*flight
}

// new ──Start──► running ──Close──► closed
//
//	└──────────────Close────────────────┘
type serviceState int

const (
	stateNew serviceState = iota
	stateRunning
	stateClosed
)

// NewService checks the options. Start it before use and Close it after.
func NewService(opts Options) (*Service, error) {
	if opts.Store == nil || opts.Command == nil {
		return nil, errors.New("compile: Options.Store and Options.Command are required")
	}
	if opts.Concurrency <= 0 {
		opts.Concurrency = max(1, runtime.NumCPU()/2)
	}
	if opts.WaitingPerTenant <= 0 {
		opts.WaitingPerTenant = 16
	}
	if opts.MemoryBytes <= 0 {
		opts.MemoryBytes = (admission.Limits{}).WithDefaults().MemoryBytes
	}
	if opts.RememberRefused <= 0 {
		opts.RememberRefused = 1024
	}
	if opts.Logger == nil {
		opts.Logger = slog.Default()
	}
	s := &Service{opts: opts, limits: opts.Limits.withDefaults(), log: opts.Logger, flights: map[string]*flight{},
		turns: newTurns(opts.Concurrency, opts.WaitingPerTenant), refused: newRefusedSet(opts.RememberRefused)}
	if err := s.limits.validate(); err != nil {
		return nil, err
	}
	s.ctx, s.stop = context.WithCancelCause(context.Background())
	return s, nil
}

// Start makes the service ready. Artifacts that an earlier version of this program has made are removed in the background.
func (s *Service) Start() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.state != stateNew {
		return errors.New("compile: the service was started before")
	}
	s.state = stateRunning
	s.spawner = child.NewSpawner()
	s.wg.Go(s.prune)
	return nil
}

// prune removes what an earlier version of this program compiled. It is not needed for anything, so a failure is only logged.
func (s *Service) prune() {
	removed, err := s.opts.Store.Prune(s.ctx, artifact.ThisMachine("", Rewriter(), engine.Identity()))
	if removed > 0 {
		s.log.Info("artifacts of other versions of this program removed", "artifacts", removed)
	}
	if err != nil && !errors.Is(err, handlers.ErrStopped) {
		s.log.Warn("artifacts of other versions of this program are left", "error", err)
	}
}

// Close kills the children under way, whose callers get handlers.ErrStopped, and waits for them.
func (s *Service) Close() error {
	s.mu.Lock()
	was := s.state
	s.state = stateClosed
	s.mu.Unlock()
	s.stop(handlers.ErrStopped)
	s.wg.Wait()
	if was == stateRunning {
		s.spawner.Close()
	}
	return nil
}

// Admit checks and compiles an upload, and returns what was found and the key of its artifact. A module at fault gives a
// *handlers.Refusal; handlers.ErrBusy means to try again later; other errors mean that the check could not be made.
func (s *Service) Admit(ctx context.Context, req handlers.AdmitRequest) (*handlers.Admission, string, error) {
	if most := (admission.Limits{}).WithDefaults().SizeBytes; len(req.Module) > most {
		return nil, "", &handlers.Refusal{Reason: fmt.Sprintf("the module has %d bytes; at most %d are accepted", len(req.Module), most)}
	}
	sum := sha256.Sum256(req.Module)
	digest := hex.EncodeToString(sum[:])
	r, err := s.obtain(ctx, order{tenant: req.Tenant, sha256: digest, memoryBytes: req.Limits.MemoryBytes, upload: true,
		source: func(context.Context) ([]byte, error) { return req.Module, nil }})
	if err != nil {
		return nil, "", err
	}
	m := r.artifact.Manifest
	return &handlers.Admission{
		SHA256: digest, SizeBytes: len(req.Module), Kind: m.Kind, Imports: m.Imports, Memory: r.memory,
		Instance:    handlers.Instance{Mode: "fresh", Reason: "every job runs in an instance of its own"},
		CompileTime: r.took,
		Exports:     m.Exports,
		Features:    m.Features,
		Metered:     true,
		SourceLines: r.artifact.HasLines(),
		Warnings:    append(append([]string(nil), m.Warnings...), r.warnings...),
	}, r.artifact.Key, nil
}

// Ensure returns the verified artifact of an admitted version. It compiles when there is none for this machine and build, or when
// the one there is was tampered with or torn; only then is source called, whose bytes must have the version's sha256.
func (s *Service) Ensure(ctx context.Context, v *handlers.Version, source func(context.Context) ([]byte, error)) (*artifact.Artifact, error) {
	r, err := s.obtain(ctx, order{tenant: v.Tenant, sha256: v.SHA256, memoryBytes: v.Limits.MemoryBytes, source: source})
	if err != nil {
		return nil, err
	}
	return r.artifact, nil
}

// Key is the key under which the artifact of a module would be here.
func (s *Service) Key(sha256 string) string {
	return artifact.ThisMachine(sha256, Rewriter(), engine.Identity()).Key()
}

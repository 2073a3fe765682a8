package wire

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"

	"github.com/taskhost/taskhost/config"
	"github.com/taskhost/taskhost/handlers"
	"github.com/taskhost/taskhost/handlers/wasm"
	"github.com/taskhost/taskhost/handlers/wasm/compile"
	"github.com/taskhost/taskhost/handlers/wasm/lockdown"
	"github.com/taskhost/taskhost/handlers/wasm/runner"
	"github.com/taskhost/taskhost/queue"
	"github.com/taskhost/taskhost/queue/redisq"
	"github.com/taskhost/taskhost/queue/sqliteq"
)

// The parts of the program:
//
//	store     sqlite    queue/sqliteq     in data_dir
//	          redis     queue/redisq      shared by hosts
//	runtime   wasm      handlers/wasm     artifacts in data_dir, child processes of this program
//	          plugin    handlers/plugin   programs that the operator installed
//	children  compile   handlers/wasm/compile
//	          runner    handlers/wasm/runner

// Store is what the program needs of an engine.
type Store interface {
	queue.Queue
	queue.Jobs
	queue.Explainer
	queue.Notes
	queue.Queues
	queue.Configurable
	queue.DeadLetters
	queue.Bulk
	queue.Leaser
	queue.Records
	queue.Auditor
	// Err says why the store takes no work, nil when it does.
	Err() error
}

// Runtime is what the program needs of a runtime for uploaded modules.
type Runtime interface {
	handlers.Runtime
	handlers.Admitter
	// SandboxLevel is the lock-down of the child processes.
	SandboxLevel() string
	// SandboxReport says what the level is made of.
	SandboxReport() lockdown.Report
	Close(ctx context.Context) error
}

var (
	_ Store   = (*sqliteq.Store)(nil)
	_ Store   = (*redisq.Store)(nil)
	_ Runtime = (*wasm.Runtime)(nil)
)

// openStore opens the engine that the configuration names. A Redis that does not answer is an error at once.
func openStore(ctx context.Context, c *config.Config, log *slog.Logger, fatal func(error)) (Store, error) {
	switch {
	case config.IsRedis(c.Store):
		return openRedis(ctx, c, log)
	case c.Store == config.StoreSQLite:
		s, err := sqliteq.Open(ctx, sqliteq.Options{Dir: c.DataDir, Limits: limits(c.Defaults), Logger: log.With("part", "store"), Fatal: fatal})
		if err != nil {
			return nil, err
		}
		return s, nil
	}
	return nil, fmt.Errorf("store: this build has sqlite and redis and no other; got %q", config.RedactURL(c.Store))
}

// StoreInUse reports whether an error says that another process has the store open.
func StoreInUse(err error) bool {
	_, ok := errors.AsType[*sqliteq.LockedError](err)
	return ok
}

// Hidden commands that the runtime starts this program with.
const (
	CompileCommand = wasm.RoleCompile
	RunnerCommand  = wasm.RoleRunner
)

// childProgram is the program for child processes; "" becomes this one.
func childProgram(exe string) (string, error) {
	if exe != "" {
		return exe, nil
	}
	exe, err := ownExe()
	if err != nil {
		return "", fmt.Errorf("find this program: %w", err)
	}
	return exe, nil
}

// ownExe is this program. On Linux the link leads to it also after its file was replaced by an update.
func ownExe() (string, error) {
	if runtime.GOOS == "linux" {
		return "/proc/self/exe", nil
	}
	return os.Executable()
}

// openRuntime starts the runtime for uploaded modules. exe is the program for its child processes, "" = this one.
func openRuntime(c *config.Config, exe string, log *slog.Logger) (Runtime, error) {
	exe, err := childProgram(exe)
	if err != nil {
		return nil, err
	}
	capacity := c.Capacity(config.ThisMachine()) // what config check prints
	o := wasm.Options{
		DataDir: c.DataDir, Command: func(role string) []string { return []string{exe, role} },
		Runners: capacity.Runners, Slots: capacity.SlotsPerRunner,
		Limits: handlerLimits(c.Defaults), MaxMemoryBytes: int64(capacity.MemoryPerJob), MemoryBudget: capacity.MemoryBudget, Sandbox: wasm.Sandbox(c.Wasm.Sandbox), Logger: log.With("part", "wasm"),
	}
	if !c.HasRole(config.RoleWorker) {
		o.Runners, o.Slots = 1, 1 // uploads are admitted here, jobs run elsewhere
	}
	rt, err := wasm.New(o)
	if err != nil {
		return nil, err
	}
	return rt, nil
}

// Compile is the child process that checks and compiles one module. It returns the exit code.
func Compile(ctx context.Context, in io.Reader, out, errs io.Writer) int {
	return compile.Child(ctx, in, out, errs)
}

// Runner is the child process that runs jobs. It returns the exit code, with which the process must end at once.
func Runner(ctx context.Context, args []string) int { return runner.Child(ctx, args) }

// StoreUnreachable reports whether an error says that the store does not answer.
func StoreUnreachable(err error) bool { return errors.Is(err, queue.ErrUnavailable) }

// NoStoreError says that a folder holds no embedded store.
type NoStoreError struct {
	Dir string
}

func (e *NoStoreError) Error() string { return "no store in " + e.Dir }

// CheckStore opens the store and checks its books. As with every start, jobs that a dead process had reserved count a crash. It
// makes nothing: a folder without a store gives a *NoStoreError, and a Redis that does not answer an error for StoreUnreachable.
func CheckStore(ctx context.Context, c config.Config, log *slog.Logger) (queue.AuditReport, error) {
	if c.Store == config.StoreSQLite {
		switch _, err := os.Stat(filepath.Join(c.DataDir, sqliteq.FileName)); {
		case errors.Is(err, fs.ErrNotExist):
			return queue.AuditReport{}, &NoStoreError{c.DataDir}
		case err != nil:
			return queue.AuditReport{}, fmt.Errorf("look for the store: %w", err)
		}
	}
	s, err := openStore(ctx, &c, log, nil)
	if err != nil {
		return queue.AuditReport{}, err
	}
	report, err := s.Audit(ctx)
	if closeErr := s.Close(); err == nil {
		err = closeErr
	}
	return report, err
}

// Package abi holds the names and numbers of the contract between the host and a handler. SPEC.md beside it is the law;
// the golden vectors in testdata are what every SDK must pass. The package imports nothing but the standard library.
package abi

// Names a WebAssembly handler exports. See SPEC.md §2 and §3.
const (
	ExportMemory     = "memory"
	ExportStart      = "_start"          // command
	ExportInitialize = "_initialize"     // reactor, optional
	ExportHandle     = "taskhost_handle" // reactor: () -> i32
	ExportMarker     = "taskhost_abi_v1" // reactor: () -> ()
)

// Modules a handler may import from.
const (
	ModuleHost = "taskhost_v1"
	ModuleWASI = "wasi_snapshot_preview1"
)

// ReservedPrefix begins the names that the host adds to a module; uploads that use it are refused.
const ReservedPrefix = "__taskhost_"

// What taskhost_handle returns. Any other value is a permanent failure of kind KindBadReturn.
const (
	HandleDone      = 0
	HandleRetry     = 1
	HandlePermanent = 2
	HandleDefer     = 3 // after the delay given to fail; 0 = at once (yield), no attempt counted
)

// Exit codes of a command. Others mean: retry by policy. 75 is EX_TEMPFAIL, 64, 65 and 78 are EX_USAGE, EX_DATAERR and
// EX_CONFIG of BSD's sysexits.h.
const (
	ExitDone       = 0
	ExitRetry      = 75
	ExitUsage      = 64
	ExitDataError  = 65
	ExitConfigFail = 78
)

// Errno is the negative result of a host call.
type Errno int64

// The errnos.
const (
	ErrDenied      Errno = -1
	ErrNotFound    Errno = -2
	ErrInvalid     Errno = -3
	ErrTooLarge    Errno = -4
	ErrLimit       Errno = -5
	ErrCancelled   Errno = -6
	ErrUnavailable Errno = -7
	ErrUnsupported Errno = -8
)

// Log levels of the log call.
const (
	LevelDebug = 0
	LevelInfo  = 1
	LevelWarn  = 2
	LevelError = 3
)

// LevelName is how a level is stored and shown; an unknown level is "info".
func LevelName(level int32) string {
	switch level {
	case LevelDebug:
		return "debug"
	case LevelWarn:
		return "warn"
	case LevelError:
		return "error"
	}
	return "info"
}

// Environment variables of a command.
const (
	EnvJobID       = "TASKHOST_JOB_ID"
	EnvType        = "TASKHOST_TYPE"
	EnvTenant      = "TASKHOST_TENANT"
	EnvQueue       = "TASKHOST_QUEUE"
	EnvAttempt     = "TASKHOST_ATTEMPT"      // 1 for the first
	EnvMaxAttempts = "TASKHOST_MAX_ATTEMPTS" //
	EnvDeadlineMS  = "TASKHOST_DEADLINE_MS"  // Unix time in milliseconds
)

// Keys of meta_get; headers are MetaHeaderPrefix and their name.
const (
	MetaJobID        = "job_id"
	MetaTenant       = "tenant"
	MetaQueue        = "queue"
	MetaType         = "type"
	MetaAttempt      = "attempt"
	MetaMaxAttempts  = "max_attempts"
	MetaHeaderPrefix = "header."
)

// Kinds of failure, as they are stored with a job.
const (
	KindRetryable     = "retryable" // the handler said so
	KindPermanent     = "permanent" // the handler said so
	KindExit          = "exit"      // a command ended with another code
	KindTrap          = "trap"
	KindStackOverflow = "stack_overflow"
	KindDeadline      = "deadline"
	KindKilled        = "killed" // its time was over, and it did not end
	KindMemoryLimit   = "memory_limit"
	KindOutOfFuel     = "out_of_fuel"
	KindResultSize    = "result_too_large"
	KindBadReturn     = "bad_return"
	KindCrash         = "crash" // its host or runner died
	KindNoHandler     = "no_handler"
	KindUnavailable   = "unavailable" // the handler could not be started
	KindCancelled     = "cancelled"
	KindInterrupted   = "interrupted"
	KindUndecodable   = "undecodable" // the stored record is corrupt
)

// Import describes one function the host offers, as name, parameters and results ("i32", "i64").
type Import struct {
	Name    string
	Params  []string
	Results []string
}

// HostImports returns the functions of ModuleHost that this version offers. Functions are only ever added.
func HostImports() []Import {
	i32, i64 := "i32", "i64"
	return []Import{
		{"input_len", nil, []string{i64}},
		{"input_read", []string{i64, i32, i32}, []string{i64}},
		{"output_write", []string{i32, i32}, []string{i64}},
		{"fail", []string{i32, i64, i32, i32}, []string{i32}},
		{"log", []string{i32, i32, i32}, []string{i32}},
		{"progress", []string{i64, i64, i32, i32}, []string{i32}},
		{"checkpoint_put", []string{i32, i32}, []string{i32}},
		{"checkpoint_get", []string{i32, i32}, []string{i64}},
		{"meta_get", []string{i32, i32, i32, i32}, []string{i64}},
		{"config_get", []string{i32, i32, i32, i32}, []string{i64}},
		{"should_stop", nil, []string{i32}},
		{"deadline_ms", nil, []string{i64}},
		{"host_has", []string{i32, i32}, []string{i32}},
	}
}

package config

import (
	"runtime"
	"time"
)

// Config is the whole configuration of a host. The zero value is not valid; start from Default.
type Config struct {
	Store   string   `koanf:"store"`    // where jobs are kept; StoreSQLite (default): an embedded store in DataDir; or the URL of a Redis
	DataDir string   `koanf:"data_dir"` // everything that must survive; default ./data
	Listen  string   `koanf:"listen"`   // host:port of the API; default 127.0.0.1:7070; port 0 = a free one
	Roles   []string `koanf:"roles"`    // what this process does: api, worker; default both

	Worker     Worker            `koanf:"worker"`
	Wasm       Wasm              `koanf:"wasm"`
	Defaults   Defaults          `koanf:"defaults"`
	Scheduling Scheduling        `koanf:"scheduling"`
	Retention  Retention         `koanf:"retention"`
	Queues     map[string]Queue  `koanf:"queues"`  // a template for every tenant, by queue name
	Tenants    map[string]Tenant `koanf:"tenants"` // by tenant name
	Handlers   []Handler         `koanf:"handlers"`
	Plugins    []Plugin          `koanf:"plugins"`
	Schedules  []Schedule        `koanf:"schedules"`
	Log        Log               `koanf:"log"`
}

// Names of Config.Roles.
const (
	RoleAPI    = "api"    // serves the HTTP API
	RoleWorker = "worker" // reserves and runs jobs
)

// HasRole reports whether this process has a role.
func (c *Config) HasRole(role string) bool {
	for _, r := range c.Roles {
		if r == role {
			return true
		}
	}
	return false
}

// Count is a number of things; Auto (0) leaves it to the host, written "auto".
type Count int

// Auto lets the host choose.
const Auto Count = 0

// Worker says how this process reserves and runs jobs.
type Worker struct {
	Concurrency Count         `koanf:"concurrency"`  // jobs at once; default auto: as many as the runtimes have slots
	Queues      []string      `koanf:"queues"`       // queues to serve, for every tenant; default ["*"]: all
	Lease       time.Duration `koanf:"lease"`        // how long a job stays with a host that fell silent; 1s–1h, default 15s
	Drain       time.Duration `koanf:"drain"`        // how long running jobs may finish when the host stops; 0s–1h, default 30s
	HandlerWait time.Duration `koanf:"handler_wait"` // how long a job waits for a handler of its type before it is dead; 1s–7d, default 5m
}

// Wasm says how WebAssembly handlers run.
type Wasm struct {
	Runners   Count  `koanf:"runners"`   // child processes; default auto: one per core
	Slots     Count  `koanf:"slots"`     // jobs at once in each; default auto
	Isolation string `koanf:"isolation"` // who shares a runner; "shared" (default): all tenants, a fresh sandbox per job
	// MemoryBudget bounds the sum of the memory limits of the jobs that run at once; 64KiB–1PiB, default auto (0): half of the machine's.
	MemoryBudget Size   `koanf:"memory_budget"`
	Sandbox      string `koanf:"sandbox"` // least lock-down of the child processes; off, best, basic, standard or strict; default standard, best where it is not to be had
}

// Defaults are what a job gets that does not ask for something else, and the limits of what it may ask.
type Defaults struct {
	Timeout     time.Duration `koanf:"timeout"`      // of one attempt; 10ms–7d, default 1m
	MaxAttempts int           `koanf:"max_attempts"` // 1–1000, default 5
	Backoff     Backoff       `koanf:"backoff"`      // between attempts
	Memory      Size          `koanf:"memory"`       // limit of one job's memory; 64KiB–4GiB, default 128MiB
	Payload     Size          `koanf:"payload"`      // largest payload; 1KiB–64MiB, default 1MiB
	Result      Size          `koanf:"result"`       // largest result; 1KiB–64MiB, default 1MiB
	Fuel        int64         `koanf:"fuel"`         // what an attempt may execute, in units of fuel; up to 10^15, default 0: no limit
}

// Backoff is exponential: before attempt n+1 a job waits min(Max, Base·2^(n-1)), jittered.
type Backoff struct {
	Base   time.Duration `koanf:"base"`   // 1ms–1d, default 1s
	Max    time.Duration `koanf:"max"`    // 1ms–30d and ≥ base, default 1h
	Jitter string        `koanf:"jitter"` // "full" (default): anywhere between 0 and the delay; "none"
}

// Scheduling says who is next beyond weights and priorities.
type Scheduling struct {
	// MaxConsecutiveHigh is after how many picks in a row of a higher priority a lower one gets one; 0 (default): strict
	// priority.
	MaxConsecutiveHigh int `koanf:"max_consecutive_high"`
	// ChargeByTime makes shares shares of the time that jobs run, and is the time that counts as one job does otherwise; "off" (0, the
	// default) or 1ms–1h in whole milliseconds.
	ChargeByTime time.Duration `koanf:"charge_by_time"`
}

// RetentionForever as Retention.Dead keeps dead jobs until they are purged, written "forever".
const RetentionForever time.Duration = -1

// Retention says how long finished jobs are kept.
type Retention struct {
	Succeeded time.Duration `koanf:"succeeded"`  // also cancelled and expired; "none" (0) or 1s–3650d, default 24h
	Dead      time.Duration `koanf:"dead"`       // 1s–3650d or "forever", default 30d
	Count     int           `koanf:"count"`      // most succeeded, cancelled and expired jobs in the store; 0 (default) = no bound
	DeadCount int           `koanf:"dead_count"` // most dead jobs in the store; 0 (default) = no bound
	Logs      string        `koanf:"logs"`       // whose logs are kept: failed (default), all, none
}

// Queue holds the settings of a queue. Nil means the default.
type Queue struct {
	Weight   *float64 `koanf:"weight"`   // share relative to the other queues; 0.001–10000, default 1
	Priority *int     `koanf:"priority"` // of jobs that do not name one; -4095–4095, default 0
	Paused   *bool    `koanf:"paused"`   // jobs are accepted but none is started; default false

	MaxRunning *int  `koanf:"max_running"` // jobs of it that run at once for one tenant, on all hosts; 1–1000000, default no cap
	MaxPerKey  *int  `koanf:"max_per_key"` // of those, jobs with one concurrency key; 1–1000000, default 1
	Rate       *Rate `koanf:"rate"`        // how fast jobs of it are started for one tenant; default no bound
}

// Tenant holds the settings of a tenant. Nil means the default.
type Tenant struct {
	Weight     *float64 `koanf:"weight"`      // share relative to the other tenants; 0.001–10000, default 1
	MaxRunning *int     `koanf:"max_running"` // jobs of it that run at once, on all hosts; 1–1000000, default no cap
}

// Handler is a WebAssembly handler that the operator provides to every tenant.
type Handler struct {
	Type    string            `koanf:"type"`    // the type it serves, or a prefix and "*"; required
	Wasm    string            `koanf:"wasm"`    // path of the module; required
	Memory  Size              `koanf:"memory"`  // default: defaults.memory
	Timeout time.Duration     `koanf:"timeout"` // default: defaults.timeout
	Fuel    int64             `koanf:"fuel"`    // default: defaults.fuel
	Config  map[string]string `koanf:"config"`  // given to the handler, by name
}

// Plugin is a native handler: a program that the operator installed and the host runs. Zero and nil mean the default.
type Plugin struct {
	Types        []string          `koanf:"types"`         // the types it serves for every tenant, or prefixes and "*"; required
	Command      string            `koanf:"command"`       // path of the program; required
	Args         []string          `koanf:"args"`          // its arguments
	SHA256       string            `koanf:"sha256"`        // hex digest that the program must have; default any
	Files        map[string]string `koanf:"files"`         // digests of more files, by path
	Env          map[string]string `koanf:"env"`           // its environment, besides a few variables of the host
	Dir          string            `koanf:"dir"`           // its working directory; default the host's
	Instances    int               `koanf:"instances"`     // processes; 1–64, default 1
	Concurrency  int               `koanf:"concurrency"`   // jobs at once in each; 1–1024, default 8
	MTLS         *bool             `koanf:"mtls"`          // mutual TLS on its private socket; default true
	Timeout      time.Duration     `koanf:"timeout"`       // of one attempt; default defaults.timeout
	Grace        time.Duration     `koanf:"grace"`         // from asking a job to stop to killing its process; 10ms–8s, default 2s
	Silence      time.Duration     `koanf:"silence"`       // how long it may leave questions unanswered; 1s–1h, default 10s
	StartTimeout time.Duration     `koanf:"start_timeout"` // of a start; 100ms–10m, default 15s
	Config       map[string]string `koanf:"config"`        // given to the handlers, by name
}

// Log says what is logged to stderr.
type Log struct {
	Level  string `koanf:"level"`  // debug, info (default), warn, error
	Format string `koanf:"format"` // text, json or auto (default): text on a terminal, JSON otherwise
}

// sandboxDefault is standard on Linux, the only system that has levels.
func sandboxDefault() string {
	if runtime.GOOS == "linux" {
		return "standard"
	}
	return SandboxBest
}

// SandboxBest asks for what lock-down can be had, be it none.
const SandboxBest = "best"

// Default returns the configuration that is in force when nothing is set.
func Default() Config {
	return Config{
		Store:   StoreSQLite,
		DataDir: "./data",
		Listen:  "127.0.0.1:7070",
		Roles:   []string{RoleAPI, RoleWorker},
		Worker: Worker{
			Queues: []string{"*"}, Lease: 15 * time.Second, Drain: 30 * time.Second, HandlerWait: 5 * time.Minute,
		},
		Wasm: Wasm{Isolation: "shared", Sandbox: sandboxDefault()},
		Defaults: Defaults{
			Timeout: time.Minute, MaxAttempts: 5,
			Backoff: Backoff{Base: time.Second, Max: time.Hour, Jitter: "full"},
			Memory:  128 * MiB, Payload: MiB, Result: MiB,
		},
		Retention: Retention{Succeeded: 24 * time.Hour, Dead: 30 * 24 * time.Hour, Logs: "failed"},
		Log:       Log{Level: "info", Format: "auto"},
	}
}

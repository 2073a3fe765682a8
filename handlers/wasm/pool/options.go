package pool

import (
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/taskhost/taskhost/handlers/wasm/lockdown"
	childside "github.com/taskhost/taskhost/handlers/wasm/runner"
)

// Options configure a Pool. Command and Logger are required.
type Options struct {
	// Command is the program and its arguments that make a runner, e.g. "/proc/self/exe", "runner". The pool adds arguments.
	Command []string
	// Runners is how many processes run at once; at least 1.
	Runners int
	// Slots is how many attempts a runner runs at once; 1 to 256.
	Slots int
	// Extra is how many more processes may run attempts that want to be alone, while no ordinary runner is idle. Default 2.
	Extra int
	// MemoryBytes is the largest memory limit an attempt may have. Default 128 MiB.
	MemoryBytes int64
	// Modules is how many loaded modules a runner keeps. Default 64.
	Modules int
	// RecycleAfter is the number of attempts after which a runner is replaced. Default 10,000.
	RecycleAfter int
	// Grace is how long after its deadline, or after it was asked to stop, an attempt may still end by itself. Default 250 ms.
	Grace time.Duration
	// StartTimeout bounds the start of a runner. Default 15 s.
	StartTimeout time.Duration
	// BackoffMin and BackoffMax bound the pause before a runner that died without having done anything is started again; it doubles each
	// time. Default 100 ms and 30 s.
	BackoffMin, BackoffMax time.Duration
	// Lockdown is how runners are locked down. Default: not at all.
	Lockdown lockdown.Plan
	// Artifacts is the folder below which all artifacts are; required when runners are locked down.
	Artifacts string
	Logger    *slog.Logger
}

func (o *Options) fill() error {
	def := func(v *int, d int) {
		if *v == 0 {
			*v = d
		}
	}
	defTime := func(v *time.Duration, d time.Duration) {
		if *v == 0 {
			*v = d
		}
	}
	def(&o.Extra, 2)
	def(&o.Modules, 64)
	def(&o.RecycleAfter, 10_000)
	defTime(&o.Grace, 250*time.Millisecond)
	defTime(&o.StartTimeout, 15*time.Second)
	defTime(&o.BackoffMin, 100*time.Millisecond)
	defTime(&o.BackoffMax, 30*time.Second)
	if o.MemoryBytes == 0 {
		o.MemoryBytes = 128 << 20
	}
	switch {
	case len(o.Command) == 0:
		return errors.New("pool: no command for a runner")
	case o.Lockdown.Apply && o.Artifacts == "":
		return errors.New("pool: no folder of artifacts for locked-down runners")
	case o.Logger == nil:
		return errors.New("pool: no logger")
	case o.Runners < 1:
		return fmt.Errorf("pool: %d runners; at least 1 is required", o.Runners)
	case o.Slots < 1 || o.Slots > childside.MaxSlots:
		return fmt.Errorf("pool: %d slots per runner; must be between 1 and %d", o.Slots, childside.MaxSlots)
	case o.Extra < 1 || o.Modules < 1 || o.RecycleAfter < 1:
		return fmt.Errorf("pool: extra runners %d, modules %d, recycle after %d attempts: each must be at least 1", o.Extra, o.Modules, o.RecycleAfter)
	case o.Grace < 0 || o.StartTimeout < 0 || o.BackoffMin < 0 || o.BackoffMax < o.BackoffMin:
		return fmt.Errorf("pool: grace %s, start timeout %s, backoff %s to %s: a negative time, or a range upside down", o.Grace, o.StartTimeout, o.BackoffMin, o.BackoffMax)
	}
	return nil
}

// Stats is the state of a pool.
type Stats struct {
	Runners []RunnerStats
	Waiting int // attempts that wait for a slot
	// Counters since the pool was made.
	Started    uint64 // processes that became ready
	Failed     uint64 // processes that did not
	Killed     uint64 // ended by the pool: deadlines, cancels
	Crashed    uint64 // died by themselves
	Violations uint64 // killed for what they said
	Recycled   uint64
	// LastError is why the last start failed or the last runner died; empty when all is well since.
	LastError string
}

// RunnerStats is the state of one process.
type RunnerStats struct {
	PID      int
	Since    time.Time
	Busy     int // attempts in flight
	Done     int // attempts begun since its start
	Alone    bool
	Draining bool
	Stalled  bool // it did not answer when it was last asked
	Engine   string
	Sandbox  string // the level of lock-down it reached
}

package runner

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"os"
	"runtime"
	"runtime/debug"

	"google.golang.org/grpc"

	"github.com/taskhost/taskhost/abi/pluginpb"
	"github.com/taskhost/taskhost/handlers/wasm/child"
	"github.com/taskhost/taskhost/handlers/wasm/link"
	"github.com/taskhost/taskhost/handlers/wasm/lockdown"
)

// Exit codes of the child.
const (
	ExitOK    = 0 // the connection ended
	ExitUsage = 2 // bad arguments, or no connection
	ExitFault = 1 // the supervisor broke the protocol, or a fault of the runner
)

// Config is what the supervisor decides for a runner. It travels as arguments.
type Config struct {
	Slots         int   // attempts at once, 1 to 256
	MemoryPerSlot int64 // bytes: the largest memory limit an attempt may have
	Modules       int   // loaded modules kept, at least 1
	// Artifacts is the folder of all artifacts, the only one whose files a runner reads. Required with Lockdown.Apply.
	Artifacts string
	// Lockdown is how it is locked down before it begins.
	Lockdown lockdown.Plan
}

// Bounds of Config.
const (
	MaxSlots   = 256
	minMemory  = 64 << 10
	maxMemory  = 4 << 30
	maxModules = 4096
)

// Args returns the arguments that Child understands.
func (c Config) Args() []string {
	args := []string{fmt.Sprintf("--slots=%d", c.Slots), fmt.Sprintf("--memory-per-slot=%d", c.MemoryPerSlot), fmt.Sprintf("--modules=%d", c.Modules)}
	if c.Artifacts != "" {
		args = append(args, "--artifacts="+c.Artifacts)
	}
	return append(args, c.Lockdown.Args()...)
}

func parse(args []string) (Config, error) {
	var c Config
	flags := flag.NewFlagSet("runner", flag.ContinueOnError)
	flags.SetOutput(io.Discard)
	flags.IntVar(&c.Slots, "slots", 0, "")
	flags.Int64Var(&c.MemoryPerSlot, "memory-per-slot", 0, "")
	flags.IntVar(&c.Modules, "modules", 0, "")
	flags.StringVar(&c.Artifacts, "artifacts", "", "")
	for _, name := range lockdown.FlagNames() {
		flags.Func(name, "", func(value string) error { return c.Lockdown.Flag(name, value) })
	}
	if err := flags.Parse(args); err != nil {
		return c, err
	}
	switch {
	case flags.NArg() > 0:
		return c, fmt.Errorf("unexpected argument %q", flags.Arg(0))
	case c.Slots < 1 || c.Slots > MaxSlots:
		return c, fmt.Errorf("--slots=%d: must be between 1 and %d", c.Slots, MaxSlots)
	case c.MemoryPerSlot < minMemory || c.MemoryPerSlot > maxMemory:
		return c, fmt.Errorf("--memory-per-slot=%d: must be between %d and %d bytes", c.MemoryPerSlot, minMemory, maxMemory)
	case c.Modules < 1 || c.Modules > maxModules:
		return c, fmt.Errorf("--modules=%d: must be between 1 and %d", c.Modules, maxModules)
	case c.Lockdown.Apply && c.Artifacts == "":
		return c, errors.New("--artifacts is missing: with --lockdown a runner reads no files but those")
	}
	return c, nil
}

// Child is the whole life of a runner process: it locks itself down, serves the protocol on the connection it was started with until the connection or ctx ends,
// and returns the exit code. Guests may still be running then, on goroutines that nothing can stop: the caller must exit with the code at
// once. With the argument lockdown.ProbeFlag it only says how far it can be locked down, on stdout.
func Child(ctx context.Context, args []string) int {
	if len(args) > 0 && args[0] == lockdown.ProbeFlag {
		if err := lockdown.AnswerProbe(os.Stdout, args[1:]); err != nil {
			fmt.Fprintf(os.Stderr, "taskhost runner: %v\n", err)
			return ExitFault
		}
		return ExitOK
	}
	config, conn, report, code, err := Confine(args)
	if err != nil {
		fmt.Fprintf(os.Stderr, "taskhost runner: %v\n", err)
		return code
	}
	if err := serve(ctx, conn, config, report); err != nil {
		fmt.Fprintf(os.Stderr, "taskhost runner: %v\n", err)
		return ExitFault
	}
	return ExitOK
}

// Confine is the first part of Child: it reads the arguments, takes over the connection, and locks the process down for good. With an error
// comes the exit code, and the process must end.
func Confine(args []string) (Config, net.Conn, lockdown.Report, int, error) {
	config, err := parse(args)
	if err != nil {
		return config, nil, lockdown.Report{}, ExitUsage, err
	}
	conn, err := supervisor()
	if err != nil {
		return config, nil, lockdown.Report{}, ExitUsage, fmt.Errorf("there is no connection to a supervisor; this command is started by taskhost itself: %w", err)
	}
	if err := errors.Join(child.CloseInherited(), limit(config)); err != nil {
		return config, nil, lockdown.Report{}, ExitFault, err
	}
	report, err := lockdown.Apply(lockdown.Rules{
		Plan: config.Lockdown, Read: []string{config.Artifacts},
		OpenFiles: uint64(filesBase + filesPerSlot*config.Slots + filesPerModule*config.Modules),
		// The only files it can write are in memory: images of its guests.
		FileBytes: uint64(config.MemoryPerSlot),
	})
	if err != nil {
		return config, nil, report, ExitFault, err
	}
	return config, conn, report, ExitOK, nil
}

// Descriptors a runner may have.
const (
	filesBase      = 64
	filesPerSlot   = 4 // of a module that is being loaded
	filesPerModule = 2
)

// What a runner needs besides the memory of its guests, in bytes.
const (
	goHeapBase    = 256 << 20 // soft limit of the Go heap: code, messages, results in flight …
	goHeapPerSlot = 16 << 20  // … for each slot
	dataBase      = 1 << 30   // Go heap, native code, threads, and the stacks of some runaway recursions
)

// gcPercent lets the Go heap grow to five times what is in use before it is collected. A collection waits for every guest that computes, and
// everything else in the runner waits for the collection, so there should be few.
const gcPercent = 400

// limit bounds the process beyond what it uses already. RLIMIT_DATA counts writable private mappings, so the guests' reservations cost nothing until they
// are used; RLIMIT_AS would count them. A runner beyond its limit dies, and its jobs crash: the machine goes on.
func limit(c Config) error {
	// Every slot may hold a processor of the Go scheduler for as long as its guest computes. Some must be left for the connection.
	runtime.GOMAXPROCS(c.Slots + 2)
	debug.SetGCPercent(gcPercent)
	debug.SetMemoryLimit(goHeapBase + int64(c.Slots)*goHeapPerSlot)
	return setRlimits(uint64(dataBase) + uint64(c.Slots)*(goHeapPerSlot+uint64(c.MemoryPerSlot)))
}

func serve(ctx context.Context, conn net.Conn, config Config, report lockdown.Report) error {
	ctx, fail := context.WithCancelCause(ctx)
	defer fail(nil)
	r := newRunner(config, report, fail)
	r.start(ctx)
	listener := link.Listen(conn)
	server := link.NewServer()
	pluginpb.RegisterHandlerServer(server, r)
	served := make(chan error, 1)
	go func() { served <- server.Serve(listener) }()
	select {
	case <-listener.Ended():
	case <-ctx.Done():
	}
	err := context.Cause(ctx)
	fail(errConnection)
	server.Stop() // ends the calls and closes the connection; workers with a running guest stay, see Child
	if e := <-served; e != nil && !errors.Is(e, grpc.ErrServerStopped) && !errors.Is(e, net.ErrClosed) {
		err = errors.Join(err, e)
	}
	if errors.Is(err, context.Canceled) || errors.Is(err, errConnection) {
		return nil
	}
	return err
}

var errConnection = errors.New("the connection to the supervisor has ended")

package plugin

import (
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"time"

	"github.com/taskhost/taskhost/handlers"
)

// Name is the name of the runtime, as stored with jobs.
const Name = "plugin"

// Spec is one plugin. Types and Command are required.
type Spec struct {
	// Types it serves for every tenant: exact, or a prefix followed by "*".
	Types []string
	// Command is the path of the program: an executable or a script with an interpreter line.
	Command string
	Args    []string
	// SHA256 is the hex digest that Command must have; empty = any, which is logged.
	SHA256 string
	// Files are more files with the hex digests they must have at every start, by path: what an interpreter reads, for example.
	Files map[string]string
	// Env is the environment besides the few variables that every plugin gets.
	Env map[string]string
	// Dir is the working directory; empty = the host's.
	Dir string
	// Instances is the number of processes; default 1.
	Instances int
	// Concurrency is how many jobs one process runs at once, at most what the plugin offers; default 8.
	Concurrency int
	// PlainSocket leaves out mutual TLS on the private socket, for languages whose TLS cannot do what go-plugin asks.
	PlainSocket bool
	// Grace is how long after its deadline, or after it was asked to stop, an attempt may still end by itself; default 2 s.
	Grace time.Duration
	// Silence is how long a plugin may leave questions unanswered before it is killed; default 10 s.
	Silence time.Duration
	// StartTimeout bounds a start; default 15 s.
	StartTimeout time.Duration
	// Config is given to the handlers.
	Config map[string]string
	// Limits lie over the host's defaults; only Timeout is enforced by killing, the others by what the plugin may send.
	Limits handlers.Limits
}

// name is the plugin's name in messages.
func (s *Spec) name() string { return filepath.Base(s.Command) }

// Options of a Runtime. DataDir and Logger are required.
type Options struct {
	// DataDir is the host's own directory; sockets are in its folder "plugins" if its path is short enough.
	DataDir string
	Plugins []Spec
	// Limits are the defaults for invocations that name none.
	Limits handlers.Limits
	// BackoffMin and BackoffMax bound the pause before a plugin is started again that failed to start, or died without having finished
	// anything; it doubles each time. Default 100 ms and 30 s.
	BackoffMin, BackoffMax time.Duration
	Logger                 *slog.Logger
}

func (o *Options) fill() error {
	if o.DataDir == "" || o.Logger == nil {
		return errors.New("plugin: Options.DataDir and Options.Logger are required")
	}
	if o.BackoffMin == 0 {
		o.BackoffMin = 100 * time.Millisecond
	}
	if o.BackoffMax == 0 {
		o.BackoffMax = 30 * time.Second
	}
	if o.BackoffMin < 0 || o.BackoffMax < o.BackoffMin {
		return fmt.Errorf("plugin: backoff %s to %s: negative, or upside down", o.BackoffMin, o.BackoffMax)
	}
	return nil
}

// Bounds of a Spec.
const (
	MaxInstances   = 64
	MaxConcurrency = 1024
)

// fill sets defaults and says what is wrong. i is the place in the list.
func (s *Spec) fill(i int) error {
	wrong := func(format string, args ...any) error {
		return fmt.Errorf("plugins[%d] (%s): %s", i, s.name(), fmt.Sprintf(format, args...))
	}
	orDefault(&s.Instances, 1)
	orDefault(&s.Concurrency, 8)
	orDefault(&s.Grace, 2*time.Second)
	orDefault(&s.Silence, 10*time.Second)
	orDefault(&s.StartTimeout, 15*time.Second)
	switch {
	case s.Command == "":
		return wrong("a command is required")
	case len(s.Types) == 0:
		return wrong("at least one type is required")
	case s.Instances < 1 || s.Instances > MaxInstances:
		return wrong("%d instances; must be between 1 and %d", s.Instances, MaxInstances)
	case s.Concurrency < 1 || s.Concurrency > MaxConcurrency:
		return wrong("concurrency %d; must be between 1 and %d", s.Concurrency, MaxConcurrency)
	case s.Grace < 0 || s.Silence < 0 || s.StartTimeout < 0:
		return wrong("grace %s, silence %s, start timeout %s: must not be negative", s.Grace, s.Silence, s.StartTimeout)
	}
	for _, typ := range s.Types {
		if typ == "" || !handlers.ValidPattern(typ) {
			return wrong("%q is no type and no prefix followed by one *", typ)
		}
	}
	if s.SHA256 != "" && !validDigest(s.SHA256) {
		return wrong("sha256 %q: must be 64 hexadecimal digits", s.SHA256)
	}
	for path, sum := range s.Files {
		if !validDigest(sum) {
			return wrong("files: the digest %q of %s: must be 64 hexadecimal digits", sum, path)
		}
	}
	return nil
}

func orDefault[T comparable](v *T, d T) {
	var zero T
	if *v == zero {
		*v = d
	}
}

func validDigest(s string) bool {
	b, err := hex.DecodeString(s)
	return err == nil && len(b) == 32
}

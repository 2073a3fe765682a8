package plugin

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/hashicorp/go-hclog"
	goplugin "github.com/hashicorp/go-plugin"
	"google.golang.org/grpc"

	pb "github.com/taskhost/taskhost/sdk/go/plugin/internal/handlerpb"
)

// Handler runs one attempt of a job. A nil error makes the job succeed with the result. An error fails the attempt: see [Error] for what it
// may ask for; any other error is retried by policy. ctx ends at the attempt's deadline and when the host asks to stop; return soon then.
type Handler func(ctx context.Context, job *Job) (result []byte, err error)

// Handlers are the handlers of a plugin by type, or by prefix and "*". The longest match serves a job.
type Handlers map[string]Handler

func (h Handlers) types() []string { return slices.Sorted(maps.Keys(h)) }

func (h Handlers) find(typ string) Handler {
	if exact := h[typ]; exact != nil {
		return exact
	}
	for n := len(typ); n >= 0; n-- {
		if pattern := h[typ[:n]+"*"]; pattern != nil {
			return pattern
		}
	}
	return nil
}

// Validate says what is wrong with the handlers: none at all, a nil function, or a "*" that is not at the end.
func (h Handlers) Validate() error {
	if len(h) == 0 {
		return errors.New("the plugin has no handlers")
	}
	for typ, fn := range h {
		if i := strings.IndexByte(typ, '*'); typ == "" || i >= 0 && i < len(typ)-1 {
			return fmt.Errorf("%q is no type and no prefix followed by one *", typ)
		}
		if fn == nil {
			return fmt.Errorf("the handler of %q is nil", typ)
		}
	}
	return nil
}

// JSON turns a function with a typed payload and result into a Handler. A payload that is not JSON of type In is a permanent failure.
// Unknown fields are ignored.
func JSON[In, Out any](h func(ctx context.Context, job *Job, in In) (Out, error)) Handler {
	return func(ctx context.Context, job *Job) ([]byte, error) {
		var in In
		if err := job.Decode(&in); err != nil {
			return nil, err
		}
		out, err := h(ctx, job, in)
		if err != nil {
			return nil, err
		}
		result, err := json.Marshal(out)
		if err != nil {
			return nil, Permanent(fmt.Errorf("result is not JSON: %w", err))
		}
		return result, nil
	}
}

// Option changes how a plugin serves.
type Option func(*options)

type options struct{ concurrency int }

// Concurrency is how many jobs one process of the plugin can run at once; default 64. The host runs at most as many, and at most as many
// as its configuration says. It panics unless 1 ≤ n ≤ 1024.
func Concurrency(n int) Option {
	if n < 1 || n > 1024 {
		panic(fmt.Sprintf("plugin.Concurrency(%d): must be between 1 and 1024", n))
	}
	return func(o *options) { o.concurrency = n }
}

// The handshake with the host. The cookie tells a start by the host from one by hand; it is no secret.
const (
	cookieKey   = "TASKHOST_PLUGIN"
	cookieValue = "taskhost.handler"
	pluginName  = "handler"
)

// connectWithin is how long a plugin waits for its host after its start. A host that died in between leaves no orphan.
const connectWithin = time.Minute

// Serve serves the handlers until the host ends the connection, then ends the process; it does not return. Call it from main, and write
// nothing to standard output before: the host reads the plugin's address there. Handlers that Validate refuses, and a start by hand, end
// the process with a message.
func Serve(h Handlers, opts ...Option) {
	o := options{concurrency: 64}
	for _, opt := range opts {
		opt(&o)
	}
	if os.Getenv(cookieKey) != cookieValue {
		fmt.Fprintln(os.Stderr, "this program is a plugin of taskhost: name it under plugins in the configuration of taskhost, which starts it")
		os.Exit(2)
	}
	if err := h.Validate(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(2)
	}
	stderr := os.Stderr
	alone := time.AfterFunc(connectWithin, func() {
		fmt.Fprintf(stderr, "no host has connected within %s\n", connectWithin)
		os.Exit(1)
	})
	began := func() {
		alone.Stop()
		// The library has put pipes in their place that travel over the connection and are lost with it. The process's own standard error
		// reaches the host in any case, and never blocks.
		os.Stdout, os.Stderr = stderr, stderr
	}
	end := func(err error) {
		if err != nil {
			fmt.Fprintf(stderr, "the connection to the host failed: %v\n", err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	goplugin.Serve(&goplugin.ServeConfig{
		HandshakeConfig:  goplugin.HandshakeConfig{MagicCookieKey: cookieKey, MagicCookieValue: cookieValue},
		VersionedPlugins: map[int]goplugin.PluginSet{abi: {pluginName: &grpcPlugin{server: newServer(h, o.concurrency, began, end)}}},
		GRPCServer: func(opts []grpc.ServerOption) *grpc.Server {
			return grpc.NewServer(append(opts, grpc.MaxRecvMsgSize(maxMessage), grpc.MaxSendMsgSize(maxMessage),
				grpc.InitialWindowSize(window), grpc.InitialConnWindowSize(window))...)
		},
		Logger: hclog.New(&hclog.LoggerOptions{Level: hclog.Error, Output: stderr}),
	})
	os.Exit(0)
}

// grpcPlugin offers the server to the library.
type grpcPlugin struct {
	goplugin.NetRPCUnsupportedPlugin
	server *server
}

func (p *grpcPlugin) GRPCServer(_ *goplugin.GRPCBroker, s *grpc.Server) error {
	pb.RegisterHandlerServer(s, p.server)
	return nil
}

func (p *grpcPlugin) GRPCClient(context.Context, *goplugin.GRPCBroker, *grpc.ClientConn) (any, error) {
	return nil, errors.New("a plugin is no client")
}

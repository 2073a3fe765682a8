package plugin

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"strings"
	"sync"

	"github.com/hashicorp/go-hclog"
	goplugin "github.com/hashicorp/go-plugin"
	"github.com/hashicorp/go-plugin/runner"
	"google.golang.org/grpc"

	"github.com/taskhost/taskhost/abi/pluginpb"
	"github.com/taskhost/taskhost/handlers/wasm/child"
)

// The handshake. The cookie tells a start by the host from one by hand; it is no secret.
const (
	CookieKey   = "TASKHOST_PLUGIN"
	CookieValue = "taskhost.handler"
	// PluginName is what the library calls the one service of a plugin.
	PluginName = "handler"
)

// connection is a plugin that has started and answers.
type connection struct {
	proc     *process
	protocol goplugin.ClientProtocol
	api      pluginpb.HandlerClient
	socket   string // path; "" if it listens elsewhere
	sum      string // hex digest of the program
	about    *pluginpb.DescribeResponse
}

// connect starts the program of a plugin and shakes hands with it. When it fails, nothing of it is left. The library's client serves one
// start only: used again after a failure, it fails for ever.
func connect(ctx context.Context, spec *Spec, sock *sockets, s *child.Spawner, log *slog.Logger) (_ *connection, err error) {
	bin, err := openBinary(spec.Command, spec.SHA256)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, bin.close()) }()
	if err := checkFiles(spec.Files); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeoutCause(ctx, spec.StartTimeout, fmt.Errorf("no handshake within %s", spec.StartTimeout))
	defer cancel()
	c := &connection{proc: newProcess(s, log), sum: bin.sum}
	stop := context.AfterFunc(ctx, c.proc.kill)
	defer stop()
	var captured capture
	if err := c.open(ctx, spec, bin, sock, &captured); err != nil {
		c.proc.kill()
		<-c.proc.gone
		if c.protocol != nil {
			_ = c.protocol.Close() // it asks the plugin to end, which has ended
		}
		captured.close()
		c.cleanUp()
		var timeout error
		if ctx.Err() != nil {
			timeout = context.Cause(ctx)
		}
		return nil, c.proc.startError(err, timeout)
	}
	return c, nil
}

func (c *connection) open(ctx context.Context, spec *Spec, bin *binary, sock *sockets, captured *capture) error {
	config := &goplugin.ClientConfig{
		HandshakeConfig:  goplugin.HandshakeConfig{MagicCookieKey: CookieKey, MagicCookieValue: CookieValue},
		VersionedPlugins: map[int]goplugin.PluginSet{pluginpb.ABI: {PluginName: grpcClient{}}},
		AllowedProtocols: []goplugin.Protocol{goplugin.ProtocolGRPC},
		SkipHostEnv:      true,
		AutoMTLS:         !spec.PlainSocket,
		StartTimeout:     2 * spec.StartTimeout, // ours ends first, and kills
		UnixSocketConfig: &goplugin.UnixSocketConfig{TempDir: sock.root},
		Logger:           hclog.NewNullLogger(),
		SyncStdout:       c.proc.stdout, SyncStderr: c.proc.stderr,
		GRPCDialOptions: append(dialOptions(), grpc.WithStreamInterceptor(captured.intercept)),
		RunnerFunc: func(_ hclog.Logger, cmd *exec.Cmd, tmpDir string) (runner.Runner, error) {
			c.proc.prepare(bin, spec, cmd, tmpDir)
			return c.proc, nil
		},
	}
	client := goplugin.NewClient(config)
	addr, err := client.Start()
	if err != nil {
		return err
	}
	if config.AutoMTLS && noServerCertificate(config.TLSConfig) {
		return errors.New("it does not do mutual TLS; if its language cannot, set mtls: false for it")
	}
	if addr.Network() == "unix" {
		c.socket = addr.String()
		if !strings.HasPrefix(c.socket, c.proc.tmpDir) {
			return fmt.Errorf("its socket %s is not in the folder it was given (PLUGIN_UNIX_SOCKET_DIR)", c.socket)
		}
	}
	protocol, err := client.Client()
	if err != nil {
		return fmt.Errorf("connect: %w", err)
	}
	api, err := protocol.Dispense(PluginName)
	if err != nil {
		return err
	}
	c.protocol, c.api = protocol, api.(pluginpb.HandlerClient)
	return c.describe(ctx, spec)
}

// noServerCertificate: the library takes a plugin without a certificate, and every call to it fails.
func noServerCertificate(t *tls.Config) bool { return t == nil || t.RootCAs == nil }

func (c *connection) describe(ctx context.Context, spec *Spec) (err error) {
	c.about, err = c.api.Describe(ctx, &pluginpb.DescribeRequest{Abi: pluginpb.ABI})
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case err != nil:
		return fmt.Errorf("describe: %w", err)
	case c.about.GetAbi() != pluginpb.ABI:
		return fmt.Errorf("it speaks version %d of the handler protocol, this host %d", c.about.GetAbi(), pluginpb.ABI)
	case c.about.GetSlots() < 1:
		return errors.New("it offers to run no jobs at all")
	}
	for _, typ := range spec.Types {
		if served := c.about.GetTypes(); len(served) > 0 && !covers(served, typ) {
			return fmt.Errorf("it serves %s, and the configuration gives it the type %s", strings.Join(served, ", "), typ)
		}
	}
	return nil
}

// covers reports whether some of the types a plugin says it serves belong to a configured type or pattern, or the other way round.
func covers(served []string, typ string) bool {
	for _, s := range served {
		if matches(s, typ) || matches(typ, s) {
			return true
		}
	}
	return false
}

func matches(pattern, typ string) bool {
	prefix, open := strings.CutSuffix(pattern, "*")
	return pattern == typ || open && strings.HasPrefix(typ, prefix)
}

// close ends the connection of a process that is gone. The library's own Kill would ask the plugin first, and wait for a stopped one
// for ever.
func (c *connection) close() {
	_ = c.protocol.Close() // it asks the plugin to end, which has ended
	c.cleanUp()
}

// cleanUp removes the folder of the socket.
func (c *connection) cleanUp() {
	if c.proc.tmpDir != "" {
		_ = os.RemoveAll(c.proc.tmpDir) // swept at the next start otherwise
	}
}

func dialOptions() []grpc.DialOption {
	return []grpc.DialOption{
		grpc.WithNoProxy(), grpc.WithDisableServiceConfig(), grpc.WithDisableRetry(), grpc.WithDisableHealthCheck(),
		grpc.WithIdleTimeout(0), // an idle connection stays: the socket may be gone when it is made anew
		grpc.WithInitialWindowSize(pluginpb.Window), grpc.WithInitialConnWindowSize(pluginpb.Window),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(pluginpb.MaxMessage), grpc.MaxCallSendMsgSize(pluginpb.MaxMessage)),
	}
}

// capture remembers the connection that the library makes, which it does not close when it fails half-way.
type capture struct {
	mu   sync.Mutex
	conn *grpc.ClientConn
}

func (c *capture) intercept(ctx context.Context, desc *grpc.StreamDesc, conn *grpc.ClientConn, method string, streamer grpc.Streamer, opts ...grpc.CallOption) (grpc.ClientStream, error) {
	c.mu.Lock()
	c.conn = conn
	c.mu.Unlock()
	return streamer(ctx, desc, conn, method, opts...)
}

func (c *capture) close() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.conn != nil {
		_ = c.conn.Close() // closed already if the library did it
	}
}

// grpcClient makes the library hand out the client of the handler protocol.
type grpcClient struct {
	goplugin.NetRPCUnsupportedPlugin
}

// GRPCServer is for plugins, which this is not.
func (grpcClient) GRPCServer(*goplugin.GRPCBroker, *grpc.Server) error {
	return errors.New("the host is no plugin")
}

// GRPCClient returns a pluginpb.HandlerClient.
func (grpcClient) GRPCClient(_ context.Context, _ *goplugin.GRPCBroker, conn *grpc.ClientConn) (any, error) {
	return pluginpb.NewHandlerClient(conn), nil
}

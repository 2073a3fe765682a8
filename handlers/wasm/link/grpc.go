package link

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"sync"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/taskhost/taskhost/abi/pluginpb"
)

// FileConn makes a connection of one end of a socket pair and closes the file.
func FileConn(f *os.File) (net.Conn, error) {
	conn, err := net.FileConn(f)
	return conn, errors.Join(err, f.Close())
}

// Dial returns a gRPC client over an established connection, which it takes over. It never dials again: when the connection has ended,
// calls fail.
func Dial(conn net.Conn) (*grpc.ClientConn, error) {
	var once sync.Once
	dial := func(context.Context, string) (net.Conn, error) {
		err := errors.New("the connection has ended")
		var c net.Conn
		once.Do(func() { c, err = conn, nil })
		return c, err
	}
	cc, err := grpc.NewClient("passthrough:handler",
		grpc.WithContextDialer(dial),
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithNoProxy(), grpc.WithDisableServiceConfig(), grpc.WithDisableRetry(), grpc.WithDisableHealthCheck(),
		grpc.WithIdleTimeout(0),
		grpc.WithInitialWindowSize(pluginpb.Window), grpc.WithInitialConnWindowSize(pluginpb.Window),
		grpc.WithReadBufferSize(buffer), grpc.WithWriteBufferSize(buffer),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(pluginpb.MaxMessage), grpc.MaxCallSendMsgSize(pluginpb.MaxMessage)),
	)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("gRPC client: %w", err), conn.Close())
	}
	return cc, nil
}

// NewServer returns a gRPC server with the bounds of the protocol.
func NewServer() *grpc.Server {
	return grpc.NewServer(
		grpc.MaxRecvMsgSize(pluginpb.MaxMessage), grpc.MaxSendMsgSize(pluginpb.MaxMessage),
		grpc.InitialWindowSize(pluginpb.Window), grpc.InitialConnWindowSize(pluginpb.Window),
		grpc.ReadBufferSize(buffer), grpc.WriteBufferSize(buffer),
	)
}

const buffer = 64 << 10

// Listener accepts one established connection, then waits; it ends when that connection is closed.
type Listener struct {
	conn  chan net.Conn
	addr  net.Addr
	ended chan struct{}
	once  sync.Once
}

var _ net.Listener = (*Listener)(nil)

// Listen returns a listener for conn.
func Listen(conn net.Conn) *Listener {
	l := &Listener{conn: make(chan net.Conn, 1), addr: conn.LocalAddr(), ended: make(chan struct{})}
	l.conn <- &notifyConn{conn, l}
	return l
}

// Accept returns the connection the first time, and an error when it has ended.
func (l *Listener) Accept() (net.Conn, error) {
	select {
	case <-l.ended:
		return nil, net.ErrClosed
	default:
	}
	select {
	case c := <-l.conn:
		return c, nil
	case <-l.ended:
		return nil, net.ErrClosed
	}
}

// Close ends Accept. It does not close the connection once that was accepted.
func (l *Listener) Close() error {
	l.once.Do(func() { close(l.ended) })
	return nil
}

// Addr is the local address of the connection.
func (l *Listener) Addr() net.Addr { return l.addr }

// Ended is closed when the connection was closed.
func (l *Listener) Ended() <-chan struct{} { return l.ended }

type notifyConn struct {
	net.Conn
	l *Listener
}

func (c *notifyConn) Close() error {
	return errors.Join(c.Conn.Close(), c.l.Close())
}

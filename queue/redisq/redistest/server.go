package redistest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// Server is a redis-server process of its own, on a free port of the loopback, with its files in a directory of its own.
type Server struct {
	port     int
	dir      string
	args     []string
	sentinel string // its file, when it is a Sentinel

	mu  sync.Mutex
	cmd *exec.Cmd
	out *bytes.Buffer
}

// Start starts a server with more command line settings, e.g. "--appendonly", "yes". It fails when redis-server is not installed:
// a test that needs it must not pass without it.
func Start(ctx context.Context, dir string, args ...string) (*Server, error) {
	l, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	port := l.Addr().(*net.TCPAddr).Port
	if err := l.Close(); err != nil {
		return nil, err
	}
	s := &Server{port: port, dir: dir, args: args}
	return s, s.Restart()
}

// Addr is host and port.
func (s *Server) Addr() string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(s.port)) }

// URL names the server and a prefix.
func (s *Server) URL(prefix string) string { return "redis://" + s.Addr() + "/0?prefix=" + prefix }

// noScripts is a user of every server that may do everything but run scripts; it is its own password.
const noScripts = "noscripts"

// URLWithoutScripts is URL for a user who may not run scripts, and for the mode of the store that does without them.
func (s *Server) URLWithoutScripts(prefix string) string {
	return "redis://" + noScripts + ":" + noScripts + "@" + s.Addr() + "/0?lua=0&prefix=" + prefix
}

// PID is the process id.
func (s *Server) PID() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.cmd.Process.Pid
}

// Restart starts the process again after Kill, and waits until it answers.
func (s *Server) Restart() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	args := append([]string{"--port", strconv.Itoa(s.port), "--bind", "127.0.0.1", "--dir", s.dir, "--save", "", "--loglevel", "warning",
		"--user", noScripts, "on", ">" + noScripts, "allkeys", "allchannels", "+@all", "-@scripting"}, s.args...)
	if s.sentinel != "" {
		args = []string{s.sentinel, "--sentinel"}
	}
	s.out = &bytes.Buffer{}
	s.cmd = exec.Command("redis-server", args...)
	s.cmd.Stdout, s.cmd.Stderr = s.out, s.out
	if err := s.cmd.Start(); err != nil {
		return fmt.Errorf("redis-server 7.0 or newer must be installed: %w", err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	for {
		if err := ping(ctx, s.Addr()); err == nil {
			return nil
		} else if ctx.Err() != nil {
			return errors.Join(fmt.Errorf("redis-server does not answer: %w; it printed %q", err, s.out.String()), s.kill())
		}
		retry := time.NewTimer(10 * time.Millisecond)
		<-retry.C
	}
}

// ping asks the server whether it is ready.
func ping(ctx context.Context, addr string) error {
	var d net.Dialer
	c, err := d.DialContext(ctx, "tcp", addr)
	if err != nil {
		return err
	}
	defer c.Close()
	if err := c.SetDeadline(time.Now().Add(time.Second)); err != nil {
		return err
	}
	if _, err := c.Write([]byte("PING\r\n")); err != nil {
		return err
	}
	b := make([]byte, 128)
	n, err := c.Read(b)
	if answer := string(b[:n]); err == nil && answer != "+PONG\r\n" && !strings.HasPrefix(answer, "-NOAUTH") {
		err = fmt.Errorf("it answers %q", b[:n])
	}
	return err
}

// Kill ends the process as kill -9 does.
func (s *Server) Kill() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.kill()
}

func (s *Server) kill() error {
	if err := s.cmd.Process.Kill(); err != nil {
		return err
	}
	_ = s.cmd.Wait() // "signal: killed"
	return nil
}

// Shared is one server for the tests of a package, started at its first use. The zero value is ready.
type Shared struct {
	once   sync.Once
	server *Server
	err    error
	dir    string
	n      atomic.Int64
}

// URL returns the server's address with a prefix nobody else has.
func (s *Shared) URL(tb testing.TB) string {
	tb.Helper()
	return s.Server(tb).URL(fmt.Sprintf("t%d:", s.n.Add(1)))
}

// URLWithoutScripts is URL for a user who may not run scripts.
func (s *Shared) URLWithoutScripts(tb testing.TB) string {
	tb.Helper()
	return s.Server(tb).URLWithoutScripts(fmt.Sprintf("t%d:", s.n.Add(1)))
}

// Server returns the server; the test fails when there is none.
func (s *Shared) Server(tb testing.TB) *Server {
	tb.Helper()
	s.once.Do(func() {
		if s.dir, s.err = os.MkdirTemp("", "redistest"); s.err == nil {
			s.server, s.err = Start(tb.Context(), filepath.Clean(s.dir), "--appendonly", "yes")
		}
	})
	if s.err != nil {
		tb.Fatal(s.err)
	}
	return s.server
}

// Stop ends the server, if it was started. It belongs at the end of TestMain.
func (s *Shared) Stop() error {
	if s.server == nil {
		return nil
	}
	return errors.Join(s.server.Kill(), os.RemoveAll(s.dir))
}

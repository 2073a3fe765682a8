package demo

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"
)

// server is a running `taskhost serve`.
type server struct {
	binary, url string
	cmd         *exec.Cmd
	log         *os.File
	ended       chan struct{} // closed when the process is gone
	err         error         // how it ended; read after ended
}

// start starts the server on a free port of the loopback interface and waits until it is ready.
func start(ctx context.Context, binary, dir, config string) (*server, error) {
	address, err := freeAddress(ctx)
	if err != nil {
		return nil, err
	}
	file := filepath.Join(dir, "taskhost.yaml")
	if err := os.WriteFile(file, []byte(config), 0o600); err != nil {
		return nil, err
	}
	log, err := os.Create(filepath.Join(dir, "serve.log"))
	if err != nil {
		return nil, err
	}
	s := &server{binary: binary, url: "http://" + address, log: log, ended: make(chan struct{})}
	s.cmd = exec.CommandContext(context.WithoutCancel(ctx), binary, "serve",
		"--config", file, "--data-dir", filepath.Join(dir, "data"), "--listen", address)
	s.cmd.Stdout, s.cmd.Stderr = log, log
	s.cmd.Env = environment()
	if err := s.cmd.Start(); err != nil {
		return nil, errors.Join(err, log.Close())
	}
	go func() {
		s.err = s.cmd.Wait()
		close(s.ended)
	}()
	if err := s.waitReady(ctx); err != nil {
		return nil, errors.Join(fmt.Errorf("%w; its log:\n%s", err, s.tail()), s.stop())
	}
	return s, nil
}

// environment is ours without settings that would reach the server or the client.
func environment() []string {
	var env []string
	for _, v := range os.Environ() {
		if !bytes.HasPrefix([]byte(v), []byte("TASKHOST_")) {
			env = append(env, v)
		}
	}
	return env
}

func freeAddress(ctx context.Context) (string, error) {
	var lc net.ListenConfig
	l, err := lc.Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	return l.Addr().String(), l.Close()
}

const readyWithin = time.Minute

// waitReady asks /readyz until it answers 200 or the process ends.
func (s *server) waitReady(ctx context.Context) error {
	ctx, cancel := context.WithTimeoutCause(ctx, readyWithin, fmt.Errorf("taskhost serve was not ready within %v", readyWithin))
	defer cancel()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for {
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, s.url+"/readyz", http.NoBody)
		if err != nil {
			return err
		}
		if resp, err := http.DefaultClient.Do(req); err == nil {
			resp.Body.Close()
			if resp.StatusCode == http.StatusOK {
				return nil
			}
		}
		select {
		case <-tick.C:
		case <-s.ended:
			return fmt.Errorf("taskhost serve ended: %w", s.err)
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// client runs a client command of the binary against the server and returns its standard output.
func (s *server) client(ctx context.Context, args ...string) ([]byte, error) {
	cmd := exec.CommandContext(ctx, s.binary, append(args, "--server", s.url)...)
	cmd.Env = environment()
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil {
		return nil, fmt.Errorf("taskhost %s: %w\n%s%s", args[0], err, stderr.Bytes(), s.tail())
	}
	return stdout.Bytes(), nil
}

const stopWithin = 40 * time.Second

// stop asks the server to drain and waits for its end.
func (s *server) stop() error {
	defer s.log.Close()
	if err := s.cmd.Process.Signal(syscall.SIGTERM); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return err
	}
	timer := time.NewTimer(stopWithin)
	defer timer.Stop()
	select {
	case <-s.ended:
	case <-timer.C:
		err := s.cmd.Process.Kill()
		<-s.ended
		return errors.Join(fmt.Errorf("taskhost serve did not stop within %v of SIGTERM", stopWithin), err)
	}
	if s.err != nil {
		return fmt.Errorf("taskhost serve: %w; its log:\n%s", s.err, s.tail())
	}
	return nil
}

// tail is the end of the server's log.
func (s *server) tail() []byte {
	log, err := os.ReadFile(s.log.Name())
	if err != nil {
		return []byte(err.Error())
	}
	return log[max(0, len(log)-4000):]
}

// Package redisproc starts a Redis server for one benchmark run: a child process on a free loopback port, with its data
// in a directory of its own.
package redisproc

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// Server is a running redis-server.
type Server struct {
	Addr    string // host:port
	Version string
	cmd     *exec.Cmd
	dir     string
}

// Start runs redis-server with an append-only file fsynced every second and otherwise stock settings. It returns when
// the server answers, or with an error after 10 s.
func Start(ctx context.Context) (*Server, error) {
	path, err := exec.LookPath("redis-server")
	if err != nil {
		return nil, fmt.Errorf("redis-server is needed for the comparison: apt-get install redis-server: %w", err)
	}
	dir, err := os.MkdirTemp("", "taskhost-bench-redis-")
	if err != nil {
		return nil, err
	}
	port, err := freePort()
	if err != nil {
		return nil, err
	}
	s := &Server{Addr: net.JoinHostPort("127.0.0.1", strconv.Itoa(port)), dir: dir}
	s.cmd = exec.CommandContext(ctx, path, "--port", strconv.Itoa(port), "--bind", "127.0.0.1", "--dir", dir,
		"--appendonly", "yes", "--appendfsync", "everysec", "--save", "", "--logfile", filepath.Join(dir, "redis.log"))
	s.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := s.cmd.Start(); err != nil {
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	for deadline := time.Now().Add(10 * time.Second); ; {
		info, err := s.Info("server")
		if err == nil {
			s.Version = info["redis_version"]
			return s, nil
		}
		if time.Now().After(deadline) {
			return nil, errors.Join(fmt.Errorf("redis-server on %s did not answer in 10 s: %w", s.Addr, err), s.Stop())
		}
		time.Sleep(20 * time.Millisecond)
	}
}

// Info returns one section of INFO as a map.
func (s *Server) Info(section string) (map[string]string, error) {
	conn, err := net.DialTimeout("tcp", s.Addr, time.Second)
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	if _, err := fmt.Fprintf(conn, "INFO %s\r\nQUIT\r\n", section); err != nil {
		return nil, err
	}
	values := map[string]string{}
	scanner := bufio.NewScanner(conn)
	for scanner.Scan() {
		if k, v, ok := strings.Cut(strings.TrimSpace(scanner.Text()), ":"); ok {
			values[k] = v
		}
	}
	if len(values) == 0 {
		return nil, errors.New("no answer to INFO")
	}
	return values, scanner.Err()
}

// MainThreadCPU is the processor time the server's main thread has used.
func (s *Server) MainThreadCPU() (time.Duration, error) {
	info, err := s.Info("cpu")
	if err != nil {
		return 0, err
	}
	var total float64
	for _, k := range []string{"used_cpu_sys_main_thread", "used_cpu_user_main_thread"} {
		v, err := strconv.ParseFloat(info[k], 64)
		if err != nil {
			return 0, fmt.Errorf("INFO cpu: %s: %w", k, err)
		}
		total += v
	}
	return time.Duration(total * float64(time.Second)), nil
}

// Stop ends the server and removes its data.
func (s *Server) Stop() error {
	if err := s.cmd.Process.Signal(syscall.SIGTERM); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return err
	}
	var exit *exec.ExitError
	if err := s.cmd.Wait(); err != nil && !errors.As(err, &exit) {
		return err
	}
	return os.RemoveAll(s.dir)
}

func freePort() (int, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return 0, err
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port, nil
}

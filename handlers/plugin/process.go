package plugin

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/hashicorp/go-plugin/runner"

	"github.com/taskhost/taskhost/handlers/wasm/child"
)

// process is one run of a plugin's program, as the library wants it. The library sees only the handshake: all output is read and logged here,
// so that no length of line and no flood can stop it being read.
type process struct {
	spawner *child.Spawner
	cmd     *exec.Cmd
	tmpDir  string // made by the library for the socket
	stdout  *output
	stderr  *output
	hello   *handshake

	mu      sync.Mutex
	started bool
	reaped  bool
	doomed  bool // must not start any more
	exit    error
	gone    chan struct{} // closed when the process was reaped, or can never start
}

var _ runner.Runner = (*process)(nil)

func newProcess(s *child.Spawner, log *slog.Logger) *process {
	p := &process{spawner: s, hello: &handshake{ready: make(chan struct{})}, gone: make(chan struct{})}
	p.stdout = &output{log: log, stream: "stdout", line: p.hello.offer}
	p.stderr = &output{log: log, stream: "stderr"}
	return p
}

// prepare takes the command that the library has filled in with the variables of its handshake.
func (p *process) prepare(bin *binary, spec *Spec, library *exec.Cmd, tmpDir string) {
	p.cmd = bin.command(spec.Args)
	p.cmd.Dir = spec.Dir
	p.cmd.Env = environment(spec.Env, library.Env)
	p.cmd.Stdout, p.cmd.Stderr = p.stdout, p.stderr
	p.cmd.WaitDelay = time.Second // for what has left the process group and still holds a pipe
	p.tmpDir = tmpDir
}

// Start starts the process, in a group of its own.
func (p *process) Start(context.Context) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.doomed {
		return errors.New("it was given up before it started")
	}
	if err := p.spawner.Start(p.cmd); err != nil {
		p.doomed = true
		p.exit = err
		p.hello.end()
		close(p.gone)
		return err
	}
	p.started = true
	go p.reap()
	return nil
}

// reap waits for the end of the process. Its group is killed while its number still belongs to it.
func (p *process) reap() {
	if awaitExit(p.cmd) {
		p.mu.Lock()
		killGroup(p.cmd.Process)
		p.reaped = true
		p.mu.Unlock()
	}
	err := p.cmd.Wait()
	p.mu.Lock()
	p.reaped = true
	p.mu.Unlock()
	if errors.Is(err, exec.ErrWaitDelay) { // the process itself ended well
		err = nil
	}
	killLeftovers(p.cmd.Process)
	p.stdout.close()
	p.stderr.close()
	p.mu.Lock()
	p.exit = err
	p.mu.Unlock()
	p.hello.end()
	close(p.gone)
}

// kill ends the process and everything in its group, and keeps it from starting if it has not.
func (p *process) kill() {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case p.started && !p.reaped:
		killGroup(p.cmd.Process)
	case !p.started && !p.doomed:
		p.doomed = true
		p.hello.end()
		close(p.gone)
	}
}

// exited is how the process ended, after gone.
func (p *process) exited() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.exit != nil {
		return p.exit.Error()
	}
	return "exit status 0"
}

func (p *process) pid() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.started {
		return 0
	}
	return p.cmd.Process.Pid
}

// Wait returns when the process was reaped.
func (p *process) Wait(context.Context) error {
	<-p.gone
	return nil
}

// Kill ends the process.
func (p *process) Kill(context.Context) error {
	p.kill()
	return nil
}

// Stdout is the handshake, and then nothing until the process ends.
func (p *process) Stdout() io.ReadCloser {
	return io.NopCloser(&handshakeReader{h: p.hello, gone: p.gone})
}

// Stderr is nothing until the process ends.
func (p *process) Stderr() io.ReadCloser {
	return io.NopCloser(&handshakeReader{h: &handshake{ready: closedChannel()}, gone: p.gone})
}

func closedChannel() chan struct{} {
	c := make(chan struct{})
	close(c)
	return c
}

// Name is the path of the program.
func (p *process) Name() string { return p.cmd.Path }

// ID is the process's number.
func (p *process) ID() string { return strconv.Itoa(p.pid()) }

// Diagnose has nothing to add: errors are put together in startError.
func (p *process) Diagnose(context.Context) string { return "" }

// PluginToHost changes nothing: both see the same files.
func (p *process) PluginToHost(network, addr string) (string, string, error) {
	return network, addr, nil
}

// HostToPlugin changes nothing.
func (p *process) HostToPlugin(network, addr string) (string, string, error) {
	return network, addr, nil
}

// handshake is the first line of a plugin's standard output.
type handshake struct {
	once  sync.Once
	ready chan struct{} // closed when the line is there, or none comes any more
	line  string        // "" = none came
	bad   bool          // the line is something else
}

// offer takes the first line.
func (h *handshake) offer(text string, number int) bool {
	if number > 0 {
		return false
	}
	h.once.Do(func() {
		h.line, h.bad = text, !isHandshake(text)
		close(h.ready)
	})
	return !h.bad
}

func (h *handshake) end() { h.once.Do(func() { close(h.ready) }) }

// spoiled is the line that came in place of a handshake.
func (h *handshake) spoiled() (string, bool) {
	select {
	case <-h.ready:
		return h.line, h.bad
	default:
		return "", false
	}
}

// isHandshake tells "1|1|unix|/path|grpc|…" from whatever else a program may print.
func isHandshake(line string) bool {
	parts := strings.Split(line, "|")
	if len(parts) < 5 {
		return false
	}
	for _, number := range parts[:2] {
		if _, err := strconv.Atoi(number); err != nil {
			return false
		}
	}
	return true
}

// handshakeReader reads the handshake, then waits for the end of the process.
type handshakeReader struct {
	h    *handshake
	gone <-chan struct{}
	text *bytes.Reader
}

func (r *handshakeReader) Read(b []byte) (int, error) {
	if r.text == nil {
		<-r.h.ready
		line := ""
		if r.h.line != "" {
			line = r.h.line + "\n"
		}
		r.text = bytes.NewReader([]byte(line))
	}
	if n, err := r.text.Read(b); err == nil {
		return n, nil
	}
	<-r.gone
	return 0, io.EOF
}

// startError says why a plugin did not start; what it printed says most.
func (p *process) startError(err error, timeout error) error {
	say := func(what string) error {
		if line := p.stderr.complaint(); line != "" {
			what += ": " + line
		}
		return fmt.Errorf("plugin failed to start: %s", what)
	}
	line, bad := p.hello.spoiled()
	switch {
	case bad:
		return fmt.Errorf("plugin failed to start: it printed %q before its handshake; nothing may be printed to standard output before", shortened(line))
	case timeout != nil:
		return say(timeout.Error())
	case p.pid() == 0:
		return say(startHint(err))
	case line == "":
		return say(fmt.Sprintf("it ended without a handshake (%s)", p.exited()))
	}
	return say(err.Error())
}

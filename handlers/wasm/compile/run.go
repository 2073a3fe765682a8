package compile

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"time"

	"github.com/taskhost/taskhost/handlers"
)

var errWall = errors.New("compile deadline passed")

// ended is a child that has ended.
type ended struct {
	cpu      time.Duration
	maxRSS   int64 // bytes; 0 where the system does not say
	code     int   // -1 when a signal ended it
	signal   syscall.Signal
	wall     bool // killed at the deadline
	stdout   []byte
	overflow bool   // it wrote more than maxVerdict
	stderr   string // cut to maxStderr
}

// run starts a child in dir, feeds it the module and waits for its end. The error is the host's: it could not be started, or ctx
// ended. However it returns, the child and everything it started in its group are dead.
func (s *Service) run(ctx context.Context, dir string, module []byte, memoryBytes int64) (*ended, error) {
	runCtx, cancel := context.WithTimeoutCause(ctx, s.limits.Wall, errWall)
	defer cancel()
	var head bytes.Buffer
	if err := writeHeader(&head, header{ModuleBytes: len(module), MemoryBytes: memoryBytes, CPUSeconds: s.limits.cpuSeconds(), DataBytes: s.limits.Data, Lockdown: s.opts.Lockdown}); err != nil {
		return nil, err
	}
	path, args := s.opts.Command()
	cmd := exec.CommandContext(runCtx, path, args...)
	cmd.Dir = dir
	// Nothing of the host's environment: only what the Go runtime of the child is to know. It collects garbage harder near the
	// limit of memory instead of running into it.
	cmd.Env = []string{"GOMAXPROCS=2", fmt.Sprintf("GOMEMLIMIT=%d", s.limits.Data/5*4)}
	cmd.Stdin = io.MultiReader(&head, bytes.NewReader(module))
	stdout, stderr := &capped{most: maxVerdict}, &capped{most: maxStderr}
	cmd.Stdout, cmd.Stderr = stdout, stderr
	cmd.WaitDelay = 5 * time.Second // pipes that a stray process holds open
	start := s.spawner.Start
	if s.opts.Lockdown.Namespaces {
		start = s.spawner.StartApart
	}
	if err := start(cmd); err != nil {
		if cause := context.Cause(runCtx); cause != nil {
			return nil, cause
		}
		return nil, fmt.Errorf("start a compile child: %w", err)
	}
	waitErr := reap(cmd)
	if err := context.Cause(ctx); err != nil {
		return nil, err
	}
	state := cmd.ProcessState
	if state == nil {
		return nil, fmt.Errorf("wait for a compile child: %w", waitErr)
	}
	e := &ended{cpu: state.UserTime() + state.SystemTime(), maxRSS: maxRSS(state), code: state.ExitCode(), stdout: stdout.buf.Bytes(),
		overflow: stdout.overflow, stderr: stderr.buf.String(), wall: errors.Is(context.Cause(runCtx), errWall) && !state.Success()}
	if status, ok := state.Sys().(syscall.WaitStatus); ok && status.Signaled() {
		e.signal = status.Signal()
	}
	return e, nil
}

// judge says what a child's end means: its verdict, a refusal of the module, or an error of the host. remember tells whether the
// same module would meet the same end again.
func (s *Service) judge(e *ended, moduleBytes int) (v *verdict, remember bool, err error) {
	refuse := func(remember bool, format string, args ...any) (*verdict, bool, error) {
		return &verdict{Refusal: &refusal{Reason: fmt.Sprintf(format, args...)}}, remember, nil
	}
	switch {
	case e.code == exitDone && e.overflow:
		return nil, false, fmt.Errorf("a compile child answered with more than %d bytes", maxVerdict)
	case e.code == exitDone:
		v, err := decodeVerdict(e.stdout, moduleBytes)
		if err != nil {
			return nil, false, fmt.Errorf("a compile child's answer is not understood: %w", err)
		}
		if v.Unsafe {
			return nil, false, fmt.Errorf("%w: %s", handlers.ErrSandbox, v.Fault)
		}
		if v.Fault != "" {
			return nil, false, fmt.Errorf("compile child: %s", v.Fault)
		}
		return v, true, nil
	case e.code == exitCPU, e.cpu >= s.limits.CPU-time.Second/2:
		return refuse(true, "compile limit: compiling the module takes more than %v of processor time; make its largest functions smaller", s.limits.CPU)
	case e.wall:
		// How long it took is the machine's doing as well; what it cost by then is the module's.
		return refuse(e.cpu >= s.limits.CPU/2, "compile limit: compiling the module took longer than %v", s.limits.Wall)
	case outOfMemory(e.stderr), crashed(e.stderr) && e.maxRSS > s.limits.Data/2:
		return refuse(true, "compile limit: compiling the module takes more than %d MiB of memory; make its largest functions smaller", s.limits.Data>>20)
	case e.code == exitProtocol && crashed(e.stderr):
		return refuse(false, "the compiler crashed on this module: %s", firstLine(e.stderr))
	case e.signal == syscall.SIGKILL:
		return nil, false, fmt.Errorf("a compile child was killed from outside, perhaps by the kernel for want of memory: %s", firstLine(e.stderr))
	case e.signal != 0:
		return nil, false, fmt.Errorf("a compile child was ended by %v: %s", e.signal, firstLine(e.stderr))
	}
	return nil, false, fmt.Errorf("a compile child ended with code %d: %s", e.code, firstLine(e.stderr))
}

// outOfMemory recognises how the Go runtime reports that the kernel gives no more memory, which RLIMIT_DATA makes it do. In some
// places the runtime uses the nil it was given instead, and reports that; judge takes a crash of a large process for this.
func outOfMemory(stderr string) bool {
	for _, s := range []string{"out of memory", "cannot allocate memory", "cannot map pages", "failed to create new OS thread"} {
		if strings.Contains(stderr, s) {
			return true
		}
	}
	return false
}

// crashed recognises a Go program that crashed.
func crashed(stderr string) bool {
	for _, s := range []string{"fatal error: ", "panic: ", "unexpected fault address", "SIGSEGV", "goroutine stack exceeds"} {
		if strings.Contains(stderr, s) {
			return true
		}
	}
	return false
}

func firstLine(stderr string) string {
	for l := range strings.Lines(stderr) {
		if l = strings.TrimSpace(l); l != "" {
			return line(l)
		}
	}
	return "it wrote nothing to stderr"
}

// capped keeps the first bytes and drops the rest, so that the writer is neither stopped nor able to fill memory.
type capped struct {
	buf      bytes.Buffer
	most     int
	overflow bool
}

func (c *capped) Write(p []byte) (int, error) {
	keep := min(len(p), c.most-c.buf.Len())
	c.buf.Write(p[:keep])
	c.overflow = c.overflow || keep < len(p)
	return len(p), nil
}

func maxRSS(state *os.ProcessState) int64 {
	usage, ok := state.SysUsage().(*syscall.Rusage)
	if !ok {
		return 0
	}
	return rssBytes(usage)
}

func (r *refusal) handlers() *handlers.Refusal {
	return &handlers.Refusal{Reason: r.Reason, Details: r.Details}
}

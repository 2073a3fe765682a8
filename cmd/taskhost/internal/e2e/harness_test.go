package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// binary is the program under test, built once. It is built without the race detector, whose shadow memory does not fit into the
// limits of the child processes; the test of package wire runs the server's part under it.
var binary string

func TestMain(m *testing.M) { os.Exit(run(m)) }

func run(m *testing.M) int {
	dir, err := os.MkdirTemp("", "taskhost-e2e-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir)
	binary = filepath.Join(dir, "taskhost")
	build := exec.Command("go", "build", "-o", binary, "../..")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		fmt.Fprintf(os.Stderr, "build the program: %v\n%s", err, out)
		return 1
	}
	return m.Run()
}

// environment is ours without what would reach the program.
func environment() []string {
	env := []string{}
	for _, kv := range os.Environ() {
		if !strings.HasPrefix(kv, "TASKHOST_") {
			env = append(env, kv)
		}
	}
	return env
}

// log collects what a process writes, and lets a test wait for it.
type log struct {
	mu      sync.Mutex
	text    bytes.Buffer
	changed chan struct{}
}

func newLog() *log { return &log{changed: make(chan struct{})} }

func (l *log) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	close(l.changed)
	l.changed = make(chan struct{})
	return l.text.Write(p)
}

func (l *log) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// wait returns the first match of re, or nil when ended or the timeout comes first.
func (l *log) wait(re *regexp.Regexp, ended <-chan struct{}, timeout time.Duration) []string {
	deadline := time.After(timeout)
	for {
		l.mu.Lock()
		match, changed := re.FindStringSubmatch(l.text.String()), l.changed
		l.mu.Unlock()
		if match != nil {
			return match
		}
		select {
		case <-changed:
		case <-ended:
			return re.FindStringSubmatch(l.String())
		case <-deadline:
			return nil
		}
	}
}

var (
	readyLine = regexp.MustCompile(`(?s)(?:"msg":"ready","api":"|API )(http://[0-9.:]+).*?\n`)
	devReady  = regexp.MustCompile(`API (http://[0-9.:]+)/v1(?s:.*)ready in`)
)

// server is a running `taskhost serve` or `dev`.
type server struct {
	t     testing.TB
	cmd   *exec.Cmd
	url   string
	log   *log
	ended chan struct{}
	took  time.Duration // until it was ready
}

// startServer starts the program and waits until it says that it is ready. It is killed at the end of the test if it still runs then.
func startServer(t testing.TB, args ...string) *server {
	t.Helper()
	s := launch(t, args...)
	re := readyLine
	if args[0] == "dev" {
		re = devReady
	}
	started := time.Now()
	match := s.log.wait(re, s.ended, time.Minute)
	if match == nil {
		t.Fatalf("taskhost %s is not ready:\n%s", strings.Join(args, " "), s.log)
	}
	s.took, s.url = time.Since(started), match[1]
	return s
}

func launch(t testing.TB, args ...string) *server {
	t.Helper()
	s := &server{t: t, cmd: exec.Command(binary, args...), log: newLog(), ended: make(chan struct{})}
	s.cmd.Env, s.cmd.Stdout, s.cmd.Stderr = environment(), s.log, s.log
	if err := s.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		_ = s.cmd.Wait() // the tests look at ProcessState
		close(s.ended)
	}()
	t.Cleanup(func() {
		_ = s.cmd.Process.Kill() // it may be gone
		<-s.ended
		if t.Failed() {
			t.Logf("log of taskhost %s:\n%s", strings.Join(args, " "), s.log)
		}
	})
	return s
}

// serve starts `taskhost serve` on a free port with a configuration ("" = none) and a folder that may be used again.
func serve(t testing.TB, dir, config string) *server {
	t.Helper()
	args := []string{"serve", "--data-dir", filepath.Join(dir, "data"), "--listen", "127.0.0.1:0"}
	if config != "" {
		file := filepath.Join(dir, "taskhost.yaml")
		if err := os.WriteFile(file, []byte(config), 0o600); err != nil {
			t.Fatal(err)
		}
		args = append(args, "--config", file)
	}
	return startServer(t, args...)
}

func (s *server) signal(sig os.Signal) {
	s.t.Helper()
	if err := s.cmd.Process.Signal(sig); err != nil {
		s.t.Fatal(err)
	}
}

// waitExit returns the exit code and how long the end took.
func (s *server) waitExit(timeout time.Duration) (int, time.Duration) {
	s.t.Helper()
	start := time.Now()
	select {
	case <-s.ended:
	case <-time.After(timeout):
		s.t.Fatalf("not ended within %s", timeout)
	}
	if ws, ok := s.cmd.ProcessState.Sys().(syscall.WaitStatus); ok && ws.Signaled() {
		return 128 + int(ws.Signal()), time.Since(start)
	}
	return s.cmd.ProcessState.ExitCode(), time.Since(start)
}

// kill is kill -9.
func (s *server) kill() {
	s.t.Helper()
	s.signal(syscall.SIGKILL)
	<-s.ended
}

// call sends a request. body is JSON text, bytes of a module (with contentType), or nil.
func (s *server) call(method, path string, body []byte, contentType string) (int, []byte) {
	s.t.Helper()
	req, err := http.NewRequestWithContext(s.t.Context(), method, s.url+path, bytes.NewReader(body))
	if err != nil {
		s.t.Fatal(err)
	}
	if contentType == "" {
		contentType = "application/json"
	}
	if body != nil {
		req.Header.Set("Content-Type", contentType)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		s.t.Fatalf("%s %s: %v", method, path, err)
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(resp.Body)
	if err != nil {
		s.t.Fatalf("%s %s: %v", method, path, err)
	}
	return resp.StatusCode, answer
}

// ok is call for what must succeed; the answer is decoded into out.
func (s *server) ok(method, path, body string, out any) {
	s.t.Helper()
	var b []byte
	if body != "" {
		b = []byte(body)
	}
	status, answer := s.call(method, path, b, "")
	if status/100 != 2 {
		s.t.Fatalf("%s %s: %d %s", method, path, status, answer)
	}
	if out != nil {
		if err := json.Unmarshal(answer, out); err != nil {
			s.t.Fatalf("%s %s: %v: %s", method, path, err, answer)
		}
	}
}

// push uploads a module and makes it live.
func (s *server) push(typ string, module []byte) {
	s.t.Helper()
	status, answer := s.call("POST", "/v1/handlers/"+typ+"/versions", module, "application/wasm")
	if status/100 != 2 {
		s.t.Fatalf("push %s: %d %s", typ, status, answer)
	}
	var v struct{ Version int }
	if err := json.Unmarshal(answer, &v); err != nil {
		s.t.Fatal(err)
	}
	s.ok("PUT", "/v1/handlers/"+typ+"/live", fmt.Sprintf(`{"version":%d}`, v.Version), nil)
}

// enqueue stores n equal jobs in one batch and returns their ids.
func (s *server) enqueue(n int, job string) []string {
	s.t.Helper()
	var out struct {
		Outcomes []struct{ ID, Outcome string }
	}
	s.ok("POST", "/v1/jobs", `{"jobs":[`+strings.TrimSuffix(strings.Repeat(job+",", n), ",")+`]}`, &out)
	ids := make([]string, n)
	for i, o := range out.Outcomes {
		if o.Outcome != "created" {
			s.t.Fatalf("job %d: %+v", i, o)
		}
		ids[i] = o.ID
	}
	return ids
}

// job is what the tests read of a job.
type job struct {
	ID, Type, Queue, State string
	Attempt, Crashes, Run  int
	Interruptions          int
	StartedAt              time.Time                       `json:"started_at"`
	FinishedAt             time.Time                       `json:"finished_at"`
	CreatedAt              time.Time                       `json:"created_at"`
	LastError              *struct{ Kind, Message string } `json:"last_error"`
	Attempts               []struct {
		Run, Attempt int
		Outcome      string
		StartedAt    time.Time `json:"started_at"`
		DurationMS   int64     `json:"duration_ms"`
		Error        *struct{ Kind, Message string }
	}
}

// wait returns a job once it has ended.
func (s *server) wait(id string) job {
	s.t.Helper()
	for {
		var j job
		s.ok("GET", "/v1/jobs/"+id+"?wait=50s", "", &j)
		switch j.State {
		case "succeeded", "dead", "cancelled", "expired":
			return j
		}
		if s.t.Context().Err() != nil {
			s.t.Fatal(context.Cause(s.t.Context()))
		}
	}
}

// running waits until n jobs of a queue run.
func (s *server) running(queue string, n int) {
	s.t.Helper()
	// The API has no signal for counts; this asks until they are right.
	again, deadline := time.NewTicker(5*time.Millisecond), time.After(30*time.Second)
	defer again.Stop()
	for {
		var q struct{ Running int }
		status, answer := s.call(http.MethodGet, "/v1/queues/"+queue, nil, "")
		if status == http.StatusOK { // 404: nothing was enqueued yet
			if err := json.Unmarshal(answer, &q); err != nil {
				s.t.Fatal(err)
			}
		}
		if q.Running >= n {
			return
		}
		select {
		case <-again.C:
		case <-deadline:
			s.t.Fatalf("%d jobs run, want %d", q.Running, n)
		}
	}
}

// client runs a client command against the server.
func (s *server) client(args ...string) (stdout, stderr string, code int) {
	s.t.Helper()
	return runProgram(s.t, []string{"TASKHOST_SERVER=" + s.url}, args...)
}

func runProgram(t testing.TB, env []string, args ...string) (stdout, stderr string, code int) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, binary, args...)
	var out, errs bytes.Buffer
	cmd.Env, cmd.Stdout, cmd.Stderr = append(environment(), env...), &out, &errs
	err := cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	return out.String(), errs.String(), cmd.ProcessState.ExitCode()
}

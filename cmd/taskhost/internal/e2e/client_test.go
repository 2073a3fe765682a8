package e2e

import (
	"bytes"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"
)

// A wait goes on while the server is restarted under it, even by kill -9.
func TestWaitSurvivesARestart(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	config := samplesConfig(t, dir) + "worker: {lease: 2s}\n"
	s := serve(t, dir, config)

	id, stderr, code := s.client("enqueue", "sleep", "--data", `{"ms":1500}`)
	if code != 0 {
		t.Fatal(stderr)
	}
	cmd := exec.Command(binary, "job", "wait", strings.TrimSpace(id))
	var out bytes.Buffer
	said, ended := newLog(), make(chan struct{})
	cmd.Env, cmd.Stdout, cmd.Stderr = append(environment(), "TASKHOST_SERVER="+s.url), &out, said
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		_ = cmd.Wait() // ProcessState tells
		close(ended)
	}()
	t.Cleanup(func() {
		_ = cmd.Process.Kill() // it may be gone
		<-ended
	})
	s.running("default", 1)
	s.kill()
	if said.wait(regexp.MustCompile(`cannot reach .*; still waiting for job_`), ended, 10*time.Second) == nil {
		t.Fatalf("it does not say that the server is away: %s", said)
	}
	startServer(t, "serve", "--config", filepath.Join(dir, "taskhost.yaml"), "--data-dir", filepath.Join(dir, "data"),
		"--listen", strings.TrimPrefix(s.url, "http://"))
	select {
	case <-ended:
	case <-time.After(30 * time.Second):
		t.Fatalf("still waiting: %s", said)
	}
	if code := cmd.ProcessState.ExitCode(); code != 0 || out.String() != `{"slept_ms":1500}` {
		t.Errorf("exit code %d, stdout %q, stderr %s", code, out.String(), said)
	}
}

// What is printed for pasting matches how the program was started.
func TestPrintedCommandsMatchTheStart(t *testing.T) {
	t.Parallel()
	run := exec.Command("go", "run", "./cmd/taskhost", "nope")
	run.Dir, run.Env = "../../../..", append(environment(), "CGO_ENABLED=0")
	out, err := run.CombinedOutput()
	if err == nil || !strings.Contains(string(out), "see: go run ./cmd/taskhost --help") {
		t.Errorf("go run: %v: %s", err, out)
	}
	if _, errs, code := runProgram(t, nil, "nope"); code != 2 || !strings.Contains(errs, "see: "+binary+" --help") {
		t.Errorf("by path: exit code %d: %s", code, errs)
	}
}

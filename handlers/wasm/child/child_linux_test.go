package child_test

import (
	"errors"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"go.uber.org/goleak"

	"github.com/taskhost/taskhost/handlers/wasm/child"
)

const role = "TASKHOST_TEST_ROLE"

func TestMain(m *testing.M) {
	if os.Getenv(role) == "" {
		goleak.VerifyTestMain(m)
		return
	}
	// A child: closes what it inherited, says whether descriptor 3 is still there, and waits for its end.
	if err := child.CloseInherited(); err != nil {
		os.Stdout.WriteString(err.Error() + "\n")
	}
	_, err := os.NewFile(3, "inherited").Stat()
	os.Stdout.WriteString("descriptor 3 open: " + strconv.FormatBool(err == nil) + "\n")
	_, _ = io.Copy(io.Discard, os.Stdin)
}

func TestSpawner(t *testing.T) {
	s := child.NewSpawner()
	defer s.Close()
	inherited, err := os.Open(os.DevNull)
	if err != nil {
		t.Fatal(err)
	}
	defer inherited.Close()
	cmd := exec.Command(os.Args[0])
	cmd.Env = []string{role + "=child"}
	cmd.ExtraFiles = []*os.File{inherited}
	stdin, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Start(cmd); err != nil {
		t.Fatal(err)
	}
	line := make([]byte, 64)
	n, err := stdout.Read(line)
	if got := strings.TrimSpace(string(line[:n])); err != nil || got != "descriptor 3 open: false" {
		t.Errorf("%q, %v", got, err)
	}
	if pgid, err := syscall.Getpgid(cmd.Process.Pid); err != nil || pgid != cmd.Process.Pid {
		t.Errorf("process group %d of process %d, %v", pgid, cmd.Process.Pid, err)
	}
	if err := errors.Join(stdin.Close(), cmd.Wait()); err != nil {
		t.Error(err)
	}
}

func TestStartTellsTheError(t *testing.T) {
	s := child.NewSpawner()
	defer s.Close()
	if err := s.Start(exec.Command("/nonexistent/program")); err == nil {
		t.Error("no error")
	}
}

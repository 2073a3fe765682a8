package pool

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"text/tabwriter"

	"github.com/taskhost/taskhost/handlers/wasm/child"
	"github.com/taskhost/taskhost/handlers/wasm/lockdown"
	childside "github.com/taskhost/taskhost/handlers/wasm/runner"
)

// refusals are the errors with which the lock-down answers: the filter, Landlock, and the filter for what a C library can do without.
var refusals = map[string]bool{"EPERM": true, "EACCES": true, "ENOSYS": true}

// readsFiles are what only Landlock refuses.
var readsFiles = map[string]bool{"read a file of another folder": true, "read /etc/passwd": true, "list the root folder": true, "read its own environment": true,
	"read a device": true, "its file of memory": true, "its environment": true}

// A program in the place of a runner, started and locked down as one, is refused everything: at the level this machine reaches, and without
// namespaces.
func TestEscape(t *testing.T) {
	t.Parallel()
	program := filepath.Join(t.TempDir(), "escape")
	build := exec.Command("go", "build", "-o", program, "./testdata/escape")
	build.Env = append(os.Environ(), "CGO_ENABLED=0", "GOFLAGS=")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	s := child.NewSpawner()
	t.Cleanup(s.Close)
	best, report, err := lockdown.Probe(t.Context(), s, []string{program}, lockdown.Off)
	if err != nil {
		t.Fatal(err)
	}
	plans := map[string]lockdown.Plan{report.Level: best}
	if best.Namespaces && report.Reached() == lockdown.Strict {
		plans[lockdown.Standard.String()] = lockdown.Plan{Apply: true}
	}
	for level, plan := range plans {
		t.Run(level, func(t *testing.T) { escape(t, s, program, level, plan) })
	}
}

func escape(t *testing.T, s *child.Spawner, program, level string, plan lockdown.Plan) {
	victim := exec.Command("/proc/self/exe", victimCommand)
	stdin, err := victim.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := victim.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() {
		stdin.Close()
		if err := victim.Wait(); err != nil {
			t.Errorf("the victim: %v", err)
		}
	}()
	outside, artifacts := t.TempDir(), t.TempDir()
	secret := filepath.Join(outside, "secret")
	for _, file := range []string{secret, filepath.Join(artifacts, "file")} {
		if err := os.WriteFile(file, []byte("secret"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	config := childside.Config{Slots: 4, MemoryPerSlot: 64 << 20, Modules: 4, Artifacts: artifacts, Lockdown: plan}
	command := append([]string{program, fmt.Sprint(victim.Process.Pid), secret, outside, artifacts}, config.Args()...)
	var stderr bytes.Buffer
	p, err := startProcess(s, plan.Namespaces, command, &stderr)
	if err != nil {
		t.Fatal(err)
	}
	if err := p.cmd.Wait(); err != nil {
		t.Fatalf("%v: %s", err, stderr.String())
	}
	if err := p.conn.Close(); err != nil {
		t.Error(err)
	}
	judgeEscape(t, level, stderr.String())
	if content, err := os.ReadFile(secret); err != nil || string(content) != "secret" {
		t.Errorf("the file is %q, %v", content, err)
	}
	if entries, err := os.ReadDir(outside); err != nil || len(entries) != 1 {
		t.Errorf("the folder has %v, %v", entries, err)
	}
}

func judgeEscape(t *testing.T, level, out string) {
	lines := strings.Split(strings.TrimSpace(out), "\n")
	if want := "level " + level; lines[0] != want {
		t.Errorf("%q, want %q", lines[0], want)
	}
	if want := "environment [], descriptors [0 1 2]"; lines[1] != want {
		t.Errorf("%q, want %q", lines[1], want)
	}
	var table strings.Builder
	w := tabwriter.NewWriter(&table, 0, 0, 2, ' ', 0)
	tried := 0
	for _, line := range lines[2:] {
		f := strings.Split(line, "\t")
		if len(f) != 4 {
			t.Errorf("not understood: %q", line)
			continue
		}
		tried++
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\n", f[0], f[1], f[2], f[3])
		switch {
		case level == lockdown.Basic.String() && readsFiles[f[2]]: // the level does not promise that
		case f[0] == "denied" && !refusals[f[3]]:
			t.Errorf("%s: %s was not refused: %s", f[1], f[2], f[3])
		case f[0] == "allowed" && f[3] != "ok":
			t.Errorf("%s: %s does not work: %s", f[1], f[2], f[3])
		}
	}
	if err := w.Flush(); err != nil {
		t.Fatal(err)
	}
	t.Logf("level %s, %d attempts\n%s", level, tried, table.String())
	if tried < 90 {
		t.Errorf("%d attempts; the probe ended early", tried)
	}
}

package lockdown_test

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/taskhost/taskhost/handlers/wasm/lockdown"
)

// machine is the program of testdata/machine, built as taskhost is shipped: without cgo.
var machine string

func TestMain(m *testing.M) {
	dir, err := os.MkdirTemp("", "taskhost-lockdown-")
	if err != nil {
		panic(err)
	}
	if err := os.Chmod(dir, 0o755); err != nil { // another user runs it as well
		panic(err)
	}
	machine = filepath.Join(dir, "machine")
	build := exec.Command("go", "build", "-o", machine, "./testdata/machine")
	build.Env = append(os.Environ(), "CGO_ENABLED=0", "GOFLAGS=")
	if out, err := build.CombinedOutput(); err != nil {
		panic(string(out))
	}
	goleak.VerifyTestMain(m, goleak.Cleanup(func(code int) {
		os.RemoveAll(dir)
		os.Exit(code)
	}))
}

type answer struct {
	Plan   lockdown.Plan
	Report lockdown.Report
	Error  string
}

// ask asks a machine that lacks something how far children can be locked down.
func ask(t *testing.T, lacks, least string) answer {
	t.Helper()
	args := []string{"ask", least}
	if lacks != "" {
		args = append([]string{"deny", lacks}, args...)
	}
	cmd := exec.Command(machine, args...)
	cmd.Stderr = t.Output()
	out, err := cmd.Output()
	var a answer
	if err := json.Unmarshal(out, &a); err != nil {
		t.Fatalf("%v: %q", err, out)
	}
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// What a machine or container lacks costs the layers that need it, and no others; the report says what is missing and what to change.
func TestLevels(t *testing.T) {
	t.Parallel()
	here := ask(t, "", "off")
	t.Logf("this machine: %s; missing for strict: %s", here.Report.Level, here.Report.Missing(lockdown.Strict))
	for _, c := range []struct {
		name, lacks, most string
		missing           []string
	}{
		{"everything", "", "strict", nil},
		{"no namespaces", "namespaces", "standard", []string{"namespaces: ", "operation not permitted", "user.max_user_namespaces"}},
		{"restricted pod", "user,namespaces", "standard", []string{"namespaces: "}},
		{"another user", "user", "strict", nil},
		{"landlock not enabled", "landlock-off", "basic", []string{"landlock: ", "operation not supported", "boot parameter lsm="}},
		{"old kernel", "landlock-old,namespaces", "basic", []string{"landlock: ", "Linux 5.13", "namespaces: "}},
		{"no seccomp", "seccomp", "off", []string{"seccomp: the kernel has none"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			most, err := lockdown.ParseLevel(c.most)
			if err != nil {
				t.Fatal(err)
			}
			want := min(most, here.Report.Reached())
			a := ask(t, c.lacks, "off")
			if a.Error != "" || a.Report.Reached() != want {
				t.Errorf("level %s, want %s: %s %s", a.Report.Level, want, a.Error, a.Report.Missing(lockdown.Strict))
			}
			missing := a.Report.Missing(lockdown.Strict)
			for _, text := range c.missing {
				if !strings.Contains(missing, text) {
					t.Errorf("%q does not say %q", missing, text)
				}
			}
			if want == lockdown.Strict && (missing != "" || !a.Plan.Namespaces) {
				t.Errorf("missing %q, plan %+v", missing, a.Plan)
			}
			// One level more is refused, and the refusal says why.
			if want < lockdown.Strict {
				more := ask(t, c.lacks, (want + 1).String())
				if !strings.Contains(more.Error, "sandbox level "+(want+1).String()+" is required, this machine reaches "+want.String()+": ") {
					t.Errorf("error %q", more.Error)
				}
			}
		})
	}
}

func TestParseLevel(t *testing.T) {
	t.Parallel()
	for l := lockdown.Off; l <= lockdown.Strict; l++ {
		if got, err := lockdown.ParseLevel(l.String()); err != nil || got != l {
			t.Errorf("%s: %v, %v", l, got, err)
		}
	}
	if _, err := lockdown.ParseLevel("high"); err == nil || !strings.Contains(err.Error(), "off, basic, standard, strict") {
		t.Error(err)
	}
}

// A plan survives its way through the arguments of a child.
func TestPlanArgs(t *testing.T) {
	t.Parallel()
	for _, want := range []lockdown.Plan{{}, {Apply: true}, {Apply: true, Least: lockdown.Standard},
		{Apply: true, Least: lockdown.Strict, Namespaces: true, Outside: "net=1,user=2"}} {
		var got lockdown.Plan
		for _, arg := range want.Args() {
			name, value, _ := strings.Cut(strings.TrimPrefix(arg, "--"), "=")
			if err := got.Flag(name, value); err != nil {
				t.Error(err)
			}
		}
		if got != want {
			t.Errorf("%+v, want %+v", got, want)
		}
	}
	var p lockdown.Plan
	if p.Flag("lockdown", "x") == nil || p.Flag("other", "x") == nil {
		t.Error("no error")
	}
}

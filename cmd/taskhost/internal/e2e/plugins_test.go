package e2e

import (
	"encoding/base64"
	"fmt"
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

// scripted is the plugin of sdk/go/plugin/internal/scripted, which does what its payload says; built when it is first asked for.
var scripted = sync.OnceValues(func() (string, error) {
	path := filepath.Join(filepath.Dir(binary), "scripted")
	build := exec.Command("go", "build", "-o", path, "./internal/scripted")
	build.Dir = "../../../../sdk/go/plugin"
	build.Env = append(os.Environ(), "CGO_ENABLED=0", "GOFLAGS=")
	if out, err := build.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build the scripted plugin: %w\n%s", err, out)
	}
	return path, nil
})

func scriptedPlugin(t *testing.T) string {
	t.Helper()
	path, err := scripted()
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// scriptedJob is a job for the scripted plugin.
func scriptedJob(typ, payload string) string {
	return fmt.Sprintf(`{"type":%q,"payload_base64":%q}`, typ, base64.StdEncoding.EncodeToString([]byte(payload)))
}

// A plugin that panics on job 50 of 100, with 8 in flight: the other 99 succeed, and job 50 is dead once its crash budget is spent.
func TestCase105OneJobThatCrashesItsPlugin(t *testing.T) {
	t.Parallel()
	s := serve(t, t.TempDir(), fmt.Sprintf("plugins:\n  - {types: [scripted], command: %s, concurrency: 8}\nworker: {concurrency: 8}\nwasm: {runners: 1, slots: 1}\n", scriptedPlugin(t)))
	var jobs []string
	for i := 1; i <= 100; i++ {
		payload := "sleep 10\n"
		if i == 50 {
			payload = "crash\n"
		}
		jobs = append(jobs, scriptedJob("scripted", payload))
	}
	var out struct {
		Outcomes []struct{ ID, Outcome string }
	}
	s.ok("POST", "/v1/jobs", `{"jobs":[`+strings.Join(jobs, ",")+`]}`, &out)
	neighbours := 0
	for i, o := range out.Outcomes {
		j := s.wait(o.ID)
		if i+1 != 50 {
			if j.State != "succeeded" || j.Attempt != 1 {
				t.Errorf("job %d is %s after %d attempts and %d crashes: %+v", i+1, j.State, j.Attempt, j.Crashes, j.LastError)
			}
			if j.Crashes > 0 {
				neighbours++
			}
			if j.Crashes > 1 {
				t.Errorf("job %d was in %d crashes, although whoever was in one runs alone", i+1, j.Crashes)
			}
			continue
		}
		if j.State != "dead" || j.Crashes != 3 || j.LastError == nil || j.LastError.Kind != "crash" || !strings.Contains(j.LastError.Message, "panic: boom at "+j.ID) {
			t.Errorf("job 50 is %s after %d crashes: %+v", j.State, j.Crashes, j.LastError)
		}
	}
	t.Logf("99 jobs succeeded, %d of them after a crash that was not theirs", neighbours)
	if neighbours > 7 {
		t.Errorf("%d neighbours were in a crash, at most 7 were in flight beside it", neighbours)
	}
	var dead struct {
		Jobs []struct{ ID string }
	}
	s.ok("GET", "/v1/dlq", "", &dead)
	if len(dead.Jobs) != 1 || dead.Jobs[0].ID != out.Outcomes[49].ID {
		t.Errorf("the dead-letter queue has %+v", dead.Jobs)
	}
}

// kill -9 of the server while five plugins are busy: none of their processes is left, and the next server has one set.
func TestCase106NoPluginOutlivesTheServer(t *testing.T) {
	t.Parallel()
	dir, config := t.TempDir(), "worker: {lease: 2s}\nwasm: {runners: 1, slots: 1}\nplugins:\n"
	for i := range 5 {
		config += fmt.Sprintf("  - {types: [scripted.%d], command: %s}\n", i, scriptedPlugin(t))
	}
	s := serve(t, dir, config)
	for i := range 5 {
		s.enqueue(1, scriptedJob(fmt.Sprintf("scripted.%d", i), "hang 3600000\n"))
	}
	s.running("default", 5)
	children := childrenOf(t, s.cmd.Process.Pid)
	if len(children) < 6 {
		t.Errorf("the server has %d child processes, want 5 plugins and a runner", len(children))
	}
	s.kill()
	waitGone(t, children, 5*time.Second)
	s = serve(t, dir, config)
	s.running("default", 5)
	if n := len(childrenOf(t, s.cmd.Process.Pid)); n > 12 { // one may be alone beside each
		t.Errorf("after the restart there are %d child processes", n)
	}
}

// A plugin that does not start is shown and keeps nobody else; SIGHUP replaces plugins while their jobs finish, and refuses what does not start.
func TestPluginsAreReplacedWhileTheServerRuns(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	config := func(region, second string) string {
		return fmt.Sprintf("wasm: {runners: 1, slots: 1}\nplugins:\n  - {types: [scripted], command: %s, config: {REGION: %s}}\n%s", scriptedPlugin(t), region, second)
	}
	s := serve(t, dir, config("north", "  - {types: [broken], command: /bin/false}\n"))
	health := func() (h struct{ Degraded []string }) {
		s.ok("GET", "/readyz", "", &h)
		return h
	}
	awaitTrue(t, "the broken plugin is in the health", func() bool {
		h := health()
		return len(h.Degraded) == 1 && strings.Contains(h.Degraded[0], "plugins: false: crash loop")
	})
	var list struct {
		Handlers []struct {
			Type, Kind string
			HostWide   bool `json:"host_wide"`
			Version    int
		}
	}
	s.ok("GET", "/v1/handlers", "", &list)
	if len(list.Handlers) != 2 || list.Handlers[1].Type != "scripted" || list.Handlers[1].Kind != "native" || !list.Handlers[1].HostWide {
		t.Errorf("handlers %+v", list.Handlers)
	}
	region := func() string {
		id := s.enqueue(1, scriptedJob("scripted", "metadata\n"))[0]
		s.wait(id)
		_, answer := s.call("GET", "/v1/jobs/"+id+"/result", nil, "")
		return string(answer[strings.LastIndex(string(answer), " ")+1:])
	}
	if got := region(); got != "north" {
		t.Errorf("region %q", got)
	}
	old := s.enqueue(1, scriptedJob("scripted", "sleep 3000\n"))[0]
	s.running("default", 1)

	write := func(text string) {
		if err := os.WriteFile(filepath.Join(dir, "taskhost.yaml"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		s.signal(syscall.SIGHUP)
	}
	write(config("south", ""))
	if s.log.wait(regexp.MustCompile(`plugins reloaded`), s.ended, time.Minute) == nil {
		t.Fatal("not reloaded")
	}
	if got := region(); got != "south" {
		t.Errorf("region %q after the replacement", got)
	}
	if j := s.wait(old); j.State != "succeeded" || j.Attempt != 1 || j.Interruptions != 0 {
		t.Errorf("the job in the old process: %+v", j)
	}
	awaitTrue(t, "nothing is degraded", func() bool { return len(health().Degraded) == 0 })

	write(config("west", "  - {types: [broken], command: /bin/false}\n"))
	if s.log.wait(regexp.MustCompile(`plugins not replaced`), s.ended, time.Minute) == nil {
		t.Fatal("a plugin that does not start was taken")
	}
	if got := region(); got != "south" {
		t.Errorf("region %q after a replacement that failed", got)
	}
	s.signal(os.Interrupt)
	if code, _ := s.waitExit(20 * time.Second); code != 0 {
		t.Errorf("exit code %d", code)
	}
}

// awaitTrue asks until a condition holds; the API has no events for it.
func awaitTrue(t *testing.T, what string, holds func() bool) {
	t.Helper()
	again, limit := time.NewTicker(50*time.Millisecond), time.After(time.Minute)
	defer again.Stop()
	for !holds() {
		select {
		case <-again.C:
		case <-limit:
			t.Fatalf("not within a minute: %s", what)
		}
	}
}

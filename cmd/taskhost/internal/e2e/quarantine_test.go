package e2e

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/taskhost/taskhost/handlers/wasm/wasmtest"
)

// killRunners aborts every runner of the server, as a fault in one would.
func killRunners(t *testing.T, s *server) {
	t.Helper()
	for _, pid := range childrenOf(t, s.cmd.Process.Pid) {
		line, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
		if err != nil || !bytes.Contains(line, []byte("\x00runner\x00")) {
			continue // gone, or something else
		}
		if err := syscall.Kill(pid, syscall.SIGABRT); err != nil && !errors.Is(err, syscall.ESRCH) {
			t.Fatal(err)
		}
	}
}

// Runners die under the jobs of one version again and again: it is quarantined, says so wherever one looks, keeps no other version from
// its jobs, and serves again once it is activated.
func TestAVersionWhoseRunnersDieIsQuarantined(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := serve(t, dir, samplesConfig(t, dir)+"wasm: {runners: 2, slots: 4}\n")
	s.push("bad", wasmtest.LoopReactor())
	ids := s.enqueue(6, `{"type":"bad","payload":null,"timeout":"10m"}`)
	quarantined := regexp.MustCompile(`handler version quarantined[^\n]*`)
	for n := 0; quarantined.FindString(s.log.String()) == ""; n++ {
		if n == 100 {
			t.Fatal("not quarantined after 100 rounds of deaths")
		}
		s.running("default", 1)
		killRunners(t, s)
	}
	t.Log(quarantined.FindString(s.log.String()))
	for _, id := range ids { // what was under way when it began would go on
		s.call("POST", "/v1/jobs/"+id+"/cancel", nil, "")
	}

	late := s.enqueue(1, `{"type":"bad","payload":null,"timeout":"200ms","max_attempts":1}`)[0]
	var j struct {
		State     string
		Attempts  []struct{ Outcome string }
		WaitingOn []struct{ Code string } `json:"waiting_on"`
	}
	awaitTrue(t, "the job is put off", func() bool {
		s.ok("GET", "/v1/jobs/"+late, "", &j)
		return j.State == "scheduled"
	})
	if len(j.WaitingOn) != 1 || j.WaitingOn[0].Code != "quarantined" {
		t.Errorf("the job waits on %+v", j.WaitingOn)
	}
	if out, errs, code := s.client("job", "why", late); code != 0 || !strings.Contains(out, "the version that serves bad is quarantined") {
		t.Errorf("job why: %s%s", out, errs)
	}
	if out, errs, code := s.client("handler", "list"); code != 0 || !regexp.MustCompile(`(?m)^bad +v1 +quarantined `).MatchString(out) {
		t.Errorf("handler list: %s%s", out, errs)
	}
	var health struct{ Degraded []string }
	awaitTrue(t, "readiness tells of it", func() bool {
		s.ok("GET", "/readyz", "", &health)
		return strings.Contains(strings.Join(health.Degraded, ";"), "bad version 1")
	})
	if beside := s.wait(s.enqueue(1, `{"type":"sleep","payload":{"ms":1}}`)[0]); beside.State != "succeeded" || beside.Crashes != 0 {
		t.Errorf("a job of another version is %s", beside.State)
	}

	if out, errs, code := s.client("handler", "activate", "bad", "1"); code != 0 {
		t.Fatalf("handler activate: %s%s", out, errs)
	}
	began := time.Now()
	ran := s.wait(late)
	t.Logf("the job ran %s after the quarantine was lifted", time.Since(began).Round(time.Millisecond))
	if ran.State != "dead" || ran.Attempt != 1 || ran.LastError == nil || ran.LastError.Kind != "deadline" {
		t.Errorf("after the quarantine the job is %s: %+v; want it to end at its deadline", ran.State, ran.LastError)
	}
	s.ok("GET", "/v1/jobs/"+late, "", &j)
	if out, errs, _ := s.client("handler", "list"); !regexp.MustCompile(`(?m)^bad +v1 +live `).MatchString(out) {
		t.Errorf("handler list: %s%s", out, errs)
	}
}

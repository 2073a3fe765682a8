package e2e

import (
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"syscall"
	"testing"
	"time"
)

const twentySlots = "wasm: {runners: 2, slots: 10}\n"

// lookOnly is a configuration under which nothing runs, to look at a store.
const lookOnly = "roles: [api]\n"

// A drain that is long enough: everything that runs finishes, nothing runs again, exit code 0; readiness is false meanwhile.
func TestCase116DrainFinishesRunningJobs(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := serve(t, dir, samplesConfig(t, dir)+twentySlots+"worker: {concurrency: 20, drain: 20s}\n")
	ids := s.enqueue(20, `{"type":"sleep","payload":{"ms":3000}}`)
	waiting := s.enqueue(5, `{"type":"sleep","payload":{"ms":3000}}`)
	s.running("default", 20)
	s.signal(syscall.SIGTERM)
	if s.log.wait(regexp.MustCompile(`"msg":"draining"`), s.ended, 5*time.Second) == nil {
		t.Fatal("no word about the drain")
	}
	if status, answer := s.call(http.MethodGet, "/readyz", nil, ""); status != http.StatusServiceUnavailable {
		t.Errorf("readyz answered %d %s during the drain, want 503", status, answer)
	}
	if code, took := s.waitExit(20 * time.Second); code != 0 || took > 15*time.Second {
		t.Errorf("exit code %d after %s, want 0 as soon as the jobs ended", code, took)
	}
	s = serve(t, dir, lookOnly)
	for _, id := range ids {
		var j job
		s.ok("GET", "/v1/jobs/"+id, "", &j)
		if j.State != "succeeded" || j.Attempt != 1 || len(j.Attempts) != 1 {
			t.Errorf("%s is %s after %d attempts, want succeeded after 1", id, j.State, len(j.Attempts))
		}
	}
	for _, id := range waiting {
		var j job
		s.ok("GET", "/v1/jobs/"+id, "", &j)
		if j.State != "ready" || j.Attempt != 0 {
			t.Errorf("%s is %s, attempt %d; want ready, never started", id, j.State, j.Attempt)
		}
	}
}

// A drain that is too short: what still runs goes back at once, no attempt is counted, and the process ends within drain + 1 s.
func TestCase116DrainGivesBackWhatIsTooLong(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := serve(t, dir, samplesConfig(t, dir)+twentySlots+"worker: {concurrency: 20, drain: 2s}\n")
	ids := s.enqueue(20, `{"type":"sleep","payload":{"ms":60000}}`)
	s.running("default", 20)
	s.signal(syscall.SIGTERM)
	if code, took := s.waitExit(30 * time.Second); code != 0 || took > 4*time.Second {
		t.Errorf("exit code %d after %s, want 0 within the drain of 2 s and 1 s more", code, took)
	}
	s = serve(t, dir, lookOnly)
	for _, id := range ids {
		var j job
		s.ok("GET", "/v1/jobs/"+id, "", &j)
		if j.State != "ready" || j.Attempt != 0 || j.Crashes != 0 || j.Interruptions != 1 {
			t.Errorf("%s is %s, attempt %d, crashes %d, interruptions %d; want ready, 0, 0, 1", id, j.State, j.Attempt, j.Crashes, j.Interruptions)
		}
	}
}

// A second signal ends the drain: jobs are given back, the exit code is that of the signal.
func TestCase119SecondSignalForcesExit(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name   string
		signal os.Signal
		code   int
	}{{"SIGINT", syscall.SIGINT, 130}, {"SIGTERM", syscall.SIGTERM, 143}} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			s := serve(t, dir, samplesConfig(t, dir)+"worker: {drain: 60s}\n")
			id := s.enqueue(1, `{"type":"sleep","payload":{"ms":60000}}`)[0]
			s.running("default", 1)
			s.signal(c.signal)
			if s.log.wait(regexp.MustCompile(`"msg":"draining"`), s.ended, 5*time.Second) == nil {
				t.Fatal("no word about the drain")
			}
			s.signal(c.signal)
			if code, took := s.waitExit(30 * time.Second); code != c.code || took > 4*time.Second {
				t.Errorf("exit code %d after %s, want %d at once", code, took, c.code)
			}
			s = serve(t, dir, lookOnly)
			var j job
			s.ok("GET", "/v1/jobs/"+id, "", &j)
			if j.State != "ready" || j.Attempt != 0 || j.Crashes != 0 {
				t.Errorf("%s is %s, attempt %d, crashes %d; want ready, 0, 0", id, j.State, j.Attempt, j.Crashes)
			}
		})
	}
}

// A signal while the parts are being opened is obeyed.
func TestCase119SignalDuringStart(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file := filepath.Join(dir, "c.yaml")
	if err := os.WriteFile(file, []byte(samplesConfig(t, dir)), 0o600); err != nil {
		t.Fatal(err)
	}
	for range 5 { // wherever in the start it arrives
		s := launch(t, "serve", "--config", file, "--data-dir", filepath.Join(dir, "data"), "--listen", "127.0.0.1:0")
		if s.log.wait(regexp.MustCompile(`"msg":"starting"`), s.ended, 10*time.Second) == nil {
			t.Fatalf("not started:\n%s", s.log)
		}
		s.signal(syscall.SIGTERM)
		if code, took := s.waitExit(10 * time.Second); code != 0 || took > 3*time.Second {
			t.Errorf("exit code %d after %s, want 0 within 2 s:\n%s", code, took, s.log)
		}
	}
}

// A lost terminal is no reason to die.
func TestCase119HangupIsNotDeath(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := serve(t, dir, samplesConfig(t, dir))
	s.signal(syscall.SIGHUP)
	if j := s.wait(s.enqueue(1, `{"type":"hello","payload":{}}`)[0]); j.State != "succeeded" {
		t.Errorf("the job is %s", j.State)
	}
}

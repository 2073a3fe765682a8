package e2e

import (
	"bytes"
	"fmt"
	"os"
	"syscall"
	"testing"
	"time"

	"github.com/taskhost/taskhost/handlers/wasm/wasmtest"
)

// One of two busy runners is killed: its jobs, and no others, are started again at once. The goal is a second; the test allows five.
func TestOnlyTheJobsOfAKilledRunnerRunAgain(t *testing.T) {
	t.Parallel()
	s := serve(t, t.TempDir(), "wasm: {runners: 2, slots: 2}\n")
	s.push("loop", wasmtest.LoopReactor())
	ids := s.enqueue(4, `{"type":"loop","payload":null,"timeout":"10m"}`)
	s.running("default", 4)
	var runners []int
	for _, pid := range childrenOf(t, s.cmd.Process.Pid) {
		if line, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid)); err == nil && bytes.Contains(line, []byte("\x00runner\x00")) {
			runners = append(runners, pid)
		}
	}
	if len(runners) != 2 {
		t.Fatalf("%d runners, want 2", len(runners))
	}
	killed := time.Now()
	if err := syscall.Kill(runners[0], syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	jobs := map[string]job{}
	awaitTrue(t, "the jobs of the killed runner run again", func() bool {
		again := 0
		for _, id := range ids {
			var j job
			s.ok("GET", "/v1/jobs/"+id, "", &j)
			jobs[id] = j
			if j.Crashes > 0 && j.State == "running" {
				again++
			}
		}
		return again >= 2
	})
	again := 0
	for id, j := range jobs {
		if j.Crashes == 0 {
			if len(j.Attempts) > 0 || j.Interruptions > 0 || j.State != "running" || j.StartedAt.After(killed) {
				t.Errorf("%s was in the other runner and is disturbed: %+v", id, j)
			}
			continue
		}
		again++
		after := j.StartedAt.Sub(killed)
		t.Logf("%s was started again %s after the kill", id, after.Round(time.Millisecond))
		if after > 5*time.Second {
			t.Errorf("%s was started again only %s after the kill", id, after)
		}
	}
	if again != 2 {
		t.Errorf("%d jobs run again, want the 2 of the killed runner", again)
	}
	for _, id := range ids {
		s.call("POST", "/v1/jobs/"+id+"/cancel", nil, "")
	}
}

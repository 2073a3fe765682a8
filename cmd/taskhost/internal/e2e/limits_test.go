package e2e

import (
	"encoding/json"
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/taskhost/taskhost/handlers/wasm/wasmtest"
)

// A guest that loops is ended at its deadline, retried, and is dead with every attempt; the jobs beside it finish; replay works.
func TestLoopingGuestEndsAtItsDeadline(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := serve(t, dir, samplesConfig(t, dir)+"wasm: {runners: 2, slots: 8}\n")
	s.push("loop", wasmtest.LoopReactor())
	loop := s.enqueue(1, `{"type":"loop","payload":null,"timeout":"1s","max_attempts":2,"backoff":{"base":"100ms"}}`)[0]
	beside := s.enqueue(20, `{"type":"sleep","payload":{"ms":700}}`)

	j := s.wait(loop)
	if j.State != "dead" || j.Attempt != 2 || len(j.Attempts) != 2 {
		t.Fatalf("%s is %s after %d attempts, %d recorded; want dead after 2", loop, j.State, j.Attempt, len(j.Attempts))
	}
	for _, a := range j.Attempts {
		if a.Outcome != "failed" || a.Error == nil || a.Error.Kind != "deadline" {
			t.Errorf("attempt %d %s: %+v, want failed with kind deadline", a.Attempt, a.Outcome, a.Error)
		}
		took := time.Duration(a.DurationMS) * time.Millisecond
		t.Logf("attempt %d of the loop ended after %s", a.Attempt, took)
		if took < 900*time.Millisecond || took > 2500*time.Millisecond { // 1.25 s, and what a busy machine adds
			t.Errorf("attempt %d took %s, want its deadline of 1 s and the 250 ms to the kill", a.Attempt, took)
		}
	}
	for _, id := range beside {
		if b := s.wait(id); b.State != "succeeded" || b.Attempt != 1 {
			t.Errorf("%s beside it is %s after %d attempts", id, b.State, b.Attempt)
		}
	}

	out, errs, code := s.client("dlq", "replay", "--type", "loop", "-o", "json")
	var op struct {
		State         string
		Matched, Done int
	}
	if err := json.Unmarshal([]byte(out), &op); code != 0 || err != nil || op.State != "succeeded" || op.Matched != 1 || op.Done != 1 {
		t.Fatalf("dlq replay: exit code %d, %v: %s%s", code, err, out, errs)
	}
	if j := s.wait(loop); j.State != "dead" || j.Run != 2 || len(j.Attempts) != 4 {
		t.Errorf("after the replay: %s, run %d, %d attempts recorded; want dead, 2, 4", j.State, j.Run, len(j.Attempts))
	}
}

// Uploads that would blow up a decoder are refused with a clear reason, and the supervisor feels nothing.
func TestDecodeBombsAreRefused(t *testing.T) {
	t.Parallel()
	s := serve(t, t.TempDir(), "")
	header := "\x00asm\x01\x00\x00\x00"
	good := wasmtest.EchoReactor()
	bombs := map[string]string{
		"import count (15 bytes)": header + "\x02\x05\xff\xff\xff\xff\x0f",
		"locals": header + "\x01\x04\x01\x60\x00\x00" + "\x03\x02\x01\x00" + "\x0a\x0f\x01\x0d\x02" +
			"\xff\xff\xff\xff\x0f\x7f" + "\x01\x7f" + "\x0b\x00\x00",
		"truncated":            string(good[:len(good)-3]),
		"component":            "\x00asm\x0d\x00\x01\x00",
		"text":                 "(module)",
		"empty module":         header,
		"import count, padded": header + "\x02\x05\xfe\xff\xff\xff\x07" + strings.Repeat("\x00", 100),
	}
	before := rss(t, s.cmd.Process.Pid)
	for range 3 {
		for name, module := range bombs {
			status, answer := s.call("POST", "/v1/handlers/bomb/versions", []byte(module), "application/wasm")
			var p struct{ Code, Detail string }
			if err := json.Unmarshal(answer, &p); status != 422 || err != nil || p.Code != "module_refused" || len(p.Detail) < 10 {
				t.Errorf("%s: %d %s, want 422 module_refused with a reason", name, status, answer)
			}
			if name == "component" && !strings.Contains(p.Detail, "build a core module") {
				t.Errorf("component: %s", p.Detail)
			}
		}
	}
	after := rss(t, s.cmd.Process.Pid)
	t.Logf("the supervisor's resident memory: %d KiB before, %d KiB after", before>>10, after>>10)
	if after-before > 32<<20 {
		t.Errorf("the server grew from %d to %d MiB", before>>20, after>>20)
	}
	s.push("echo", good)
	if j := s.wait(s.enqueue(1, `{"type":"echo","payload":1}`)[0]); j.State != "succeeded" {
		t.Errorf("a good module afterwards: %s %+v", j.State, j.LastError)
	}
}

// rss reads the resident memory of a process.
func rss(t *testing.T, pid int) int64 {
	t.Helper()
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(data)) {
		if f := strings.Fields(line); len(f) > 1 && f[0] == "VmRSS:" {
			kib, err := strconv.ParseInt(f[1], 10, 64)
			if err != nil {
				t.Fatal(err)
			}
			return kib << 10
		}
	}
	t.Fatal("no VmRSS")
	return 0
}

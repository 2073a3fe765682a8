package e2e

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// writeFile writes a file of a test and returns its path.
func writeFile(t *testing.T, name, text string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

func TestCase009ConfigCheckNamesBadWeights(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"1000000000": "queues.low.weight: must be between 0.001 and 10000", `"3"`: "queues.low.weight: must be a number, written without quotes",
		"0": "queues.low.weight: must be > 0, got 0", "-1": "queues.low.weight: must be > 0, got -1", ".inf": "queues.low.weight: must be between",
		"null": "queues.low.weight: must be a number; got null",
	} {
		_, errs, code := runProgram(t, nil, "config", "check", writeFile(t, "c.yaml", "queues:\n  low: {weight: "+text+"}\n"))
		if code != 2 || !strings.Contains(errs, "c.yaml:2: "+want) {
			t.Errorf("weight %s: exit code %d: %s", text, code, errs)
		}
	}
	if out, errs, code := runProgram(t, nil, "config", "check", writeFile(t, "c.yaml", "queues: {low: {weight: 1.5}}")); code != 0 || !strings.HasPrefix(out, "ok\n") {
		t.Errorf("weight 1.5: exit code %d: %s%s", code, out, errs)
	}
}

func TestCase010TyposStopCheckAndServe(t *testing.T) {
	t.Parallel()
	file := writeFile(t, "c.yaml", "qeues: {}\nqueues: {a: {}}\nqueues: {b: {}}\ndefaults: {max_atempts: 3}\n")
	for _, args := range [][]string{{"config", "check", file}, {"serve", "--config", file, "--data-dir", t.TempDir()}} {
		_, errs, code := runProgram(t, nil, args...)
		for _, want := range []string{
			"c.yaml:1: qeues: unknown key; did you mean queues?", "c.yaml:3: queues: duplicate key",
			"c.yaml:4: defaults.max_atempts: unknown key; did you mean max_attempts?",
		} {
			if code != 2 || !strings.Contains(errs, want) {
				t.Errorf("%s: exit code %d, want 2 and %q:\n%s", args[0], code, want, errs)
			}
		}
	}
}

// The empty queue name is refused in the configuration, in the API and in a CLI flag, in the same words.
func TestCase013EmptyQueueName(t *testing.T) {
	t.Parallel()
	const words = "must not be empty"
	if _, errs, code := runProgram(t, nil, "config", "check", writeFile(t, "c.yaml", `queues: {"": {weight: 1}}`)); code != 2 || !strings.Contains(errs, words) {
		t.Errorf("config: exit code %d: %s", code, errs)
	}
	s := serve(t, t.TempDir(), "")
	if status, answer := s.call("POST", "/v1/jobs", []byte(`{"type":"a","payload":1,"queue":""}`), ""); status != 400 || !strings.Contains(string(answer), words) {
		t.Errorf("API: %d %s", status, answer)
	}
	for _, args := range [][]string{{"enqueue", "a", "--queue", ""}, {"queue", "pause", ""}} {
		if _, errs, code := s.client(args...); code != 2 || !strings.Contains(errs, words) {
			t.Errorf("%v: exit code %d: %s", args, code, errs)
		}
	}
}

// A payload beyond the limit is refused with both sizes, by the API and the CLI.
func TestCase019OversizedPayload(t *testing.T) {
	t.Parallel()
	s := serve(t, t.TempDir(), "defaults: {payload: 1MiB}\n")
	for _, size := range []int{1<<20 + 1, 64 << 20} {
		file := writeFile(t, "big", strings.Repeat("x", size))
		_, errs, code := s.client("enqueue", "a", "--data", "@"+file)
		if code != 1 || !strings.Contains(errs, "over") {
			t.Errorf("%d bytes: exit code %d: %.300s", size, code, errs)
		}
	}
	if out, errs, code := s.client("enqueue", "a", "--data", "@"+writeFile(t, "fits", strings.Repeat("x", 1<<20))); code != 0 || !strings.HasPrefix(out, "job_") {
		t.Errorf("1 MiB: exit code %d: %s%s", code, out, errs)
	}
}

// What a producer sends arrives byte for byte, through the CLI as well.
func TestCase017ExactBytesThroughTheCLI(t *testing.T) {
	t.Parallel()
	s := serve(t, t.TempDir(), "")
	for name, c := range map[string]struct {
		data string
		args []string
	}{
		"JSON":         {`{"id":9007199254740993,"a":1.0,"b":1e400,  "k":1,"k":2,"h":"<&>"}`, nil},
		"broken JSON":  {`{"id":`, nil},
		"bytes":        {"\xff\xfe\x00", nil},
		"nothing":      {"", nil},
		"JSON, as raw": {" {\"a\": 1}\n", []string{"--raw"}},
	} {
		args := append([]string{"enqueue", "a", "--data", "@" + writeFile(t, "data", c.data)}, c.args...)
		out, errs, code := s.client(args...)
		if code != 0 {
			t.Errorf("%s: exit code %d: %s", name, code, errs)
			continue
		}
		if got, _, _ := s.client("job", "get", strings.TrimSpace(out), "--payload"); got != c.data {
			t.Errorf("%s: got %q, want %q", name, got, c.data)
		}
	}
}

package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/taskhost/taskhost/cmd/taskhost/internal/apiclient"
	"github.com/taskhost/taskhost/config"
	"github.com/taskhost/taskhost/handlers"
)

// run runs a command in this process.
func run(t *testing.T, in string, args ...string) (stdout, stderr string, code int) {
	t.Helper()
	var out, errs bytes.Buffer
	code = Main(t.Context(), &App{Args: args, In: strings.NewReader(in), Out: &out, Err: &errs})
	return out.String(), errs.String(), code
}

func TestExitCodes(t *testing.T) {
	t.Parallel()
	for want, list := range map[int][]error{
		ExitOK:          {nil},
		ExitFailed:      {errors.New("x"), &apiclient.Problem{Status: 422}, &apiclient.Problem{Status: 413}, &apiclient.Problem{Status: 429}, &apiclient.Problem{Status: 500}},
		ExitUsage:       {usagef("x"), &config.Error{Problems: []config.Problem{{Message: "x"}}}, &apiclient.Problem{Status: 400}},
		ExitNotFound:    {&apiclient.Problem{Status: 404}},
		ExitAuth:        {&apiclient.Problem{Status: 401}, &apiclient.Problem{Status: 403}},
		ExitConflict:    {&apiclient.Problem{Status: 409}},
		ExitUnreachable: {&apiclient.UnreachableError{Err: errors.New("x")}, &apiclient.Problem{Status: 503}},
		ExitPartial:     {&errQuiet{ExitPartial}},
		ExitTimeout:     {errWaitTimeout, context.DeadlineExceeded},
		ExitInterrupted: {&interrupted{syscall.SIGINT}},
		ExitTerminated:  {&interrupted{syscall.SIGTERM}},
	} {
		for _, err := range list {
			if got := exitCode(err); got != want {
				t.Errorf("%v: got %d, want %d", err, got, want)
			}
			if err != nil && exitCode(fmt.Errorf("wrapped: %w", err)) != want {
				t.Errorf("%v loses its code when it is wrapped", err)
			}
		}
	}
}

func TestNothingStrayOnStdout(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{
		{"nope"}, {"job", "nope"}, {"enqueue"}, {"version", "x"}, {"job", "list", "-o", "xml"}, {"--nope"},
		{"queue", "list", "--server", "http://127.0.0.1:1"}, {"handler", "push", "a", "missing.wasm"}, {"config", "check", "missing.yaml"},
	} {
		for _, format := range []string{"table", "json"} {
			out, errs, code := run(t, "", append(args, "-o", format)...)
			if out != "" || errs == "" || code == 0 {
				t.Errorf("%v -o %s: exit code %d, stdout %q, stderr %q", args, format, code, out, errs)
			}
			if format == "json" && args[len(args)-1] != "xml" && !strings.HasPrefix(errs, `{"error":{"code":"`) {
				t.Errorf("%v: the error is not JSON: %s", args, errs)
			}
		}
	}
	for _, args := range [][]string{{}, {"--help"}, {"job"}, {"handler", "push", "--help"}, {"completion", "bash"}, {"version"}} {
		if out, errs, code := run(t, "", args...); out == "" || errs != "" || code != 0 {
			t.Errorf("%v: exit code %d, %d bytes on stdout, stderr %q", args, code, len(out), errs)
		}
	}
}

// Every command explains itself, and every flag has a description.
func TestEveryCommandHasHelp(t *testing.T) {
	t.Parallel()
	var walk func(path []string)
	walk = func(path []string) {
		cmd, _, err := (&App{}).root().Find(path)
		if err != nil {
			t.Fatal(err)
		}
		if cmd.Short == "" && !cmd.Hidden {
			t.Errorf("%v has no description", path)
		}
		for _, child := range cmd.Commands() {
			walk(append(append([]string{}, path...), child.Name()))
		}
	}
	walk(nil)
}

func TestPayloadField(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		data string
		raw  bool
		want string
	}{
		{`{"a": 1.0, "a": 1e400}`, false, `"payload":{"a": 1.0, "a": 1e400}`},
		{" 7\n", false, `"payload":7`},
		{"7", true, `"payload_base64":"Nw=="`},
		{"hello", false, `"payload_base64":"aGVsbG8="`},
		{"", false, `"payload_base64":""`},
		{"\"\xff\"", false, `"payload_base64":"Iv8i"`}, // json.Valid lets it pass
		{"1 2", false, `"payload_base64":"MSAy"`},
	} {
		if got := string(payloadField([]byte(c.data), c.raw)); got != c.want {
			t.Errorf("%q raw %v: got %s, want %s", c.data, c.raw, got, c.want)
		}
	}
	if got := string(withPayload([]byte(`{"type":"a"}`), []byte(`"payload":1`))); got != `{"type":"a","payload":1}` {
		t.Error(got)
	}
	if got := string(withPayload([]byte(`{}`), []byte(`"payload":1`))); got != `{"payload":1}` {
		t.Error(got)
	}
}

func TestReadData(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "f")
	if err := os.WriteFile(file, []byte("from file\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	a := &App{In: strings.NewReader("from stdin\n")}
	for arg, want := range map[string]string{"text": "text", "@" + file: "from file\n", "@-": "from stdin\n", "": ""} {
		if got, err := a.readData(arg); err != nil || string(got) != want {
			t.Errorf("%q: got %q, %v", arg, got, err)
		}
	}
	if _, err := a.readData("@" + file + "x"); exitCode(err) != ExitUsage {
		t.Errorf("got %v", err)
	}
}

func TestNearest(t *testing.T) {
	t.Parallel()
	names := []string{"hello", "sleep", "image.resize", "a"}
	for word, want := range map[string]string{"helo": "hello", "image.resise": "image.resize", "xyzzy": "", "b": "", "hell": "hello", "": ""} {
		if got := nearest(word, names); got != want {
			t.Errorf("%q: got %q, want %q", word, got, want)
		}
	}
}

func TestSafeKeepsTheTerminalTame(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"plain ünï 😀": "plain ünï 😀", "\x1b[31m": `\x1b[31m`, "a\nb\tc": `a\x0ab\x09c`, "\u202eevil": `\x202eevil`, "\u009b": `\x9b`,
	} {
		if got := safe(in); got != want {
			t.Errorf("%q: got %q, want %q", in, got, want)
		}
	}
}

func TestYAMLKeepsOrderAndDigits(t *testing.T) {
	t.Parallel()
	got, err := toYAML([]byte(`{"z":9007199254740993,"a":1.0,"e":1e400,"s":"yes","t":"1","n":null,"l":[{"b":true}],"empty":[]}`))
	want := "z: 9007199254740993\na: 1.0\ne: 1e400\ns: \"yes\"\nt: \"1\"\n\"n\": null\nl:\n  - b: true\nempty: []\n"
	if err != nil || string(got) != want {
		t.Errorf("got %q, %v\nwant %q", got, err, want)
	}
}

func TestTimeline(t *testing.T) {
	t.Parallel()
	at := func(ms int) *time.Time {
		v := time.UnixMilli(1_700_000_000_000 + int64(ms))
		return &v
	}
	j := apiclient.Job{ID: "job_1", State: "succeeded", CreatedAt: at(0), StartedAt: at(3), FinishedAt: at(9)}
	if got := timeline(&j); got != "job_1 ready 0 ms → running 3 ms → succeeded 9 ms" {
		t.Error(got)
	}
	j.FinishedAt = at(12_345)
	if got := timeline(&j); got != "job_1 ready 0 ms → running 3 ms → succeeded 12.3 s" {
		t.Error(got)
	}
}

func TestStartedAs(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		exe, typed string
		onPath     bool
		want       string
	}{
		{"/tmp/go-build123/b001/exe/taskhost", "/tmp/go-build123/b001/exe/taskhost", false, "go run ./cmd/taskhost"},
		{"/usr/bin/taskhost", "taskhost", true, "taskhost"},
		{"/src/bin/taskhost", "./bin/taskhost", false, "./bin/taskhost"},
		{"/src/bin/taskhost", "./bin/taskhost", true, "taskhost"},
		{"/src/bin/taskhost", "taskhost", false, "/src/bin/taskhost"},
		{"/tmp/cli.test", "/tmp/cli.test", false, "taskhost"},
	} {
		if got := startedAs(c.exe, c.typed, c.onPath); got != c.want {
			t.Errorf("%+v: got %q", c, got)
		}
	}
}

func TestCaseCheck(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	read := func(text string) (*testCase, error) {
		file := filepath.Join(dir, "c.json")
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return readCase(file)
	}
	ok := func(result string) *handlers.Outcome {
		return &handlers.Outcome{Kind: handlers.OutcomeSucceeded, Result: []byte(result)}
	}
	failed := &handlers.Outcome{Kind: handlers.OutcomePermanent, Error: &handlers.Error{Kind: "permanent", Message: "bad width 0"}}
	for _, c := range []struct {
		text string
		out  *handlers.Outcome
		good bool
	}{
		{`{"payload":1,"want":{"b":1,"a":[1.50]}}`, ok(` {"a":[1.50],"b":1}`), true},
		{`{"payload":1,"want":{"a":9007199254740993}}`, ok(`{"a":9007199254740992}`), false},
		{`{"payload":1,"want":1}`, ok(`1 2`), false},
		{`{"payload":1,"want":1}`, ok(``), false},
		{`{"payload":1,"want":1}`, failed, false},
		{`{"payload_text":"x","want_text":"y\n"}`, ok("y\n"), true},
		{`{"payload_text":"x","want_text":""}`, ok(""), true},
		{`{"payload_text":"x","want_base64":"/w=="}`, ok("\xff"), true},
		{`{"payload_text":"x","want_base64":"/w=="}`, ok("x"), false},
		{`{"payload":1,"want_error":{}}`, failed, true},
		{`{"payload":1,"want_error":{"kind":"trap"}}`, failed, false},
		{`{"payload":1,"want_error":{"kind":"permanent","message":"width"}}`, failed, true},
		{`{"payload":1,"want_error":{"message":"height"}}`, failed, false},
		{`{"payload":1,"want_error":{}}`, ok("1"), false},
	} {
		tc, err := read(c.text)
		if err != nil {
			t.Fatalf("%s: %v", c.text, err)
		}
		problem, err := tc.check(c.out)
		if err != nil || (problem == "") != c.good {
			t.Errorf("%s with %s %q: got %q, %v", c.text, c.out.Kind, c.out.Result, problem, err)
		}
	}
	for _, bad := range []string{`{}`, `{"payload":1}`, `{"payload":1,"payload_text":"","want":1}`, `{"payload":1,"want":1,"want_text":""}`,
		`{"payload":1,"want":1,"attempt":-1}`, `{"payload":1,"want":1}{}`, `[`, `{"payload":1,"want":1,"extra":1}`} {
		if _, err := read(bad); err == nil {
			t.Errorf("%s is no case", bad)
		}
	}
}

func TestManifest(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"type: a\nlang: go\nmodule: a.wasm":            "",
		"type: a\nbuild: [make, wasm]\nmodule: a.wasm": "",
		"lang: go\nmodule: a.wasm":                     "type must be given",
		"type: a\nlang: go":                            "module must be given",
		"type: a\nlang: go\nmodule: ../a.wasm":         "must be a path inside the project",
		"type: a\nlang: go\nmodule: /a.wasm":           "must be a path inside the project",
		"type: a\nmodule: a.wasm":                      "give either lang (go or c) or build",
		"type: a\nlang: go\nbuild: [x]\nmodule: a":     "give either lang (go or c) or build",
		"type: a\nlang: rust\nmodule: a.wasm":          "lang must be go or c, got \"rust\"",
		"type: a\nlang: go\nmodule: a\nmemory: 1MiB":   "line 4: memory is not in this version",
		"type: a\nlang: go\nmodule: a\nmodul: b":       "line 4: field modul not found",
		"":                                             "type must be given",
	} {
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, manifestName), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		_, err := openProject(dir)
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want) || exitCode(err) != ExitUsage) {
			t.Errorf("%q: got %v, want %q", text, err, want)
		}
	}
}

func writeTest(t *testing.T, file, text string) {
	t.Helper()
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

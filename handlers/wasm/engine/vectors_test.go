package engine

import (
	"encoding/json"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/taskhost/taskhost/abi"
	"github.com/taskhost/taskhost/handlers"
	"github.com/taskhost/taskhost/handlers/wasm/engine/attempt"
)

// goldenVector is a script of abi/testdata/hostcalls.json or a scenario of scenarios.json; their README explains the fields. The
// calls are the player's to read.
type goldenVector struct {
	Name string
	Job  struct {
		Payload, Type   string
		Attempt         int
		MaxAttempts     int `json:"max_attempts"`
		Headers, Config map[string]string
		Checkpoint      *string
		ResultLimit     int `json:"result_limit"`
	}
	End struct {
		Outcome      string
		Result       *string
		Message      *string
		Contains     string
		RetryAfterMS *int64 `json:"retry_after_ms"`
		Log          [][2]any
		Progress     *struct {
			Done, Total int64
			Text        string
		}
		Checkpoint *string
	}
}

// The golden vectors of the contract, played by a real module.
func TestGoldenVectors(t *testing.T) {
	t.Parallel()
	player := load(t, handlers.KindReactor, buildReactor(t, "../../../wasm-examples", "./conformance/go"))
	vectors, scripts := readVectors(t, "hostcalls.json")
	for i, v := range vectors {
		t.Run(v.Name, func(t *testing.T) { v.play(t, player, map[string]string{"script": scripts[i]}) })
	}
}

// What the Go SDK makes of the contract, by a module built with it.
func TestGoSDKScenarios(t *testing.T) {
	t.Parallel()
	handler := load(t, handlers.KindReactor, buildReactor(t, "../../../sdk/go", "./guest/testdata/handler"))
	vectors, _ := readVectors(t, "scenarios.json")
	for _, v := range vectors {
		t.Run(v.Name, func(t *testing.T) { v.play(t, handler, map[string]string{}) })
	}
}

func readVectors(t *testing.T, name string) (vectors []goldenVector, texts []string) {
	t.Helper()
	content, err := os.ReadFile("../../../abi/testdata/" + name)
	if err != nil {
		t.Fatal(err)
	}
	var raw []json.RawMessage
	if err := json.Unmarshal(content, &raw); err != nil || len(raw) == 0 {
		t.Fatalf("%s: %d vectors, %v", name, len(raw), err)
	}
	for _, text := range raw {
		var v goldenVector
		if err := json.Unmarshal(text, &v); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		vectors, texts = append(vectors, v), append(texts, string(text))
	}
	return vectors, texts
}

func buildReactor(t *testing.T, module, folder string) []byte {
	t.Helper()
	out := filepath.Join(t.TempDir(), "handler.wasm")
	cmd := exec.CommandContext(t.Context(), "go", "build", "-buildmode=c-shared", "-o", out, folder)
	cmd.Dir = module
	cmd.Env = append(os.Environ(), "GOOS=wasip1", "GOARCH=wasm", "CGO_ENABLED=0")
	if text, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	content, err := os.ReadFile(out)
	if err != nil {
		t.Fatal(err)
	}
	return content
}

func (v goldenVector) play(t *testing.T, module *Module, config map[string]string) {
	in := input(v.Job.Payload)
	in.Type, in.Attempt, in.MaxAttempts = v.Job.Type, max(v.Job.Attempt, 1), max(v.Job.MaxAttempts, 1)
	in.Headers, in.Config = v.Job.Headers, config
	maps.Copy(in.Config, v.Job.Config)
	if v.Job.Checkpoint != nil {
		in.Checkpoint = []byte(*v.Job.Checkpoint)
	}
	if v.Job.ResultLimit > 0 {
		in.Limits.Result = v.Job.ResultLimit
	}
	r := &vectorReports{}
	out, want := module.Run(t.Context(), attempt.New(in, r)), v.End

	message := ""
	if out.Error != nil {
		message = out.Error.Message
	}
	kind := map[string]handlers.OutcomeKind{
		"done": handlers.OutcomeSucceeded, "retry": handlers.OutcomeRetry,
		"permanent": handlers.OutcomePermanent, "defer": handlers.OutcomeDefer,
	}[want.Outcome]
	if out.Kind != kind {
		t.Fatalf("outcome %s (%s), want %s\n%v", out.Kind, message, kind, r.lines)
	}
	if want.Result != nil && string(out.Result) != *want.Result {
		t.Errorf("result %q, want %q", out.Result, *want.Result)
	}
	if want.Message != nil && message != *want.Message {
		t.Errorf("message %q, want %q", message, *want.Message)
	}
	if !strings.Contains(message, want.Contains) {
		t.Errorf("message %q, want one with %q", message, want.Contains)
	}
	if ms := want.RetryAfterMS; ms != nil && out.RetryAfter != time.Duration(*ms)*time.Millisecond && (*ms >= 0 || out.RetryAfter >= 0) {
		t.Errorf("retry after %s, want %d ms", out.RetryAfter, *ms)
	}
	if want.Checkpoint != nil && string(r.checkpoint) != *want.Checkpoint {
		t.Errorf("checkpoint %q, want %q", r.checkpoint, *want.Checkpoint)
	}
	if p := want.Progress; p != nil && r.progress != strconv.FormatInt(p.Done, 10)+"/"+strconv.FormatInt(p.Total, 10)+" "+p.Text {
		t.Errorf("progress %q, want %+v", r.progress, *p)
	}
	var lines []string
	for _, line := range want.Log {
		lines = append(lines, abi.LevelName(int32(line[0].(float64)))+" "+line[1].(string))
	}
	if want.Log != nil && !slices.Equal(r.lines, lines) {
		t.Errorf("log %q, want %q", r.lines, lines)
	}
}

// vectorReports keeps all that a vector can look at. A player is one goroutine and reports from it.
type vectorReports struct {
	lines      []string
	progress   string
	checkpoint []byte
}

func (r *vectorReports) Log(level int32, message string) {
	r.lines = append(r.lines, abi.LevelName(level)+" "+message)
}

func (r *vectorReports) Progress(done, total int64, message string) {
	r.progress = strconv.FormatInt(done, 10) + "/" + strconv.FormatInt(total, 10) + " " + message
}

func (r *vectorReports) Checkpoint(data []byte) abi.Errno {
	r.checkpoint = data
	return 0
}

package engine

import (
	"encoding/hex"
	"encoding/json"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/taskhost/taskhost/abi"
	"github.com/taskhost/taskhost/handlers"
	"github.com/taskhost/taskhost/handlers/wasm/engine/attempt"
	w "github.com/taskhost/taskhost/handlers/wasm/wasmtest"
)

// script is one of the golden vectors; abi/testdata/README.md says what the fields mean.
type script struct {
	Name string
	Job  struct {
		Payload, Type string
		Attempt       int
		MaxAttempts   int `json:"max_attempts"`
		ResultLimit   int `json:"result_limit"`
		Headers       map[string]string
		Config        map[string]string
		Checkpoint    *string
	}
	Calls  []scriptCall
	Handle int32
	End    struct {
		Outcome      string
		Result       *string
		Message      *string
		RetryAfterMS *int64 `json:"retry_after_ms"`
		Log          [][2]any
		Progress     *struct{ Done, Total int64 }
		Checkpoint   *string
	}
}

type scriptCall struct {
	Call         string
	Off, Cap     int64
	Kind, Level  int32
	RetryAfterMS int64 `json:"retry_after_ms"`
	Done, Total  int64
	Key          string
	Text, Hex    string
	Returns      int64
	Gives        *string
}

// The host answers as the contract's golden vectors say. Each script is compiled to a module that makes the calls, and returns a number that
// means nothing at the first answer that is not as written.
func TestGoldenVectors(t *testing.T) {
	t.Parallel()
	data, err := os.ReadFile("../../../abi/testdata/hostcalls.json")
	if err != nil {
		t.Fatal(err)
	}
	var scripts []script
	if err := json.Unmarshal(data, &scripts); err != nil || len(scripts) < 10 {
		t.Fatalf("%d scripts, %v", len(scripts), err)
	}
	for _, s := range scripts {
		t.Run(strings.ReplaceAll(s.Name, " ", "_"), func(t *testing.T) {
			t.Parallel()
			in := input(s.Job.Payload)
			in.Type, in.Attempt, in.MaxAttempts = s.Job.Type, max(s.Job.Attempt, 1), max(s.Job.MaxAttempts, 1)
			in.Headers, in.Config = s.Job.Headers, s.Job.Config
			if s.Job.ResultLimit > 0 {
				in.Limits.Result = s.Job.ResultLimit
			}
			if s.Job.Checkpoint != nil {
				in.Checkpoint = []byte(*s.Job.Checkpoint)
			}
			r := &reports{}
			s.check(t, load(t, handlers.KindReactor, s.module(t)).Run(t.Context(), attempt.New(in, r)), r)
		})
	}
}

const (
	badAnswer = 10_000 // + number of the call
	badBuffer = 20_000
	textArea  = 1024
	buffers   = 1 << 16
)

func (s *script) module(t *testing.T) []byte {
	t.Helper()
	var b w.Builder
	index := map[string]uint32{}
	for _, imp := range abi.HostImports() {
		index[imp.Name] = b.ImportHost(imp.Name)
	}
	b.Memory(4)
	at := int32(textArea)
	place := func(text string) [][]byte {
		b.Data(at, []byte(text))
		at += int32(len(text))
		return [][]byte{w.I32Const(at - int32(len(text))), w.I32Const(int32(len(text)))}
	}
	var body [][]byte
	unless := func(equal []byte, code int32) { // two values are on the stack
		body = append(body, equal, w.Ops(w.OpIf, w.BlockEmpty), w.I32Const(code), w.Ops(w.OpReturn, w.OpEnd))
	}
	for i, c := range s.Calls {
		text := c.Text
		if c.Hex != "" {
			raw, err := hex.DecodeString(c.Hex)
			if err != nil {
				t.Fatal(err)
			}
			text = string(raw)
		}
		buf := int32(buffers + 4096*i)
		gives := [][]byte{w.I32Const(buf), w.I32Const(int32(c.Cap))}
		switch c.Call {
		case "input_len", "should_stop", "deadline_ms":
		case "input_read":
			body = append(append(body, w.I64Const(c.Off)), gives...)
		case "output_write", "checkpoint_put", "host_has":
			body = append(body, place(c.Key+text)...)
		case "fail":
			body = append(append(body, w.I32Const(c.Kind), w.I64Const(c.RetryAfterMS)), place(text)...)
		case "log":
			body = append(append(body, w.I32Const(c.Level)), place(text)...)
		case "progress":
			body = append(append(body, w.I64Const(c.Done), w.I64Const(c.Total)), place(text)...)
		case "checkpoint_get":
			body = append(body, gives...)
		case "meta_get", "config_get":
			body = append(append(body, place(c.Key)...), gives...)
		default:
			t.Fatalf("call %q", c.Call)
		}
		body = append(body, w.Call(index[c.Call]))
		for _, imp := range abi.HostImports() {
			if imp.Name == c.Call && imp.Results[0] == "i32" {
				body = append(body, w.Ops(0xac)) // i64.extend_i32_s
			}
		}
		body = append(body, w.I64Const(c.Returns))
		unless(w.Ops(0x52), badAnswer+int32(i)) // i64.ne
		if c.Gives != nil {
			for j, want := range []byte(*c.Gives + "\x00") { // and not a byte more
				body = append(body, w.I32Const(buf+int32(j)), w.Ops(0x2d, 0, 0), w.I32Const(int32(want)))
				unless(w.Ops(0x47), badBuffer+int32(i)) // i32.ne
			}
		}
	}
	return b.Reactor(nil, append(body, w.I32Const(s.Handle))...)
}

func (s *script) check(t *testing.T, out handlers.Outcome, r *reports) {
	t.Helper()
	want := map[string]handlers.OutcomeKind{"done": handlers.OutcomeSucceeded, "retry": handlers.OutcomeRetry,
		"permanent": handlers.OutcomePermanent, "defer": handlers.OutcomeDefer}[s.End.Outcome]
	if out.Kind != want || out.Error != nil && out.Error.Kind == abi.KindBadReturn && s.Handle <= abi.HandleDefer {
		t.Fatalf("%s %v, want %s", out.Kind, out.Error, want)
	}
	if s.End.Result != nil && string(out.Result) != *s.End.Result {
		t.Errorf("result %q, want %q", out.Result, *s.End.Result)
	}
	if s.End.Message != nil && out.Error.Message != *s.End.Message {
		t.Errorf("message %q, want %q", out.Error.Message, *s.End.Message)
	}
	if ms := s.End.RetryAfterMS; ms != nil && (*ms < 0) != (out.RetryAfter < 0) || ms != nil && *ms >= 0 && out.RetryAfter != time.Duration(*ms)*time.Millisecond {
		t.Errorf("retry after %s, want %d ms", out.RetryAfter, *ms)
	}
	if s.End.Log != nil {
		var lines []string
		for _, l := range s.End.Log {
			lines = append(lines, abi.LevelName(int32(l[0].(float64)))+" "+l[1].(string))
		}
		if !slices.Equal(lines, r.lines) {
			t.Errorf("log %q, want %q", r.lines, lines)
		}
	}
	if p := s.End.Progress; p != nil {
		n := len(r.progress)
		if n < 2 || r.progress[n-2] != p.Done || r.progress[n-1] != p.Total {
			t.Errorf("progress %v, want %v", r.progress, p)
		}
	}
	if s.End.Checkpoint != nil && string(r.checkpoint) != *s.End.Checkpoint {
		t.Errorf("checkpoint %q, want %q", r.checkpoint, *s.End.Checkpoint)
	}
}

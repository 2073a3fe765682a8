package guesttest_test

import (
	"encoding/hex"
	"encoding/json"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/taskhost/taskhost/sdk/go/guest"
	"github.com/taskhost/taskhost/sdk/go/guest/guesttest"
	"github.com/taskhost/taskhost/sdk/go/guest/testdata/scenarios"
)

// vector is a script of abi/testdata/hostcalls.json; its README explains the fields.
type vector struct {
	Name string
	Job  struct {
		Payload, Type   string
		Attempt         int
		MaxAttempts     int `json:"max_attempts"`
		Headers, Config map[string]string
		Checkpoint      *string
		ResultLimit     int `json:"result_limit"`
	}
	Calls  []call
	Handle int32
	End    end
}

type end struct {
	Outcome      guesttest.Outcome
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

type call struct {
	Call         string
	Off          int64
	Cap          int
	Kind, Level  int32
	RetryAfterMS int64 `json:"retry_after_ms"`
	Done, Total  int64
	Key          string
	Text, Hex    string
	Returns      int64
	Gives        *string
}

func (c call) bytes(t *testing.T) []byte {
	t.Helper()
	if c.Hex == "" {
		return []byte(c.Text)
	}
	b, err := hex.DecodeString(c.Hex)
	if err != nil {
		t.Fatalf("%s: hex: %v", c.Call, err)
	}
	return b
}

// make makes the call and returns its answer and its buffer.
func (c call) make(t *testing.T, h guest.Host) (int64, []byte) {
	t.Helper()
	buf, arg := make([]byte, c.Cap), c.bytes(t)
	switch c.Call {
	case "input_len":
		return h.InputLen(), nil
	case "input_read":
		return h.InputRead(c.Off, buf), buf
	case "output_write":
		return h.OutputWrite(arg), nil
	case "fail":
		return int64(h.Fail(c.Kind, c.RetryAfterMS, string(arg))), nil
	case "log":
		return int64(h.Log(c.Level, string(arg))), nil
	case "progress":
		return int64(h.Progress(c.Done, c.Total, string(arg))), nil
	case "checkpoint_put":
		return int64(h.CheckpointPut(arg)), nil
	case "checkpoint_get":
		return h.CheckpointGet(buf), buf
	case "meta_get":
		return h.MetaGet(c.Key, buf), buf
	case "config_get":
		return h.ConfigGet(c.Key, buf), buf
	case "should_stop":
		return int64(h.ShouldStop()), nil
	case "host_has":
		return int64(h.HostHas(c.Key)), nil
	}
	t.Fatalf("unknown call %q", c.Call)
	return 0, nil
}

func TestGoldenVectors(t *testing.T) {
	t.Parallel()
	for _, v := range read(t, "hostcalls.json") {
		t.Run(v.Name, func(t *testing.T) {
			t.Parallel()
			host := guesttest.NewHost(v.job())
			for i, c := range v.Calls {
				got, buf := c.make(t, host)
				if got != c.Returns {
					t.Errorf("call %d %s returned %d, want %d", i, c.Call, got, c.Returns)
				}
				if c.Gives != nil {
					if n := max(min(got, int64(len(buf))), 0); string(buf[:n]) != *c.Gives {
						t.Errorf("call %d %s gave %q, want %q", i, c.Call, buf[:n], *c.Gives)
					}
				}
			}
			v.End.compare(t, host.Result(v.Handle))
		})
	}
}

func TestScenarios(t *testing.T) {
	t.Parallel()
	for _, v := range read(t, "scenarios.json") {
		t.Run(v.Name, func(t *testing.T) {
			t.Parallel()
			v.End.compare(t, guesttest.Run(scenarios.Handle, v.job()))
		})
	}
}

func read(t *testing.T, name string) (vectors []vector) {
	t.Helper()
	data, err := os.ReadFile("../../../../abi/testdata/" + name)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(data, &vectors); err != nil {
		t.Fatal(err)
	}
	if len(vectors) == 0 {
		t.Fatal("no vectors")
	}
	return vectors
}

func (v vector) job() guesttest.Job {
	job := guesttest.Job{
		Payload: []byte(v.Job.Payload), Type: v.Job.Type, Attempt: v.Job.Attempt, MaxAttempts: v.Job.MaxAttempts,
		Headers: v.Job.Headers, Config: v.Job.Config, ResultLimit: v.Job.ResultLimit,
	}
	if v.Job.Checkpoint != nil {
		job.Checkpoint = []byte(*v.Job.Checkpoint)
	}
	return job
}

func (want end) compare(t *testing.T, got guesttest.Result) {
	t.Helper()
	if got.Outcome != want.Outcome {
		t.Errorf("outcome %q (%s), want %q", got.Outcome, got.Message, want.Outcome)
	}
	if want.Result != nil && string(got.Output) != *want.Result {
		t.Errorf("result %q, want %q", got.Output, *want.Result)
	}
	if want.Message != nil && got.Message != *want.Message {
		t.Errorf("message %q, want %q", got.Message, *want.Message)
	}
	if !strings.Contains(got.Message, want.Contains) {
		t.Errorf("message %q, want one with %q", got.Message, want.Contains)
	}
	if ms := want.RetryAfterMS; ms != nil {
		after := guest.ByPolicy
		if *ms >= 0 {
			after = time.Duration(*ms) * time.Millisecond
		}
		if got.RetryAfter != after {
			t.Errorf("retry after %v, want %v", got.RetryAfter, after)
		}
	}
	if want.Checkpoint != nil && string(got.Checkpoint) != *want.Checkpoint {
		t.Errorf("checkpoint %q, want %q", got.Checkpoint, *want.Checkpoint)
	}
	if p := want.Progress; p != nil && got.Progress != (guesttest.Progress{Done: p.Done, Total: p.Total, Message: p.Text}) {
		t.Errorf("progress %+v, want %+v", got.Progress, *p)
	}
	for i, line := range want.Log {
		if i >= len(got.Log) || float64(got.Log[i].Level) != line[0] || got.Log[i].Message != line[1] {
			t.Errorf("log %+v, want %v", got.Log, want.Log)
			break
		}
	}
}

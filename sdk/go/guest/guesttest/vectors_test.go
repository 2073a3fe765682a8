package guesttest_test

import (
	"encoding/hex"
	"encoding/json"
	"os"
	"testing"
	"time"

	"github.com/taskhost/taskhost/sdk/go/guest"
	"github.com/taskhost/taskhost/sdk/go/guest/guesttest"
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
	End    struct {
		Outcome      guesttest.Outcome
		Result       *string
		Message      *string
		RetryAfterMS *int64 `json:"retry_after_ms"`
		Log          [][2]any
		Progress     *struct {
			Done, Total int64
			Text        string
		}
		Checkpoint *string
	}
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
	data, err := os.ReadFile("../../../../abi/testdata/hostcalls.json")
	if err != nil {
		t.Fatal(err)
	}
	var vectors []vector
	if err := json.Unmarshal(data, &vectors); err != nil {
		t.Fatal(err)
	}
	if len(vectors) == 0 {
		t.Fatal("no vectors")
	}
	for _, v := range vectors {
		t.Run(v.Name, func(t *testing.T) {
			t.Parallel()
			v.run(t)
		})
	}
}

func (v vector) run(t *testing.T) {
	job := guesttest.Job{
		Payload: []byte(v.Job.Payload), Type: v.Job.Type, Attempt: v.Job.Attempt, MaxAttempts: v.Job.MaxAttempts,
		Headers: v.Job.Headers, Config: v.Job.Config, ResultLimit: v.Job.ResultLimit,
	}
	if v.Job.Checkpoint != nil {
		job.Checkpoint = []byte(*v.Job.Checkpoint)
	}
	host := guesttest.NewHost(job)
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
	end, want := host.Result(v.Handle), v.End
	if end.Outcome != want.Outcome {
		t.Errorf("outcome %q, want %q", end.Outcome, want.Outcome)
	}
	if want.Result != nil && string(end.Output) != *want.Result {
		t.Errorf("result %q, want %q", end.Output, *want.Result)
	}
	if want.Message != nil && end.Message != *want.Message {
		t.Errorf("message %q, want %q", end.Message, *want.Message)
	}
	if want.RetryAfterMS != nil && end.RetryAfter != time.Duration(*want.RetryAfterMS)*time.Millisecond {
		t.Errorf("retry after %v, want %d ms", end.RetryAfter, *want.RetryAfterMS)
	}
	if want.Checkpoint != nil && string(end.Checkpoint) != *want.Checkpoint {
		t.Errorf("checkpoint %q, want %q", end.Checkpoint, *want.Checkpoint)
	}
	if p := want.Progress; p != nil && end.Progress != (guesttest.Progress{Done: p.Done, Total: p.Total, Message: p.Text}) {
		t.Errorf("progress %+v, want %+v", end.Progress, *p)
	}
	for i, line := range want.Log {
		if i >= len(end.Log) || float64(end.Log[i].Level) != line[0] || end.Log[i].Message != line[1] {
			t.Errorf("log %+v, want %v", end.Log, want.Log)
			break
		}
	}
}

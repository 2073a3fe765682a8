package session

import (
	"errors"
	"net"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/taskhost/taskhost/abi/pluginpb"
	"github.com/taskhost/taskhost/handlers"
	"github.com/taskhost/taskhost/handlers/handlertest"
	"github.com/taskhost/taskhost/handlers/wasm/link"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// far is a handler side that says what a test wants when an attempt has begun.
type far struct {
	pluginpb.UnimplementedHandlerServer
	begun chan uint64
	frame *pluginpb.HandlerFrame // sent on Work
	call  *pluginpb.Call         // sent on Calls
	log   *pluginpb.LogBatch     // sent on Logs
}

func (f *far) Work(stream pluginpb.Handler_WorkServer) error {
	msg, err := stream.Recv()
	if err != nil {
		return err
	}
	f.begun <- msg.GetFrames()[0].GetId()
	close(f.begun)
	if f.frame != nil {
		if err := stream.Send(&pluginpb.HandlerFrames{Frames: []*pluginpb.HandlerFrame{f.frame}}); err != nil {
			return err
		}
	}
	<-stream.Context().Done()
	return nil
}

func (f *far) Calls(stream pluginpb.Handler_CallsServer) error {
	return f.after(func() error {
		if f.call == nil {
			return nil
		}
		return stream.Send(f.call)
	})
}

func (f *far) Logs(_ *pluginpb.LogsRequest, stream pluginpb.Handler_LogsServer) error {
	return f.after(func() error {
		if f.log == nil {
			return nil
		}
		return stream.Send(f.log)
	})
}

// after sends once an attempt has begun.
func (f *far) after(send func() error) error {
	for range f.begun { //nolint:revive // until it is closed
	}
	return send()
}

func TestBreachesAreTold(t *testing.T) {
	t.Parallel()
	frame := func(id uint64, kind *pluginpb.Done) *pluginpb.HandlerFrame {
		return &pluginpb.HandlerFrame{Id: id, Kind: &pluginpb.HandlerFrame_Done{Done: kind}}
	}
	for want, f := range map[string]far{
		"attempt 7, which is not in flight":       {frame: frame(7, &pluginpb.Done{})},
		"a frame without a kind":                  {frame: &pluginpb.HandlerFrame{Id: 1}},
		"ended with outcome 0":                    {frame: frame(1, &pluginpb.Done{})},
		"ended with outcome 99":                   {frame: frame(1, &pluginpb.Done{Outcome: 99})},
		"3 were announced":                        {frame: frame(1, &pluginpb.Done{Outcome: pluginpb.Outcome_OUTCOME_SUCCEEDED, OutputBytes: 3})},
		"ended as succeeded with error kind":      {frame: frame(1, &pluginpb.Done{Outcome: pluginpb.Outcome_OUTCOME_SUCCEEDED, ErrorKind: "trap"})},
		"a result of 9 bytes or more":             {frame: &pluginpb.HandlerFrame{Id: 1, Kind: &pluginpb.HandlerFrame_Output{Output: make([]byte, 9)}}},
		"an empty part":                           {frame: &pluginpb.HandlerFrame{Id: 1, Kind: &pluginpb.HandlerFrame_Output{}}},
		"progress -1 of 0":                        {frame: &pluginpb.HandlerFrame{Id: 1, Kind: &pluginpb.HandlerFrame_Progress{Progress: &pluginpb.Progress{Done: -1}}}},
		"a checkpoint of 99 bytes":                {call: &pluginpb.Call{Id: 1, Kind: &pluginpb.Call_CheckpointPut{CheckpointPut: &pluginpb.CheckpointPut{Bytes: 99}}}},
		"that were not announced":                 {call: &pluginpb.Call{Id: 1, Kind: &pluginpb.Call_Data{Data: []byte("x")}}},
		"a call of attempt 7":                     {call: &pluginpb.Call{Id: 7}},
		"a log line of attempt 7":                 {log: &pluginpb.LogBatch{Lines: []*pluginpb.LogLine{{Id: 7}}}},
		"a log line of attempt 1 of level 9":      {log: &pluginpb.LogBatch{Lines: []*pluginpb.LogLine{{Id: 1, Level: 9}}}},
		"a log of 4001 bytes or more of attempt ": {log: &pluginpb.LogBatch{Lines: []*pluginpb.LogLine{{Id: 1, Message: strings.Repeat("x", 4001)}}}},
	} {
		t.Run(want, func(t *testing.T) {
			t.Parallel()
			f.begun = make(chan uint64, 1)
			client := connect(t, &f)
			faults := make(chan *Violation, 3)
			s, err := Open(Options{Client: client, Fault: func(v *Violation) { faults <- v }})
			if err != nil {
				t.Fatal(err)
			}
			inv := &handlers.Invocation{JobID: "j", Version: &handlers.Version{}, Deadline: time.Now().Add(time.Minute), Events: &handlertest.Recorder{},
				Limits: handlers.Limits{ResultBytes: 8, LogBytes: 100, CheckpointBytes: 8}}
			a, err := s.Begin(t.Context(), inv, &pluginpb.Version{})
			if err != nil {
				t.Fatal(err)
			}
			if v := <-faults; !strings.Contains(v.Error(), want) {
				t.Errorf("%q lacks %q", v, want)
			}
			s.Hang()
			lost := handlers.Outcome{Kind: handlers.OutcomeCrashed}
			s.Close(func(*Attempt) handlers.Outcome { return lost })
			if out := <-a.Outcome(); out.Kind != lost.Kind {
				t.Errorf("%+v", out)
			}
			a.Close()
			if _, err := s.Begin(t.Context(), inv, &pluginpb.Version{}); !errors.Is(err, ErrEnded) {
				t.Errorf("an attempt after the end: %v", err)
			}
		})
	}
}

// connect serves the far side on a socket of its own.
func connect(t *testing.T, f *far) pluginpb.HandlerClient {
	t.Helper()
	l, err := net.Listen("unix", filepath.Join(t.TempDir(), "s"))
	if err != nil {
		t.Fatal(err)
	}
	server := link.NewServer()
	pluginpb.RegisterHandlerServer(server, f)
	served := make(chan error, 1)
	go func() { served <- server.Serve(l) }()
	conn, err := net.Dial("unix", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	client, err := link.Dial(conn)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := client.Close(); err != nil {
			t.Error(err)
		}
		server.Stop()
		<-served
	})
	return pluginpb.NewHandlerClient(client)
}

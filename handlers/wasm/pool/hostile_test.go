package pool

import (
	"context"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/taskhost/taskhost/abi"
	"github.com/taskhost/taskhost/abi/pluginpb"
	"github.com/taskhost/taskhost/handlers"
	"github.com/taskhost/taskhost/handlers/wasm/link"
)

// hostileCommand makes this test binary a runner that lies, in the way of the next argument.
const hostileCommand = "test-hostile"

// lies are what a hostile runner answers to the first attempt.
var lies = map[string]struct {
	frame *pluginpb.HandlerFrame
	call  *pluginpb.Call
	log   *pluginpb.LogBatch
	want  string
}{
	"unknown attempt":  {frame: done(77, &pluginpb.Done{Outcome: 1}), want: "attempt 77, which is not in flight"},
	"no kind":          {frame: &pluginpb.HandlerFrame{Id: 1}, want: "without a kind"},
	"no outcome":       {frame: done(1, &pluginpb.Done{}), want: "outcome 0"},
	"unknown outcome":  {frame: done(1, &pluginpb.Done{Outcome: 99, ErrorKind: "x"}), want: "outcome 99"},
	"failed success":   {frame: done(1, &pluginpb.Done{Outcome: 1, ErrorKind: "x"}), want: "error kind"},
	"short result":     {frame: done(1, &pluginpb.Done{Outcome: 1, OutputBytes: 10, Output: []byte("x")}), want: "10 were announced"},
	"long result":      {frame: &pluginpb.HandlerFrame{Id: 1, Kind: &pluginpb.HandlerFrame_Output{Output: make([]byte, 2000)}}, want: "over its limit of 1000 bytes"},
	"empty output":     {frame: &pluginpb.HandlerFrame{Id: 1, Kind: &pluginpb.HandlerFrame_Output{}}, want: "empty part"},
	"progress":         {frame: &pluginpb.HandlerFrame{Id: 1, Kind: &pluginpb.HandlerFrame_Progress{Progress: &pluginpb.Progress{Done: -1}}}, want: "progress -1"},
	"call from nobody": {call: &pluginpb.Call{Id: 9, Kind: &pluginpb.Call_Data{}}, want: "attempt 9, which is not in flight"},
	"huge checkpoint":  {call: &pluginpb.Call{Id: 1, Kind: &pluginpb.Call_CheckpointPut{CheckpointPut: &pluginpb.CheckpointPut{Bytes: 1 << 31}}}, want: "over its limit of 1048576 bytes"},
	"unannounced data": {call: &pluginpb.Call{Id: 1, Kind: &pluginpb.Call_Data{Data: []byte("x")}}, want: "not announced"},
	"log of nobody":    {log: &pluginpb.LogBatch{Lines: []*pluginpb.LogLine{{Id: 4}}}, want: "attempt 4, which is not in flight"},
	"log level":        {log: &pluginpb.LogBatch{Lines: []*pluginpb.LogLine{{Id: 1, Level: 7}}}, want: "level 7"},
	"long line":        {log: &pluginpb.LogBatch{Lines: []*pluginpb.LogLine{{Id: 1, Message: strings.Repeat("x", 5000)}}}, want: "5000 bytes"},
}

func done(id uint64, d *pluginpb.Done) *pluginpb.HandlerFrame {
	return &pluginpb.HandlerFrame{Id: id, Kind: &pluginpb.HandlerFrame_Done{Done: d}}
}

// A runner that breaks the protocol is killed, and its attempts count as crashed.
func TestHostileRunner(t *testing.T) {
	t.Parallel()
	for name, lie := range lies {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newPool(t, func(o *Options) { o.Command = []string{"/proc/self/exe", hostileCommand, name} })
			inv := invocation(nil, time.Minute)
			inv.Limits.ResultBytes = 1000
			out := p.Invoke(t.Context(), inv, Artifact{})
			if out.Kind != handlers.OutcomeCrashed || out.Error.Kind != abi.KindCrash || !strings.Contains(out.Error.Message, lie.want) {
				t.Errorf("%s %v, want %q", out.Kind, out.Error, lie.want)
			}
		})
	}
}

type hostile struct {
	pluginpb.UnimplementedHandlerServer
	lie   string
	begun chan struct{}
}

func hostileChild(lie string) int {
	conn, err := link.FileConn(os.NewFile(3, "supervisor"))
	if err != nil {
		return 1
	}
	server := link.NewServer()
	pluginpb.RegisterHandlerServer(server, &hostile{lie: lie, begun: make(chan struct{})})
	listener := link.Listen(conn)
	go func() { _ = server.Serve(listener) }()
	<-listener.Ended()
	return 0
}

func (h *hostile) Describe(context.Context, *pluginpb.DescribeRequest) (*pluginpb.DescribeResponse, error) {
	return &pluginpb.DescribeResponse{Abi: pluginpb.ABI, Slots: 4}, nil
}

func (h *hostile) Work(stream pluginpb.Handler_WorkServer) error {
	if _, err := stream.Recv(); err != nil {
		return err
	}
	close(h.begun)
	if f := lies[h.lie].frame; f != nil {
		if err := stream.Send(&pluginpb.HandlerFrames{Frames: []*pluginpb.HandlerFrame{f}}); err != nil {
			return err
		}
	}
	<-stream.Context().Done()
	return nil
}

func (h *hostile) Calls(stream pluginpb.Handler_CallsServer) error {
	select {
	case <-h.begun:
	case <-stream.Context().Done():
		return nil
	}
	if c := lies[h.lie].call; c != nil {
		if err := stream.Send(c); err != nil {
			return err
		}
	}
	<-stream.Context().Done()
	return nil
}

func (h *hostile) Logs(_ *pluginpb.LogsRequest, stream pluginpb.Handler_LogsServer) error {
	select {
	case <-h.begun:
	case <-stream.Context().Done():
		return nil
	}
	if b := lies[h.lie].log; b != nil {
		if err := stream.Send(b); err != nil {
			return err
		}
	}
	<-stream.Context().Done()
	return nil
}

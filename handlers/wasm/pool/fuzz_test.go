package pool

import (
	"context"
	"errors"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/taskhost/taskhost/abi/pluginpb"
	"github.com/taskhost/taskhost/handlers"
	"github.com/taskhost/taskhost/handlers/handlertest"
	"github.com/taskhost/taskhost/handlers/wasm/link"
)

// Whatever a runner says, the host takes it or calls it a violation: it does not panic, does not give an attempt two outcomes, and keeps
// no more of an attempt than its limits allow.
func FuzzFrames(f *testing.F) {
	for _, lie := range lies {
		for kind, m := range []proto.Message{&pluginpb.HandlerFrames{Frames: []*pluginpb.HandlerFrame{lie.frame}}, lie.call, lie.log} {
			if b, err := proto.Marshal(m); err == nil {
				f.Add([]byte{byte(kind)}, b, b)
			}
		}
	}
	good, err := proto.Marshal(&pluginpb.HandlerFrames{Frames: []*pluginpb.HandlerFrame{
		{Id: 1, Kind: &pluginpb.HandlerFrame_Output{Output: []byte("abc")}}, done(1, &pluginpb.Done{Outcome: 1, OutputBytes: 4, Output: []byte("d"), LogLines: 1 << 60}),
	}})
	if err != nil {
		f.Fatal(err)
	}
	f.Add([]byte{0, 2}, good, good)
	f.Fuzz(func(t *testing.T, kinds, first, second []byte) {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		r := &runner{flights: map[uint64]*flight{}, calls: link.NewOutbox(func(f *pluginpb.Reply) int { return proto.Size(f) })}
		inv := &handlers.Invocation{Version: &handlers.Version{}, Deadline: time.Now().Add(time.Minute), Events: &handlertest.Recorder{},
			Limits: handlers.Limits{MemoryBytes: 1 << 20, ResultBytes: 10, LogBytes: 100, CheckpointBytes: 10}}
		r.work = link.NewOutbox(func(f *pluginpb.HostFrame) int { return proto.Size(f) })
		fl, err := r.begin(ctx, inv, Artifact{})
		if err != nil {
			t.Fatal(err)
		}
		for i, kind := range kinds[:min(len(kinds), 4)] {
			data := first
			if i%2 == 1 {
				data = second
			}
			if err := say(r, kind, data); err != nil {
				var v *violation
				if !errors.As(err, &v) {
					t.Errorf("not a violation: %v", err)
				}
				break
			}
		}
		if len(fl.output) > 10 || len(fl.call) > 10 || len(fl.outcome) > 1 || fl.logged > 100+logSlack+pluginpb.MaxMessage {
			t.Errorf("output %d, call %d, outcomes %d, log %d", len(fl.output), len(fl.call), len(fl.outcome), fl.logged)
		}
		fl.lost(fateDied, errSilent) // gives an outcome, or finds one
		if len(fl.outcome) != 1 {
			t.Errorf("%d outcomes", len(fl.outcome))
		}
		fl.close()
	})
}

// say has the runner say something, if data encodes it.
func say(r *runner, kind byte, data []byte) error {
	switch kind % 3 {
	case 0:
		msg := &pluginpb.HandlerFrames{}
		if proto.Unmarshal(data, msg) == nil {
			for _, f := range msg.GetFrames() {
				if err := r.frame(f); err != nil {
					return err
				}
			}
		}
	case 1:
		msg := &pluginpb.Call{}
		if proto.Unmarshal(data, msg) == nil {
			return r.call(msg)
		}
	case 2:
		msg := &pluginpb.LogBatch{}
		if proto.Unmarshal(data, msg) == nil {
			return r.batch(msg)
		}
	}
	return nil
}

package runner

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"sync/atomic"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/taskhost/taskhost/abi/pluginpb"
	"github.com/taskhost/taskhost/handlers/wasm/engine"
	"github.com/taskhost/taskhost/handlers/wasm/link"
	"github.com/taskhost/taskhost/handlers/wasm/lockdown"
)

// runner is the handler side of the protocol.
type runner struct {
	pluginpb.UnimplementedHandlerServer

	config  Config
	sandbox string                  // the level reached
	fail    context.CancelCauseFunc // ends the process
	modules *modules
	work    *link.Outbox[*pluginpb.HandlerFrame]
	calls   *link.Outbox[*pluginpb.Call]
	logs    *logRing
	ready   chan *job // complete inputs; as many as slots
	opened  [3]atomic.Bool
	freeing atomic.Bool // memory is given back soon

	mu   sync.Mutex
	jobs map[uint64]*job
}

// Streams a host opens once each.
const (
	streamWork = iota
	streamCalls
	streamLogs
)

func newRunner(config Config, report lockdown.Report, fail context.CancelCauseFunc) *runner {
	return &runner{
		config:  config,
		sandbox: report.Level,
		fail:    fail,
		modules: newModules(config.Modules),
		work:    link.NewOutbox(func(f *pluginpb.HandlerFrame) int { return proto.Size(f) }),
		calls:   link.NewOutbox(func(f *pluginpb.Call) int { return proto.Size(f) }),
		logs:    newLogRing(),
		ready:   make(chan *job, config.Slots),
		jobs:    make(map[uint64]*job, config.Slots),
	}
}

// start starts the workers. They end with ctx, each after the guest it runs.
func (r *runner) start(ctx context.Context) {
	for range r.config.Slots {
		go func() {
			for {
				select {
				case j := <-r.ready:
					r.run(ctx, j)
				case <-ctx.Done():
					return
				}
			}
		}()
	}
}

// Describe answers who this is.
func (r *runner) Describe(_ context.Context, req *pluginpb.DescribeRequest) (*pluginpb.DescribeResponse, error) {
	if req.GetAbi() != pluginpb.ABI {
		return nil, status.Errorf(codes.FailedPrecondition, "the host speaks version %d of the handler protocol, this runner %d", req.GetAbi(), pluginpb.ABI)
	}
	return &pluginpb.DescribeResponse{Abi: pluginpb.ABI, Slots: uint32(r.config.Slots), Engine: engine.Identity(), Sandbox: r.sandbox}, nil
}

func (r *runner) open(stream int) error {
	if r.opened[stream].Swap(true) {
		return status.Error(codes.FailedPrecondition, "this stream can be opened once only")
	}
	return nil
}

// Work takes jobs and sends their ends.
func (r *runner) Work(stream pluginpb.Handler_WorkServer) error {
	if err := r.open(streamWork); err != nil {
		return err
	}
	go func() {
		r.fail(fmt.Errorf("work stream: %w", r.receive(stream)))
	}()
	msg := &pluginpb.HandlerFrames{}
	return r.work.Run(stream.Context(), func(frames []*pluginpb.HandlerFrame) error {
		msg.Frames = frames
		return stream.Send(msg)
	})
}

func (r *runner) receive(stream pluginpb.Handler_WorkServer) error {
	for {
		msg, err := stream.Recv()
		if err != nil {
			return streamEnd(err)
		}
		for _, f := range msg.GetFrames() {
			if err := r.frame(f); err != nil {
				return err
			}
		}
	}
}

// streamEnd tells the end of the connection, which is the ordinary end of a runner, from faults.
func streamEnd(err error) error {
	if errors.Is(err, io.EOF) || status.Code(err) == codes.Canceled || status.Code(err) == codes.Unavailable {
		return errConnection
	}
	return err
}

func (r *runner) frame(f *pluginpb.HostFrame) error {
	id := f.GetId()
	switch k := f.GetKind().(type) {
	case *pluginpb.HostFrame_Start:
		j, err := r.begin(id, k.Start)
		if err != nil {
			return err
		}
		r.dispatch(j)
	case *pluginpb.HostFrame_Body:
		j := r.job(id)
		if j == nil || j.missing() < len(k.Body) || len(k.Body) == 0 {
			return fmt.Errorf("body of %d bytes for attempt %d, which expects none of it", len(k.Body), id)
		}
		j.body = append(j.body, k.Body...)
		r.dispatch(j)
	case *pluginpb.HostFrame_Cancel:
		if j := r.job(id); j != nil { // else it has just ended
			j.cancel(k.Cancel.GetReason())
		}
	default:
		return fmt.Errorf("frame of kind %T for attempt %d", k, id)
	}
	return nil
}

// dispatch hands a job to a worker when its input is complete.
func (r *runner) dispatch(j *job) {
	if j.missing() == 0 {
		r.ready <- j // never blocks: it has room for every slot
	}
}

func (r *runner) job(id uint64) *job {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.jobs[id]
}

func (r *runner) begin(id uint64, start *pluginpb.Start) (*job, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case id == 0 || r.jobs[id] != nil:
		return nil, fmt.Errorf("attempt %d is begun twice", id)
	case len(r.jobs) == r.config.Slots:
		return nil, fmt.Errorf("attempt %d is over the %d slots", id, r.config.Slots)
	}
	j := newJob(r, id, start)
	if j.missing() < 0 {
		return nil, fmt.Errorf("attempt %d begins with %d bytes more than announced", id, -j.missing())
	}
	r.jobs[id] = j
	return j, nil
}

// finish sends the end of a job and frees its slot. After that the host may use the slot, and begin another job.
func (r *runner) finish(j *job, item *doneItem) {
	r.mu.Lock()
	delete(r.jobs, j.id)
	r.mu.Unlock()
	r.work.Add(item)
}

// Calls sends host calls and takes their replies.
func (r *runner) Calls(stream pluginpb.Handler_CallsServer) error {
	if err := r.open(streamCalls); err != nil {
		return err
	}
	go func() {
		for {
			reply, err := stream.Recv()
			if err != nil {
				r.fail(fmt.Errorf("calls stream: %w", streamEnd(err)))
				return
			}
			if j := r.job(reply.GetId()); j != nil { // else it has stopped waiting
				j.reply(reply)
			}
		}
	}()
	return r.calls.Run(stream.Context(), func(calls []*pluginpb.Call) error {
		for _, c := range calls {
			if err := stream.Send(c); err != nil {
				return err
			}
		}
		return nil
	})
}

// Logs sends log lines.
func (r *runner) Logs(_ *pluginpb.LogsRequest, stream pluginpb.Handler_LogsServer) error {
	if err := r.open(streamLogs); err != nil {
		return err
	}
	return r.logs.run(stream.Context(), stream.Send)
}

package plugin

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"

	pb "github.com/taskhost/taskhost/sdk/go/plugin/internal/handlerpb"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// abi is the major version of the contract that this package speaks.
const abi = 1

// server is the handler side of the protocol.
type server struct {
	pb.UnimplementedHandlerServer

	handlers Handlers
	slots    int
	began    func() // the host has opened the Work stream
	end      func(error)
	work     *outbox[*pb.HandlerFrame]
	calls    *outbox[*pb.Call]
	logs     *logRing

	mu   sync.Mutex
	jobs map[uint64]*running
}

func newServer(h Handlers, slots int, began func(), end func(error)) *server {
	return &server{handlers: h, slots: slots, began: began, end: end,
		work: newOutbox[*pb.HandlerFrame](), calls: newOutbox[*pb.Call](), logs: newLogRing(), jobs: map[uint64]*running{}}
}

// Describe answers who this is.
func (s *server) Describe(_ context.Context, req *pb.DescribeRequest) (*pb.DescribeResponse, error) {
	if req.GetAbi() != abi {
		return nil, status.Errorf(codes.FailedPrecondition, "the host speaks version %d of the contract, this plugin %d", req.GetAbi(), abi)
	}
	return &pb.DescribeResponse{Abi: abi, Slots: uint32(s.slots), Engine: "go", Types: s.handlers.types()}, nil
}

// Work takes jobs and sends their ends. Its end is the end of the plugin.
func (s *server) Work(stream pb.Handler_WorkServer) error {
	s.began()
	go func() {
		err := s.receive(stream)
		s.mu.Lock()
		for _, r := range s.jobs {
			r.cancel(fmt.Errorf("%w: the connection to it has ended", ErrStopped))
		}
		s.mu.Unlock()
		s.end(err)
	}()
	msg := &pb.HandlerFrames{}
	return s.work.run(stream.Context(), func(frames []*pb.HandlerFrame) error {
		msg.Frames = frames
		return stream.Send(msg)
	})
}

func (s *server) receive(stream pb.Handler_WorkServer) error {
	for {
		msg, err := stream.Recv()
		if errors.Is(err, io.EOF) || status.Code(err) == codes.Canceled || status.Code(err) == codes.Unavailable {
			return nil // the host is done with this plugin, or gone
		}
		if err != nil {
			return err
		}
		for _, f := range msg.GetFrames() {
			if err := s.frame(f); err != nil {
				return err
			}
		}
	}
}

func (s *server) frame(f *pb.HostFrame) error {
	s.mu.Lock()
	r := s.jobs[f.GetId()]
	s.mu.Unlock()
	switch k := f.GetKind().(type) {
	case *pb.HostFrame_Start:
		if r != nil {
			return fmt.Errorf("attempt %d is begun twice", f.GetId())
		}
		r = newRunning(s, f.GetId(), k.Start)
		s.mu.Lock()
		s.jobs[f.GetId()] = r
		n := len(s.jobs)
		s.mu.Unlock()
		if n > s.slots || r.missing() < 0 {
			return fmt.Errorf("attempt %d: %d jobs of at most %d, %d bytes more than announced", f.GetId(), n, s.slots, -r.missing())
		}
		return r.dispatch()
	case *pb.HostFrame_Body:
		if r == nil || r.missing() < len(k.Body) || len(k.Body) == 0 {
			return fmt.Errorf("body of %d bytes for attempt %d, which expects none of it", len(k.Body), f.GetId())
		}
		r.body = append(r.body, k.Body...)
		return r.dispatch()
	case *pb.HostFrame_Cancel:
		if r != nil { // else it has just ended
			r.cancel(fmt.Errorf("%w: %s", ErrStopped, k.Cancel.GetReason()))
		}
		return nil
	}
	return nil // a frame of a later version that is no concern of this one
}

// dispatch runs a job when its input is complete.
func (r *running) dispatch() error {
	if r.missing() > 0 {
		return nil
	}
	if err := r.prepare(); err != nil {
		return err
	}
	go r.run()
	return nil
}

// finish sends the end of a job and frees its place.
func (s *server) finish(r *running, done *doneItem) {
	s.mu.Lock()
	delete(s.jobs, r.id)
	s.mu.Unlock()
	s.work.add(done)
}

// Calls sends host calls and takes their replies.
func (s *server) Calls(stream pb.Handler_CallsServer) error {
	go func() {
		for {
			reply, err := stream.Recv()
			if err != nil {
				return // the Work stream ends as well
			}
			s.mu.Lock()
			r := s.jobs[reply.GetId()]
			s.mu.Unlock()
			if r == nil || r.job == nil { // it has stopped waiting
				continue
			}
			select {
			case r.job.replies <- Errno(reply.GetErrno()):
			default:
			}
		}
	}()
	return s.calls.run(stream.Context(), func(calls []*pb.Call) error {
		for _, c := range calls {
			if err := stream.Send(c); err != nil {
				return err
			}
		}
		return nil
	})
}

// Logs sends log lines.
func (s *server) Logs(_ *pb.LogsRequest, stream pb.Handler_LogsServer) error {
	return s.logs.run(stream.Context(), stream.Send)
}

package plugin

import (
	"context"
	"sync"

	pb "github.com/taskhost/taskhost/sdk/go/plugin/internal/handlerpb"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
)

// item is something to send in one or more frames. next is called by the sending goroutine only.
type item[F proto.Message] interface {
	next() (frame F, more bool)
}

// outbox queues items and sends their frames in turns, so that small ones never wait for large ones. add never blocks.
type outbox[F proto.Message] struct {
	mu    sync.Mutex
	queue []item[F]
	wake  chan struct{}
}

func newOutbox[F proto.Message]() *outbox[F] { return &outbox[F]{wake: make(chan struct{}, 1)} }

func (o *outbox[F]) add(i item[F]) {
	o.mu.Lock()
	o.queue = append(o.queue, i)
	o.mu.Unlock()
	wake(o.wake)
}

func (o *outbox[F]) take() item[F] {
	o.mu.Lock()
	defer o.mu.Unlock()
	if len(o.queue) == 0 {
		return nil
	}
	i := o.queue[0]
	o.queue[0] = nil
	o.queue = o.queue[1:]
	return i
}

// run sends until ctx ends or send fails. send gets the frames of one message; the slice is used again.
func (o *outbox[F]) run(ctx context.Context, send func([]F) error) error {
	var batch, held []F // held: a frame that did not fit into the message before
	for {
		batch = append(batch[:0], held...)
		held = held[:0]
		room := maxMessage
		for _, f := range batch {
			room -= cost(f)
		}
		for {
			i := o.take()
			if i == nil {
				break
			}
			frame, more := i.next()
			if more {
				o.add(i)
			}
			if room -= cost(frame); room < 0 && len(batch) > 0 {
				held = append(held, frame)
				break
			}
			batch = append(batch, frame)
		}
		if len(batch) > 0 {
			if err := send(batch); err != nil {
				return err
			}
			continue
		}
		select {
		case <-o.wake:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// cost is what a frame adds to a message: itself, its tag and its length.
func cost(frame proto.Message) int {
	n := proto.Size(frame)
	return 1 + protowire.SizeVarint(uint64(n)) + n
}

// parts cuts bytes into parts of at most maxPart.
type parts struct{ rest []byte }

func (p *parts) next() (part []byte, last bool) {
	n := min(len(p.rest), maxPart)
	part, p.rest = p.rest[:n], p.rest[n:]
	return part, len(p.rest) == 0
}

// progressItem sends the latest report of a job.
type progressItem struct{ j *Job }

func (p *progressItem) next() (*pb.HandlerFrame, bool) {
	p.j.mu.Lock()
	defer p.j.mu.Unlock()
	p.j.queued = false
	return &pb.HandlerFrame{Id: p.j.id, Kind: &pb.HandlerFrame_Progress{Progress: p.j.progress}}, false
}

// callItem sends a checkpoint in parts.
type callItem struct {
	id        uint64
	announced int
	begun     bool
	parts     parts
}

func (c *callItem) next() (*pb.Call, bool) {
	part, last := c.parts.next()
	call := &pb.Call{Id: c.id, Kind: &pb.Call_Data{Data: part}}
	if !c.begun {
		c.begun = true
		call.Kind = &pb.Call_CheckpointPut{CheckpointPut: &pb.CheckpointPut{Bytes: uint32(c.announced), Data: part}}
	}
	return call, !last
}

// doneItem sends the result of a job in parts, then its end with the last one.
type doneItem struct {
	id    uint64
	parts parts
	done  *pb.Done
}

func (d *doneItem) next() (*pb.HandlerFrame, bool) {
	part, last := d.parts.next()
	if !last {
		return &pb.HandlerFrame{Id: d.id, Kind: &pb.HandlerFrame_Output{Output: part}}, true
	}
	d.done.Output = part
	return &pb.HandlerFrame{Id: d.id, Kind: &pb.HandlerFrame_Done{Done: d.done}}, false
}

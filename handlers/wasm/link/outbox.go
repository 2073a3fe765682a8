package link

import (
	"context"
	"errors"
	"sync"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/taskhost/taskhost/abi/pluginpb"
)

// Item is something to send in one or more frames.
type Item[F any] interface {
	// Next returns the next frame and whether more follow. ok is false when there is nothing (any more) to send. It is called by the
	// sending goroutine only, without a lock held.
	Next() (frame F, more, ok bool)
}

// Outbox queues items and sends their frames in turns: one frame of the first item, which then goes to the end of the queue if
// it has more. Small items therefore never wait for large ones. Frames that wait together share a message.
//
// Add never blocks. The queue is bounded by those who add: every job adds a bounded number of items.
type Outbox[F any] struct {
	size func(F) int

	mu    sync.Mutex
	queue []Item[F]
	wake  chan struct{} // capacity 1
}

// NewOutbox returns an outbox; size tells the encoded size of a frame.
func NewOutbox[F any](size func(F) int) *Outbox[F] {
	return &Outbox[F]{size: size, wake: make(chan struct{}, 1)}
}

// Add queues an item. After the end of Run it is dropped.
func (o *Outbox[F]) Add(item Item[F]) {
	o.mu.Lock()
	o.queue = append(o.queue, item)
	first := len(o.queue) == 1
	o.mu.Unlock()
	if first {
		select {
		case o.wake <- struct{}{}:
		default:
		}
	}
}

func (o *Outbox[F]) take() Item[F] {
	o.mu.Lock()
	defer o.mu.Unlock()
	if len(o.queue) == 0 {
		return nil
	}
	item := o.queue[0]
	o.queue[0] = nil
	o.queue = o.queue[1:]
	return item
}

// Run sends until ctx ends or send fails, and returns why. send gets the frames of one message; the slice is used again.
func (o *Outbox[F]) Run(ctx context.Context, send func([]F) error) error {
	var batch []F
	var held F // a frame that did not fit into the message before
	var holds bool
	for {
		batch = batch[:0]
		room := pluginpb.MaxMessage
		if holds {
			batch, room, holds = append(batch, held), room-o.cost(held), false
		}
		for {
			item := o.take()
			if item == nil {
				break
			}
			frame, more, ok := item.Next()
			if more {
				o.Add(item)
			}
			if !ok {
				continue
			}
			if room -= o.cost(frame); room < 0 && len(batch) > 0 {
				held, holds = frame, true
				break
			}
			batch = append(batch, frame)
		}
		if len(batch) > 0 {
			if err := send(batch); err != nil {
				return errors.Join(err, context.Cause(ctx))
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
func (o *Outbox[F]) cost(frame F) int {
	n := o.size(frame)
	return 1 + protowire.SizeVarint(uint64(n)) + n
}

// Parts cuts bytes into parts of at most pluginpb.MaxPart.
type Parts struct{ rest []byte }

// NewParts returns the parts of the pieces in order; pieces are copied only if there are several.
func NewParts(pieces ...[]byte) Parts {
	var only []byte
	n, total := 0, 0
	for _, p := range pieces {
		if len(p) > 0 {
			only = p
			n++
			total += len(p)
		}
	}
	if n <= 1 {
		return Parts{only}
	}
	joined := make([]byte, 0, total)
	for _, p := range pieces {
		joined = append(joined, p...)
	}
	return Parts{joined}
}

// Next returns the next part, and whether it is the last one.
func (p *Parts) Next() (part []byte, last bool) {
	n := min(len(p.rest), pluginpb.MaxPart)
	part, p.rest = p.rest[:n], p.rest[n:]
	return part, len(p.rest) == 0
}

// Len is the number of bytes left.
func (p *Parts) Len() int { return len(p.rest) }

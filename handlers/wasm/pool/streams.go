package pool

import (
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/taskhost/taskhost/abi/pluginpb"
)

// violation is a breach of the handler protocol by a runner.
type violation struct{ text string }

func (v *violation) Error() string { return "runner broke the handler protocol: " + v.text }

func violated(format string, args ...any) error { return &violation{fmt.Sprintf(format, args...)} }

// receive calls next until it fails. The end of a stream is the end of the runner; a violation makes it so.
func (r *runner) receive(next func() error) {
	for {
		err := next()
		if err == nil {
			continue
		}
		var v *violation
		if errors.As(err, &v) {
			r.end(fateViolation, v, true)
		}
		return
	}
}

func (r *runner) sendWork(stream pluginpb.Handler_WorkClient) {
	msg := &pluginpb.HostFrames{}
	// An error is the end of the stream, which the reader sees as well.
	_ = r.work.Run(stream.Context(), func(frames []*pluginpb.HostFrame) error {
		msg.Frames = frames
		return stream.Send(msg)
	})
}

func (r *runner) sendReplies(stream pluginpb.Handler_CallsClient) {
	_ = r.calls.Run(stream.Context(), func(replies []*pluginpb.Reply) error {
		for _, reply := range replies {
			if err := stream.Send(reply); err != nil {
				return err
			}
		}
		return nil
	})
}

// flight returns the attempt a frame is about. Without one, ended tells whether there has been one.
func (r *runner) flight(id uint64) (f *flight, ended bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.flights[id], id > 0 && id <= r.lastID
}

func (r *runner) receiveWork(stream pluginpb.Handler_WorkClient) error {
	msg, err := stream.Recv()
	if err != nil {
		return err
	}
	for _, frame := range msg.GetFrames() {
		if err := r.frame(frame); err != nil {
			return err
		}
	}
	return nil
}

func (r *runner) frame(frame *pluginpb.HandlerFrame) error {
	f, _ := r.flight(frame.GetId())
	if f == nil {
		return violated("a frame for attempt %d, which is not in flight", frame.GetId())
	}
	switch k := frame.GetKind().(type) {
	case *pluginpb.HandlerFrame_Output:
		return f.addOutput(k.Output)
	case *pluginpb.HandlerFrame_Progress:
		return f.progress(k.Progress)
	case *pluginpb.HandlerFrame_Done:
		return f.finish(k.Done)
	}
	return violated("a frame without a kind")
}

func (r *runner) receiveCall(stream pluginpb.Handler_CallsClient) error {
	call, err := stream.Recv()
	if err != nil {
		return err
	}
	return r.call(call)
}

func (r *runner) call(call *pluginpb.Call) error {
	f, ended := r.flight(call.GetId())
	if f == nil {
		if ended { // it has stopped waiting and ended
			return nil
		}
		return violated("a call of attempt %d, which is not in flight", call.GetId())
	}
	switch k := call.GetKind().(type) {
	case *pluginpb.Call_CheckpointPut:
		return f.beginCheckpoint(int(k.CheckpointPut.GetBytes()), k.CheckpointPut.GetData())
	case *pluginpb.Call_Data:
		return f.addCheckpoint(k.Data)
	}
	return violated("a call without a kind")
}

func (r *runner) receiveLogs(stream pluginpb.Handler_LogsClient) error {
	batch, err := stream.Recv()
	if err != nil {
		return err
	}
	return r.batch(batch)
}

func (r *runner) batch(batch *pluginpb.LogBatch) error {
	for _, line := range batch.GetLines() {
		f, ended := r.flight(line.GetId())
		if f == nil {
			if ended {
				continue
			}
			return violated("a log line of attempt %d, which is not in flight", line.GetId())
		}
		if err := f.log(line); err != nil {
			return err
		}
	}
	r.logs.add(uint64(len(batch.GetLines())) + batch.GetDropped())
	return nil
}

// logProgress counts the log lines received, and lets an attempt wait for its own.
type logProgress struct {
	mu      sync.Mutex
	seen    uint64
	waiting []logWait
}

type logWait struct {
	upTo uint64
	done chan struct{}
}

func (l *logProgress) add(n uint64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.seen += n
	kept := l.waiting[:0]
	for _, w := range l.waiting {
		if w.upTo <= l.seen {
			close(w.done)
		} else {
			kept = append(kept, w)
		}
	}
	clear(l.waiting[len(kept):])
	l.waiting = kept
}

// wait returns when so many lines were received, or the runner is dead, or after a moment: log lines are not worth holding up a job for long.
func (l *logProgress) wait(upTo uint64, dead <-chan struct{}) {
	l.mu.Lock()
	if upTo <= l.seen {
		l.mu.Unlock()
		return
	}
	w := logWait{upTo, make(chan struct{})}
	l.waiting = append(l.waiting, w)
	l.mu.Unlock()
	timer := time.NewTimer(logWaitMax)
	defer timer.Stop()
	select {
	case <-w.done:
	case <-dead:
	case <-timer.C:
	}
}

const logWaitMax = time.Second

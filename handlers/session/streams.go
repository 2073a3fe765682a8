package session

import (
	"errors"
	"sync"
	"time"

	"github.com/taskhost/taskhost/abi/pluginpb"
)

// receive calls next until it fails. The end of a stream is the end of the far side, which its owner notices; a violation is told.
func (s *Session) receive(next func() error) {
	for {
		err := next()
		if err == nil {
			continue
		}
		if v, ok := errors.AsType[*Violation](err); ok {
			s.fault(v)
		}
		return
	}
}

func (s *Session) sendWork(stream pluginpb.Handler_WorkClient) {
	msg := &pluginpb.HostFrames{}
	// An error is the end of the stream, which the reader sees as well.
	_ = s.work.Run(stream.Context(), func(frames []*pluginpb.HostFrame) error {
		msg.Frames = frames
		return stream.Send(msg)
	})
}

func (s *Session) sendReplies(stream pluginpb.Handler_CallsClient) {
	_ = s.calls.Run(stream.Context(), func(replies []*pluginpb.Reply) error {
		for _, reply := range replies {
			if err := stream.Send(reply); err != nil {
				return err
			}
		}
		return nil
	})
}

// attempt returns the attempt a frame is about. Without one, ended tells whether there has been one.
func (s *Session) attempt(id uint64) (a *Attempt, ended bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.attempts[id], id > 0 && id <= s.lastID
}

func (s *Session) receiveWork(stream pluginpb.Handler_WorkClient) error {
	msg, err := stream.Recv()
	if err != nil {
		return err
	}
	for _, frame := range msg.GetFrames() {
		if err := s.frame(frame); err != nil {
			return err
		}
	}
	return nil
}

func (s *Session) frame(frame *pluginpb.HandlerFrame) error {
	a, _ := s.attempt(frame.GetId())
	if a == nil {
		return violated("a frame for attempt %d, which is not in flight", frame.GetId())
	}
	switch k := frame.GetKind().(type) {
	case *pluginpb.HandlerFrame_Output:
		return a.addOutput(k.Output)
	case *pluginpb.HandlerFrame_Progress:
		return a.progress(k.Progress)
	case *pluginpb.HandlerFrame_Done:
		return a.finish(k.Done)
	}
	return violated("a frame without a kind")
}

func (s *Session) receiveCall(stream pluginpb.Handler_CallsClient) error {
	call, err := stream.Recv()
	if err != nil {
		return err
	}
	return s.call(call)
}

func (s *Session) call(call *pluginpb.Call) error {
	a, ended := s.attempt(call.GetId())
	if a == nil {
		if ended { // it has stopped waiting and ended
			return nil
		}
		return violated("a call of attempt %d, which is not in flight", call.GetId())
	}
	switch k := call.GetKind().(type) {
	case *pluginpb.Call_CheckpointPut:
		return a.beginCheckpoint(int(k.CheckpointPut.GetBytes()), k.CheckpointPut.GetData())
	case *pluginpb.Call_Data:
		return a.addCheckpoint(k.Data)
	}
	return violated("a call without a kind")
}

func (s *Session) receiveLogs(stream pluginpb.Handler_LogsClient) error {
	batch, err := stream.Recv()
	if err != nil {
		return err
	}
	return s.batch(batch)
}

func (s *Session) batch(batch *pluginpb.LogBatch) error {
	for _, line := range batch.GetLines() {
		a, ended := s.attempt(line.GetId())
		if a == nil {
			if ended {
				continue
			}
			return violated("a log line of attempt %d, which is not in flight", line.GetId())
		}
		if err := a.log(line); err != nil {
			return err
		}
	}
	s.logs.add(uint64(len(batch.GetLines())) + batch.GetDropped())
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

// wait returns when so many lines were received, or the far side is gone, or after a moment: log lines are not worth holding up a
// job for long.
func (l *logProgress) wait(upTo uint64, gone <-chan struct{}) {
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
	case <-gone:
	case <-timer.C:
	}
}

const logWaitMax = time.Second

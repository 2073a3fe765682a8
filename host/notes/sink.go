package notes

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/taskhost/taskhost/handlers"
	"github.com/taskhost/taskhost/host/outage"
	"github.com/taskhost/taskhost/queue"
)

// Sink is the handlers.Events of one attempt. It is meant to be embedded in what owns the attempt; fill it in with Init.
// Reports after Close are dropped.
type Sink struct {
	f               *Flusher
	ref             queue.Ref
	logBytes        int
	checkpointBytes int

	writing sync.Mutex // one write of this sink at a time, so that lines keep their order

	mu       sync.Mutex
	lines    []queue.LogLine
	bytes    int // of all messages so far
	full     bool
	progress queue.Progress
	moved    bool // progress is not written yet
	queued   bool // in the flusher's list
	used     bool // something was reported
	closed   bool
}

var _ handlers.Events = (*Sink)(nil)

// Init prepares the sink for one attempt, with the limits in force for it.
func (s *Sink) Init(f *Flusher, ref queue.Ref, l handlers.Limits) {
	s.f, s.ref, s.logBytes, s.checkpointBytes = f, ref, l.LogBytes, l.CheckpointBytes
}

// Log takes a line. It never blocks: what is beyond the limit of the attempt is dropped; the first such line is still handed
// to the store, which marks the log as truncated.
func (s *Sink) Log(at time.Time, level, message string) {
	if queue.ValidLogLevel(level) != nil {
		level = "info"
	}
	s.mu.Lock()
	if s.closed || s.full || s.f.o.Store == nil {
		s.mu.Unlock()
		s.f.counts.dropped.Add(1)
		return
	}
	s.bytes += len(message)
	s.full = s.bytes > s.logBytes
	s.lines = append(s.lines, queue.LogLine{At: at, Level: level, Message: message})
	s.mark()
}

// Progress takes a report; only the last one is written.
func (s *Sink) Progress(done, total int64, message string) {
	s.mu.Lock()
	if s.closed || s.f.o.Store == nil {
		s.mu.Unlock()
		return
	}
	s.progress, s.moved = queue.Progress{Done: done, Total: total, Message: message}, true
	s.mark()
}

// mark unlocks the sink and puts it into the flusher's list.
func (s *Sink) mark() {
	put := !s.queued
	s.queued, s.used = true, true
	s.mu.Unlock()
	if put {
		s.f.enqueue(s)
	}
}

// Checkpoint stores data for the next attempt and returns when it is durable. It answers a *queue.LimitError for too much
// data and handlers.ErrLeaseLost when the job is no longer this attempt's.
func (s *Sink) Checkpoint(ctx context.Context, data []byte) error {
	if s.f.o.Store == nil {
		return errors.New("checkpoint: the store keeps no checkpoints")
	}
	if len(data) > s.checkpointBytes {
		return &queue.LimitError{Field: "checkpoint", Limit: "checkpoint", Max: int64(s.checkpointBytes), Got: int64(len(data)), Unit: "bytes"}
	}
	if err := s.f.o.Store.PutCheckpoint(ctx, s.ref, data); err != nil {
		if errors.Is(err, queue.ErrLeaseLost) {
			return handlers.ErrLeaseLost
		}
		return fmt.Errorf("checkpoint: %w", err)
	}
	s.f.counts.checkpoints.Add(1)
	return nil
}

// Close writes what is left; the attempt may be settled after it. When the store does not take it in time, it is
// dropped, counted and logged: the end of a job does not wait for its log.
func (s *Sink) Close() {
	s.mu.Lock()
	s.closed = true
	used := s.used
	s.mu.Unlock()
	if !used {
		return
	}
	// Also when nothing is left: a write of the flusher may be under way, and it has to arrive before the settlement.
	ctx, cancel := context.WithTimeout(context.Background(), s.f.o.LastTry)
	defer cancel()
	backoff := outage.BackoffDefault()
	for n := 1; ; n++ {
		err := s.flush(ctx)
		if err == nil {
			return
		}
		if outage.Sleep(ctx, backoff.Delay(n, s.f.o.Random())) != nil {
			s.mu.Lock()
			lost := len(s.lines)
			s.lines, s.moved = nil, false
			s.mu.Unlock()
			s.f.counts.dropped.Add(int64(lost))
			s.f.o.Log.Warn("last notes of a job dropped: the store did not take them", "job", s.ref.ID, "lines", lost, "error", err)
			return
		}
	}
}

// flush writes what gathered. An error means that it is kept and may be tried again.
func (s *Sink) flush(ctx context.Context) error {
	s.writing.Lock()
	defer s.writing.Unlock()
	s.mu.Lock()
	lines, progress, moved := s.lines, s.progress, s.moved
	s.lines, s.moved, s.queued = nil, false, false
	s.mu.Unlock()
	if len(lines) > 0 {
		if err := s.f.o.Store.AppendLogs(ctx, s.ref, lines); err != nil {
			if s.f.final(err) {
				s.f.counts.dropped.Add(int64(len(lines)))
				return nil
			}
			s.keep(lines, progress, moved)
			return err
		}
		s.f.counts.written.Add(int64(len(lines)))
	}
	if moved {
		if err := s.f.o.Store.SetProgress(ctx, s.ref, progress); err != nil && !s.f.final(err) {
			s.keep(nil, progress, true)
			return err
		}
		s.f.counts.progress.Add(1)
	}
	return nil
}

// final reports whether trying again cannot help.
func (f *Flusher) final(err error) bool {
	return errors.Is(err, queue.ErrLeaseLost) || errors.Is(err, queue.ErrNotFound) || errors.Is(err, queue.ErrInvalid) || errors.Is(err, queue.ErrClosed)
}

// keep puts back what could not be written, before what came since.
func (s *Sink) keep(lines []queue.LogLine, progress queue.Progress, moved bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lines = append(lines, s.lines...)
	if moved && !s.moved {
		s.progress, s.moved = progress, true
	}
}

// again puts the sink back into the flusher's list, unless it was closed: Close tries by itself.
func (s *Sink) again() {
	s.mu.Lock()
	if s.closed || s.queued {
		s.mu.Unlock()
		return
	}
	s.mark()
}

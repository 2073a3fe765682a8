package handlertest

import (
	"context"
	"sync"
	"time"

	"github.com/taskhost/taskhost/handlers"
)

// Recorder is a handlers.Events that keeps what it is told. The zero value is ready to use.
type Recorder struct {
	// OnCheckpoint, when set, answers Checkpoint instead of recording it.
	OnCheckpoint func(ctx context.Context, data []byte) error
	// Notify, when set, is called after every event, outside the lock.
	Notify func()

	mu          sync.Mutex
	lines       []Line
	progress    []Progress
	checkpoints [][]byte
}

var _ handlers.Events = (*Recorder)(nil)

// Line is one log line.
type Line struct {
	At      time.Time
	Level   string
	Message string
}

// Progress is one report of progress.
type Progress struct {
	Done, Total int64
	Message     string
}

// Log keeps a line.
func (r *Recorder) Log(at time.Time, level, message string) {
	r.mu.Lock()
	r.lines = append(r.lines, Line{at, level, message})
	r.mu.Unlock()
	r.notify()
}

// Progress keeps a report.
func (r *Recorder) Progress(done, total int64, message string) {
	r.mu.Lock()
	r.progress = append(r.progress, Progress{done, total, message})
	r.mu.Unlock()
	r.notify()
}

// Checkpoint keeps a copy of data.
func (r *Recorder) Checkpoint(ctx context.Context, data []byte) error {
	if r.OnCheckpoint != nil {
		return r.OnCheckpoint(ctx, data)
	}
	r.mu.Lock()
	r.checkpoints = append(r.checkpoints, append([]byte{}, data...))
	r.mu.Unlock()
	r.notify()
	return nil
}

func (r *Recorder) notify() {
	if r.Notify != nil {
		r.Notify()
	}
}

// Lines returns the lines so far.
func (r *Recorder) Lines() []Line {
	r.mu.Lock()
	defer r.mu.Unlock()
	return append([]Line(nil), r.lines...)
}

// Reports returns the reports of progress so far.
func (r *Recorder) Reports() []Progress {
	r.mu.Lock()
	defer r.mu.Unlock()
	return append([]Progress(nil), r.progress...)
}

// Checkpoints returns the checkpoints so far.
func (r *Recorder) Checkpoints() [][]byte {
	r.mu.Lock()
	defer r.mu.Unlock()
	return append([][]byte(nil), r.checkpoints...)
}

package runner

import (
	"context"
	"sync"

	"google.golang.org/protobuf/proto"

	"github.com/taskhost/taskhost/abi/pluginpb"
)

// Bounds of the log lines that wait to be sent.
const (
	ringBytes = 4 << 20
	lineCost  = 64 // charged for each line besides its text
)

// logRing holds log lines until they are sent. Adding never waits: when the host does not keep up, the newest lines are lost and counted.
type logRing struct {
	mu      sync.Mutex
	lines   []*pluginpb.LogLine
	bytes   int
	dropped uint64 // since the last batch
	seq     uint64 // lines ever added, lost ones too
	wake    chan struct{}
}

func newLogRing() *logRing { return &logRing{wake: make(chan struct{}, 1)} }

func (l *logRing) add(line *pluginpb.LogLine) {
	l.mu.Lock()
	l.seq++
	if cost := len(line.GetMessage()) + lineCost; l.bytes+cost > ringBytes {
		l.dropped++
	} else {
		l.bytes += cost
		l.lines = append(l.lines, line)
	}
	l.mu.Unlock()
	select {
	case l.wake <- struct{}{}:
	default:
	}
}

// sequence is how many lines were ever added.
func (l *logRing) sequence() uint64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.seq
}

// batch takes lines that fit into one message. Lines lost are counted in the batch after the lines that came before them.
func (l *logRing) batch() *pluginpb.LogBatch {
	l.mu.Lock()
	defer l.mu.Unlock()
	room, n := pluginpb.MaxMessage-64, 0
	for ; n < len(l.lines); n++ {
		if room -= proto.Size(l.lines[n]) + 4; room < 0 && n > 0 {
			break
		}
		l.bytes -= len(l.lines[n].GetMessage()) + lineCost
	}
	b := &pluginpb.LogBatch{Lines: l.lines[:n:n]}
	if l.lines = l.lines[n:]; len(l.lines) == 0 {
		l.lines = nil
		b.Dropped, l.dropped = l.dropped, 0
	}
	if len(b.Lines) == 0 && b.Dropped == 0 {
		return nil
	}
	return b
}

func (l *logRing) run(ctx context.Context, send func(*pluginpb.LogBatch) error) error {
	for {
		if b := l.batch(); b != nil {
			if err := send(b); err != nil {
				return err
			}
			continue
		}
		select {
		case <-l.wake:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

package notes

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/taskhost/taskhost/handlers"
	"github.com/taskhost/taskhost/host/lifecycle"
	"github.com/taskhost/taskhost/host/lifecycle/lifecycletest"
	"github.com/taskhost/taskhost/queue"
)

// book is a store that notes what it gets.
type book struct {
	mu          sync.Mutex
	err         error
	begun       chan struct{} // when set, AppendLogs says that it began, and waits for end
	end         chan struct{}
	appends     int
	lines       []string
	progress    []int64
	checkpoints int
}

func (b *book) fail(err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.err = err
}

func (b *book) AppendLogs(_ context.Context, _ queue.Ref, lines []queue.LogLine) error {
	if b.begun != nil {
		b.begun <- struct{}{}
		<-b.end
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.err != nil {
		return b.err
	}
	b.appends++
	for _, l := range lines {
		b.lines = append(b.lines, l.Message)
	}
	return nil
}

func (b *book) SetProgress(_ context.Context, _ queue.Ref, p queue.Progress) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.err != nil {
		return b.err
	}
	b.progress = append(b.progress, p.Done)
	return nil
}

func (b *book) PutCheckpoint(context.Context, queue.Ref, []byte) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.err != nil {
		return b.err
	}
	b.checkpoints++
	return nil
}

func pair(t *testing.T, store Store) (*Flusher, *Sink) {
	t.Helper()
	f := New(Options{Store: store, Log: slog.New(slog.NewTextHandler(t.Output(), nil)), Random: func() float64 { return 0 }})
	s := &Sink{}
	s.Init(f, queue.Ref{ID: "job_1"}, handlers.Limits{LogBytes: 100, CheckpointBytes: 10})
	return f, s
}

func start(t *testing.T, f *Flusher) {
	t.Helper()
	if err := f.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
}

func TestReportsAreGathered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := &book{}
		f, s := pair(t, b)
		start(t, f)
		for i := range 10 {
			s.Log(time.Now(), "info", fmt.Sprint(i))
			s.Progress(int64(i), 10, "")
		}
		time.Sleep(GatherDefault + time.Millisecond)
		synctest.Wait()
		if b.appends != 1 || len(b.lines) != 10 || fmt.Sprint(b.progress) != "[9]" {
			t.Errorf("%d appends, lines %v, progress %v; want one append and the last progress", b.appends, b.lines, b.progress)
		}
		s.Log(time.Now(), "info", "last")
		s.Close()
		if n := len(b.lines); n != 11 {
			t.Errorf("%d lines after Close, want 11 at once", n)
		}
		s.Log(time.Now(), "info", "too late")
		f.Stop()
		if st := f.Stats(); st.LinesWritten != 11 || st.LinesDropped != 1 || st.Progress != 1 {
			t.Errorf("%+v", st)
		}
	})
}

func TestCloseWaitsForAWriteUnderWay(t *testing.T) {
	b := &book{begun: make(chan struct{}), end: make(chan struct{})}
	f, s := pair(t, b)
	start(t, f)
	s.Log(time.Now(), "info", "a")
	<-b.begun
	closed := make(chan struct{})
	go func() {
		s.Close()
		close(closed)
	}()
	select {
	case <-closed:
		t.Error("closed before the line arrived: the settlement would overtake it")
	case <-time.After(20 * time.Millisecond):
	}
	b.end <- struct{}{}
	<-closed
	f.Stop()
	if len(b.lines) != 1 {
		t.Errorf("%d lines, want 1", len(b.lines))
	}
}

func TestLinesOutliveAnOutageInOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := &book{err: queue.ErrUnavailable}
		f, s := pair(t, b)
		start(t, f)
		for i := range 5 {
			s.Log(time.Now(), "info", fmt.Sprint(i))
			time.Sleep(time.Second)
		}
		b.fail(nil)
		time.Sleep(time.Minute)
		synctest.Wait()
		if got := fmt.Sprint(b.lines); got != "[0 1 2 3 4]" {
			t.Errorf("lines %s", got)
		}
		b.fail(queue.ErrUnavailable)
		s.Log(time.Now(), "info", "lost")
		begin := time.Now()
		s.Close()
		if took := time.Since(begin); took > LastTryDefault+time.Second {
			t.Errorf("Close took %s of an outage", took)
		}
		f.Stop()
		if n := f.Stats().LinesDropped; n != 1 {
			t.Errorf("%d dropped, want 1 counted", n)
		}
	})
}

func TestMemoryIsBoundedAndTheStoreLearnsOfTheCut(t *testing.T) {
	b := &book{}
	f, s := pair(t, b)
	for range 1000 {
		s.Log(time.Now(), "info", "0123456789012345678901234567890123456789") // 40 bytes, the limit is 100
	}
	s.Close()
	if len(b.lines) != 3 { // the third is over the limit, and tells the store so
		t.Errorf("%d lines kept, want 3", len(b.lines))
	}
	if n := f.Stats().LinesDropped; n != 997 {
		t.Errorf("%d dropped, want 997", n)
	}
}

func TestCheckpoint(t *testing.T) {
	b := &book{}
	f, s := pair(t, b)
	if err := s.Checkpoint(t.Context(), make([]byte, 10)); err != nil || b.checkpoints != 1 || f.Stats().Checkpoints != 1 {
		t.Errorf("%v, %d stored", err, b.checkpoints)
	}
	err := s.Checkpoint(t.Context(), make([]byte, 11))
	if l, ok := errors.AsType[*queue.LimitError](err); !ok || l.Got != 11 || l.Max != 10 {
		t.Errorf("over the limit: %v", err)
	}
	b.fail(queue.ErrLeaseLost)
	if err := s.Checkpoint(t.Context(), nil); !errors.Is(err, handlers.ErrLeaseLost) {
		t.Errorf("lost: %v, want handlers.ErrLeaseLost", err)
	}
	_, none := pair(t, nil)
	if err := none.Checkpoint(t.Context(), nil); err == nil {
		t.Error("a checkpoint that no store keeps was acknowledged")
	}
	none.Log(time.Now(), "info", "x")
	none.Progress(1, 2, "")
	none.Close()
}

func TestALostLeaseDropsAtOnce(t *testing.T) {
	b := &book{err: queue.ErrLeaseLost}
	f, s := pair(t, b)
	s.Log(time.Now(), "info", "x")
	s.Close()
	if n := f.Stats().LinesDropped; n != 1 {
		t.Errorf("%d dropped, want 1", n)
	}
}

func TestLifecycle(t *testing.T) {
	lifecycletest.Stress(t, func(t *testing.T) lifecycle.Service {
		f, s := pair(t, &book{})
		s.Log(time.Now(), "info", "x")
		return f
	})
}

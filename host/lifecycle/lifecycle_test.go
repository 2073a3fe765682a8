package lifecycle_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/taskhost/taskhost/host/lifecycle"
	"github.com/taskhost/taskhost/host/lifecycle/lifecycletest"
)

type ticking struct{ loop lifecycle.Loop }

func (s *ticking) Start(ctx context.Context) error {
	return s.loop.Go(ctx, func(ctx context.Context) { <-ctx.Done() })
}
func (s *ticking) Stop() { s.loop.Stop() }

func TestLoop(t *testing.T) {
	lifecycletest.Stress(t, func(*testing.T) lifecycle.Service { return &ticking{} })
}

func TestLoopOutlivesTheContextOfItsStart(t *testing.T) {
	type key struct{}
	ctx, cancel := context.WithCancel(context.WithValue(t.Context(), key{}, "v"))
	var l lifecycle.Loop
	ended := make(chan error, 1)
	if err := l.Go(ctx, func(ctx context.Context) {
		if ctx.Value(key{}) != "v" {
			t.Error("the values of the start's context are gone")
		}
		<-ctx.Done()
		ended <- context.Cause(ctx)
	}); err != nil {
		t.Fatal(err)
	}
	cancel()
	select {
	case err := <-ended:
		t.Fatalf("ended with its start's context: %v", err)
	case <-time.After(10 * time.Millisecond):
	}
	l.Stop()
	if err := <-ended; err == nil || errors.Is(err, context.Canceled) {
		t.Errorf("cause %v, want one that says it was stopped", err)
	}
	<-l.Finished()
}

func TestFinishedBeforeStartForbidsIt(t *testing.T) {
	var l lifecycle.Loop
	<-l.Finished()
	if err := l.Go(t.Context(), func(context.Context) {}); !errors.Is(err, lifecycle.ErrStopped) {
		t.Errorf("got %v, want ErrStopped", err)
	}
}

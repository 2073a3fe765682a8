// Package lifecycle is the discipline of everything in the host that runs in the background: it has one owner, starts
// once, and its Stop returns only when nothing of it runs any more.
//
//	new ──Start──► running ──Stop──► stopped
//	 └──────────────Stop──────────────┘
//
// A stopped service is not started again; its owner makes a new one.
package lifecycle

import (
	"context"
	"errors"
	"sync"
)

// Service is what an owner starts and stops.
type Service interface {
	// Start begins the background work. ctx bounds the start only: the work goes on until Stop. It returns ErrStarted
	// when called twice and ErrStopped after Stop.
	Start(ctx context.Context) error
	// Stop ends the work and returns when it has ended. It may be called twice, by several goroutines, and before Start.
	Stop()
}

// What Start answers when it is called out of turn.
var (
	ErrStarted = errors.New("already started")
	ErrStopped = errors.New("already stopped")
)

// Cause with which the context of a service's goroutines ends.
var errStopping = errors.New("service stopped")

// Loop gives a service with one background goroutine its Start and Stop. The zero value is ready.
type Loop struct {
	mu      sync.Mutex
	started bool
	stopped bool
	cancel  context.CancelCauseFunc
	done    chan struct{}
}

// Go runs fn in a goroutine until it returns; its context ends with Stop and keeps the values of ctx.
func (l *Loop) Go(ctx context.Context, fn func(ctx context.Context)) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case l.stopped:
		return ErrStopped
	case l.started:
		return ErrStarted
	}
	runCtx, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	l.started, l.cancel, l.done = true, cancel, make(chan struct{})
	go func() {
		defer close(l.done)
		fn(runCtx)
	}()
	return nil
}

// Stop ends the goroutine's context and waits for the goroutine.
func (l *Loop) Stop() {
	l.Interrupt()
	l.mu.Lock()
	done := l.done
	l.mu.Unlock()
	if done != nil {
		<-done
	}
}

// Interrupt ends the goroutine's context without waiting. Start answers ErrStopped from then on.
func (l *Loop) Interrupt() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.stopped = true
	if l.cancel != nil {
		l.cancel(errStopping)
	}
}

// Finished is closed when nothing of the service runs and nothing will: the goroutine returned, or it was never started
// and Stop or Interrupt forbids it. Before Start it forbids the start.
func (l *Loop) Finished() <-chan struct{} {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.done == nil {
		l.stopped = true
		l.done = make(chan struct{})
		close(l.done)
	}
	return l.done
}

package memq

import (
	"context"

	"github.com/taskhost/taskhost/queue"
)

type watch struct{ c chan struct{} }

// signal does not block: a signal that was not taken yet stands for this one too.
func (w *watch) signal() {
	select {
	case w.c <- struct{}{}:
	default:
	}
}

// WatchJob implements queue.Jobs.
func (s *Store) WatchJob(ctx context.Context, tenant, id string) (queue.Watch, error) {
	if err := s.lock(ctx); err != nil {
		return queue.Watch{}, err
	}
	defer s.mu.Unlock()
	r := s.find(tenant, id)
	if r == nil {
		return queue.Watch{}, queue.ErrNotFound
	}
	w := &watch{c: make(chan struct{}, 1)}
	w.signal()
	r.watches[w] = true
	stop := func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(r.watches, w)
	}
	return queue.Watch{C: w.c, Stop: stop}, nil
}

func (r *record) signalWatches() {
	for w := range r.watches {
		w.signal()
	}
}

func (r *record) closeWatches() {
	for w := range r.watches {
		close(w.c)
	}
	clear(r.watches)
}

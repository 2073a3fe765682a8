package sqliteq

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
	if err := s.enter(ctx); err != nil {
		return queue.Watch{}, err
	}
	_, seq, ok := s.ids.parse(id)
	if !ok {
		return queue.Watch{}, queue.ErrNotFound
	}
	w := &watch{c: make(chan struct{}, 1)}
	w.signal()
	s.mu.Lock()
	if s.watches[seq] == nil {
		s.watches[seq] = make(map[*watch]struct{})
	}
	s.watches[seq][w] = struct{}{}
	s.mu.Unlock()
	stop := func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.watches[seq], w)
		if len(s.watches[seq]) == 0 {
			delete(s.watches, seq)
		}
	}
	// Looked up after the watch is set, so that no change falls between.
	if _, err := s.GetJob(ctx, tenant, id); err != nil {
		stop()
		return queue.Watch{}, err
	}
	return queue.Watch{C: w.c, Stop: stop}, nil
}

// notify signals a change of a job; with s.mu held.
func (s *Store) notify(seq int64) {
	if len(s.watches) == 0 {
		return
	}
	for w := range s.watches[seq] {
		w.signal()
	}
}

// unwatch ends the watches of a job that is no more; with s.mu held.
func (s *Store) unwatch(seq int64) {
	if len(s.watches) == 0 {
		return
	}
	for w := range s.watches[seq] {
		close(w.c)
	}
	delete(s.watches, seq)
}

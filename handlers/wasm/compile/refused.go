package compile

import (
	"container/list"
	"sync"

	"github.com/taskhost/taskhost/handlers"
)

// Bounds of what is remembered of one refusal, so that the memory of them all is bounded.
const maxRememberedBytes = 16 << 10

// refusedSet remembers the refusals of the modules refused last, so that uploading a bomb again costs nothing. A module that was
// used least recently is forgotten first.
type refusedSet struct {
	mu    sync.Mutex
	most  int
	byKey map[string]*list.Element
	order *list.List // most recent first
}

type refusedEntry struct {
	key     string
	refusal *handlers.Refusal
}

func newRefusedSet(most int) *refusedSet {
	return &refusedSet{most: most, byKey: map[string]*list.Element{}, order: list.New()}
}

func (s *refusedSet) get(key string) *handlers.Refusal {
	s.mu.Lock()
	defer s.mu.Unlock()
	e, ok := s.byKey[key]
	if !ok {
		return nil
	}
	s.order.MoveToFront(e)
	return e.Value.(refusedEntry).refusal
}

func (s *refusedSet) add(key string, r *handlers.Refusal) {
	size := len(r.Reason)
	for _, d := range r.Details {
		size += len(d)
	}
	if size > maxRememberedBytes {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if e, ok := s.byKey[key]; ok {
		s.order.MoveToFront(e)
		return
	}
	s.byKey[key] = s.order.PushFront(refusedEntry{key, r})
	if s.order.Len() > s.most {
		last := s.order.Back()
		delete(s.byKey, last.Value.(refusedEntry).key)
		s.order.Remove(last)
	}
}

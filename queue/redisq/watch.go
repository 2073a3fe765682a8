package redisq

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"

	"github.com/redis/go-redis/v9"

	"github.com/taskhost/taskhost/queue"
)

// watches are the watched jobs (or kinds of records) of this store, behind one subscription on a connection of its own. Scripts publish
// only while somebody is subscribed to the channel 'watching' (or to that of the kind), so that nothing must be cleaned up after a host that died.
type watches struct {
	s       *Store
	channel string   // begins the name of each channel, without the prefix
	always  []string // channels subscribed to while anything is watched

	mu     sync.Mutex
	pubsub *redis.PubSub              // nil until the first watch
	jobs   map[string]map[*watch]bool // by short id, or kind
	asked  map[string][]chan struct{} // channels whose subscription has not been confirmed
	closed bool
	reader sync.WaitGroup
}

type watch struct{ c chan struct{} }

// signal does not block: a signal that was not taken yet stands for this one too.
func (w *watch) signal() {
	select {
	case w.c <- struct{}{}:
	default:
	}
}

func (ws *watches) init(s *Store, channel string, always ...string) {
	ws.channel, ws.always = s.prefix+channel, always
	ws.s, ws.jobs, ws.asked = s, make(map[string]map[*watch]bool), make(map[string][]chan struct{})
}

// WatchJob implements queue.Jobs.
func (s *Store) WatchJob(ctx context.Context, tenant, id string) (queue.Watch, error) {
	if err := s.enter(ctx); err != nil {
		return queue.Watch{}, err
	}
	key, ok := short(id)
	if !ok {
		return queue.Watch{}, queue.ErrNotFound
	}
	w := &watch{c: make(chan struct{}, 1)}
	if err := s.watches.add(ctx, key, w); err != nil {
		return queue.Watch{}, err
	}
	// Only now can no change be missed.
	if _, err := s.get(ctx, tenant, id, false); err != nil {
		s.watches.remove(key, w)
		return queue.Watch{}, err
	}
	w.signal()
	return queue.Watch{C: w.c, Stop: func() { s.watches.remove(key, w) }}, nil
}

// WatchRecords implements queue.RecordWatcher.
func (s *Store) WatchRecords(ctx context.Context, kind string) (queue.Watch, error) {
	if err := s.enter(ctx); err != nil {
		return queue.Watch{}, err
	}
	if err := notEmpty("kind", kind); err != nil {
		return queue.Watch{}, err
	}
	w := &watch{c: make(chan struct{}, 1)}
	if err := s.changes.add(ctx, kind, w); err != nil {
		return queue.Watch{}, err
	}
	w.signal()
	return queue.Watch{C: w.c, Stop: func() { s.changes.remove(kind, w) }}, nil
}

// add subscribes and waits until Redis has confirmed it.
func (ws *watches) add(ctx context.Context, key string, w *watch) error {
	ws.mu.Lock()
	if ws.closed {
		ws.mu.Unlock()
		return queue.ErrClosed
	}
	if ws.jobs[key] == nil {
		ws.jobs[key] = make(map[*watch]bool)
	}
	ws.jobs[key][w] = true
	confirmed := make(chan struct{})
	channel := ws.channel + key
	ws.asked[channel] = append(ws.asked[channel], confirmed)
	var err error
	if ws.pubsub == nil {
		ws.pubsub = ws.s.client.Subscribe(ws.s.life, ws.always...)
		ws.reader.Go(ws.read)
	}
	err = ws.pubsub.Subscribe(ws.s.life, channel) // again for a channel we have: it is confirmed again
	ws.mu.Unlock()
	if err != nil {
		ws.remove(key, w)
		return ws.s.failure(ctx, "subscribe", err)
	}
	select {
	case <-confirmed:
		return nil
	case <-ctx.Done():
		err = context.Cause(ctx)
	case <-ws.s.life.Done():
		err = queue.ErrClosed
	}
	ws.remove(key, w)
	return err
}

// remove ends a watch; the last one of a job ends its subscription, the last one of all the subscription to 'watching'.
func (ws *watches) remove(key string, w *watch) {
	ws.mu.Lock()
	defer ws.mu.Unlock()
	if !ws.jobs[key][w] {
		return
	}
	delete(ws.jobs[key], w)
	ws.trim(key)
}

func (ws *watches) trim(key string) {
	if len(ws.jobs[key]) > 0 || ws.closed {
		return
	}
	delete(ws.jobs, key)
	var err error
	if len(ws.jobs) == 0 {
		err = ws.pubsub.Close() // ends its reader too
		ws.pubsub = nil
	} else {
		err = ws.pubsub.Unsubscribe(ws.s.life, ws.channel+key)
	}
	if err != nil {
		ws.s.o.Logger.Debug("a watch's subscription did not end properly", "error", err)
	}
}

// read hands out what the subscription brings, until it is closed.
func (ws *watches) read() {
	ws.mu.Lock()
	p := ws.pubsub
	ws.mu.Unlock()
	for p != nil {
		m, err := p.Receive(ws.s.life)
		ws.mu.Lock()
		if p != ws.pubsub || ws.closed {
			ws.mu.Unlock()
			return
		}
		ws.handle(m, err)
		ws.mu.Unlock()
		if err != nil && !pause(ws.s.life) {
			return
		}
	}
}

func (ws *watches) handle(m any, err error) {
	if err != nil {
		if !errors.Is(err, context.Canceled) {
			ws.s.o.Logger.Warn("the subscription of watches failed and is made again", "error", err)
		}
		return
	}
	switch m := m.(type) {
	case *redis.Subscription:
		for _, c := range ws.asked[m.Channel] {
			close(c)
		}
		delete(ws.asked, m.Channel)
		if key, ok := strings.CutPrefix(m.Channel, ws.channel); ok && m.Kind == "subscribe" {
			for w := range ws.jobs[key] { // after a break something may have been missed
				w.signal()
			}
		}
	case *redis.Message:
		key := strings.TrimPrefix(m.Channel, ws.channel)
		for w := range ws.jobs[key] {
			if m.Payload == "gone" {
				close(w.c)
				delete(ws.jobs[key], w)
			} else {
				w.signal()
			}
		}
		if ws.jobs[key] != nil {
			ws.trim(key)
		}
	}
}

func (ws *watches) close() {
	ws.mu.Lock()
	ws.closed = true
	var err error
	if ws.pubsub != nil {
		err = ws.pubsub.Close()
	}
	for _, list := range ws.jobs {
		for w := range list {
			close(w.c)
		}
	}
	clear(ws.jobs)
	ws.mu.Unlock()
	ws.reader.Wait()
	if err != nil {
		ws.s.o.Logger.Debug("closing the subscription of watches", "error", fmt.Errorf("pubsub: %w", err))
	}
}

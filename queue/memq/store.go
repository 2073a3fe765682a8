package memq

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/taskhost/taskhost/queue"
)

// Options of New. The zero value is a store on the machine's clock with the default limits.
type Options struct {
	Clock  queue.Clock  // default queue.SystemClock
	Limits queue.Limits // the zero value means queue.DefaultLimits
	Random io.Reader    // of ids and tokens; default crypto/rand
}

// Store is an in-memory store. It starts no goroutine.
type Store struct {
	clock  queue.Clock
	limits queue.Limits
	random io.Reader

	mu      sync.Mutex
	closed  bool
	changed chan struct{} // closed and replaced at every change

	ids         idMaker
	jobs        []*record // every job that exists, in the order of creation
	lines       map[lineKey][]*record
	views       map[string]*view     // by queue.View.Key
	buckets     map[queueKey]*bucket // of queues whose rate was charged
	costs       map[queueKey]int64   // while time is charged: eight times what jobs of the queue cost on average, in ms
	used        map[queueKey]*usage
	idempotency map[tenantKey]remembered
	unique      map[tenantKey]*record
	windows     map[tenantKey]window
	leases      map[string]namedLease
	records     map[recordKey]queue.Record
	scheduling  queue.Scheduling
	overrides   map[queueKey]queue.QueueSettings

	reservations int64 // ever
	enqueued     int64 // ever
	removed      int64 // ever
	revision     int64 // of the last record written
}

type queueKey struct{ tenant, queue string }

type tenantKey struct{ tenant, key string }

// window is a unique key that is held for a time.
type window struct {
	id    string
	until time.Time
}

// usage is what stays of a queue that ever got a job.
type usage struct{ served int64 }

var (
	_ queue.Queue        = (*Store)(nil)
	_ queue.Jobs         = (*Store)(nil)
	_ queue.Bulk         = (*Store)(nil)
	_ queue.Explainer    = (*Store)(nil)
	_ queue.Notes        = (*Store)(nil)
	_ queue.Queues       = (*Store)(nil)
	_ queue.Configurable = (*Store)(nil)
	_ queue.DeadLetters  = (*Store)(nil)
	_ queue.Leaser       = (*Store)(nil)
	_ queue.Records      = (*Store)(nil)
	_ queue.Auditor      = (*Store)(nil)
)

// New returns an empty store.
func New(o Options) *Store {
	if o.Clock == nil {
		o.Clock = queue.SystemClock()
	}
	if o.Limits == (queue.Limits{}) {
		o.Limits = queue.DefaultLimits()
	}
	if o.Random == nil {
		o.Random = rand.Reader
	}
	return &Store{
		clock:       o.Clock,
		limits:      o.Limits,
		random:      o.Random,
		changed:     make(chan struct{}),
		lines:       map[lineKey][]*record{},
		views:       map[string]*view{},
		buckets:     map[queueKey]*bucket{},
		costs:       map[queueKey]int64{},
		used:        map[queueKey]*usage{},
		idempotency: map[tenantKey]remembered{},
		unique:      map[tenantKey]*record{},
		windows:     map[tenantKey]window{},
		leases:      map[string]namedLease{},
		records:     map[recordKey]queue.Record{},
		overrides:   map[queueKey]queue.QueueSettings{},
	}
}

// lock begins a call: it fails with the context's cause when that has ended, and with ErrClosed.
func (s *Store) lock(ctx context.Context) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		return queue.ErrClosed
	}
	return nil
}

// broadcast wakes everyone who waits for a change.
func (s *Store) broadcast() {
	close(s.changed)
	s.changed = make(chan struct{})
}

func (s *Store) now() time.Time { return queue.Millis(s.clock.Now()) }

// Now implements queue.Queue.
func (s *Store) Now(ctx context.Context) (time.Time, error) {
	if err := s.lock(ctx); err != nil {
		return time.Time{}, err
	}
	defer s.mu.Unlock()
	return s.now(), nil
}

// Capabilities implements queue.Queue.
func (s *Store) Capabilities() queue.Capabilities {
	return queue.Capabilities{
		Name:        "memory",
		Durability:  "an acknowledged enqueue is lost when the process ends",
		Limitations: []queue.Limitation{queue.LimitationDurability},
	}
}

// Close implements queue.Queue.
func (s *Store) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil
	}
	s.closed = true
	s.broadcast()
	for _, r := range s.jobs {
		r.closeWatches()
	}
	return nil
}

// newToken makes the token of one batch. All jobs die with the process, so there is only one epoch.
func (s *Store) newToken() (queue.Token, error) {
	var b [16]byte
	if _, err := io.ReadFull(s.random, b[:]); err != nil {
		return "", fmt.Errorf("%w: no random bits for a token: %w", queue.ErrUnavailable, err)
	}
	return queue.Token("1-" + hex.EncodeToString(b[:])), nil
}

package redisq

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/taskhost/taskhost/queue"
	"github.com/taskhost/taskhost/queue/redisq/luaexec"
)

// Store is a store on one Redis. It is made by Open.
type Store struct {
	client  *redis.Client
	options *redis.Options // of client; blocking connections copy them
	address string         // for people
	o       Options
	prefix  string
	limits  queue.Limits
	clock   queue.Clock // nil = Redis TIME
	scripts map[string]*script
	exec    *luaexec.Executor // nil = Redis runs the scripts
	server  server
	lanes   *lanes
	outage  outage
	blocked blockers
	guards  blockers
	watches watches // of jobs
	changes watches // of records

	listScan, listReady int // bounds of a page, see list.go

	enqueues   chan *enqueueCall
	life       context.Context
	end        context.CancelCauseFunc
	workers    sync.WaitGroup
	guarding   sync.Once
	guardDelay time.Duration
	waits      atomic.Int64 // calls of Wait, to name each
	closing    sync.Once
	closeErr   error
}

var (
	_ queue.Queue         = (*Store)(nil)
	_ queue.Jobs          = (*Store)(nil)
	_ queue.Bulk          = (*Store)(nil)
	_ queue.Notes         = (*Store)(nil)
	_ queue.Queues        = (*Store)(nil)
	_ queue.Configurable  = (*Store)(nil)
	_ queue.DeadLetters   = (*Store)(nil)
	_ queue.Leaser        = (*Store)(nil)
	_ queue.Records       = (*Store)(nil)
	_ queue.RecordWatcher = (*Store)(nil)
	_ queue.Auditor       = (*Store)(nil)
)

// Open connects to Redis and looks whether it can hold jobs: version 7.0 or newer, not a cluster node, no eviction (see
// Options.AllowEviction), scripts and the store's own keys allowed. An error names what is missing; it is an ErrUnavailable when
// Redis does not answer, and a *queue.InvalidError for options or a server that cannot be used.
func Open(ctx context.Context, o Options) (*Store, error) {
	t, err := o.parse()
	if err != nil {
		return nil, err
	}
	scripts, err := loadScripts()
	if err != nil {
		return nil, err
	}
	l, err := newLanes()
	if err != nil {
		return nil, err
	}
	s := &Store{address: t.name(), o: o, prefix: t.prefix, limits: o.Limits, clock: o.Clock, scripts: scripts, lanes: l,
		listScan: listScan, listReady: listReady, guardDelay: guardDelay, enqueues: make(chan *enqueueCall, enqueueWaiting)}
	s.life, s.end = context.WithCancelCause(context.WithoutCancel(ctx))
	t.client.OnConnect = s.connected
	if t.failover != nil {
		t.failover.OnConnect = s.connected
	}
	s.client = t.connect()
	s.options = s.client.Options()
	s.guards.purpose = "guard:"
	if t.noLua {
		err = s.newExecutor()
	}
	if err == nil {
		err = s.probe(ctx)
	}
	s.watches.init(s, keyWatch, s.prefix+keyWatching)
	s.changes.init(s, keyChanged)
	if err != nil {
		s.end(queue.ErrClosed)
		return nil, joinClose(err, s.client.Close())
	}
	for range committers {
		s.workers.Go(s.commitEnqueues)
	}
	s.o.Logger.Info("redis store opened", "address", s.address, "db", t.client.DB, "prefix", t.prefix, "mode", s.mode(), "version", s.server.version, "durability", s.server.durability)
	return s, nil
}

func joinClose(err, closing error) error {
	if closing != nil {
		return fmt.Errorf("%w (and closing the connection: %w)", err, closing)
	}
	return err
}

// enter begins a call.
func (s *Store) enter(ctx context.Context) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if s.life.Err() != nil {
		return queue.ErrClosed
	}
	return nil
}

// Err says that Redis does not answer, and since when; nil when it answered the last call.
func (s *Store) Err() error {
	if since := s.outage.down(); !since.IsZero() {
		return fmt.Errorf("%w: no answer from Redis at %s for %s", queue.ErrUnavailable, s.address, time.Since(since).Round(time.Millisecond))
	}
	return nil
}

// Now implements queue.Queue.
func (s *Store) Now(ctx context.Context) (time.Time, error) {
	if err := s.enter(ctx); err != nil {
		return time.Time{}, err
	}
	if s.clock != nil {
		return queue.Millis(s.clock.Now()), nil
	}
	t, err := s.client.Time(ctx).Result()
	if err != nil {
		return time.Time{}, s.failure(ctx, "time", err)
	}
	return queue.Millis(t), nil
}

// Capabilities implements queue.Queue.
func (s *Store) Capabilities() queue.Capabilities {
	return queue.Capabilities{Name: "redis", Durability: s.server.durability, SharedDue: true, Limitations: []queue.Limitation{queue.LimitationListOrder}}
}

// Close implements queue.Queue.
func (s *Store) Close() error {
	s.closing.Do(func() {
		s.end(queue.ErrClosed)
		s.blocked.close()
		s.guards.close()
		s.workers.Wait()
		s.watches.close()
		s.changes.close()
		s.closeErr = s.client.Close()
	})
	return s.closeErr
}

// newToken makes the token of one batch: 128 random bits, so that it cannot be guessed, behind the epoch of this layout.
func newToken() (queue.Token, error) {
	var b [16]byte
	if _, err := rand.Read(b[:]); err != nil {
		return "", fmt.Errorf("%w: no random bits for a token: %w", queue.ErrUnavailable, err)
	}
	return queue.Token("1-" + hex.EncodeToString(b[:])), nil
}

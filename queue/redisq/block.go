package redisq

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/taskhost/taskhost/queue"
)

// blockers are the connections on which Wait and WaitDue block, one for each that blocks at the same time. They are not those of
// the store's client: go-redis does not end a blocking command when its context ends, so such a connection is closed under it.
type blockers struct {
	mu     sync.Mutex
	idle   []*blocker
	closed bool
}

// blocker is a client of one connection.
type blocker struct {
	client *redis.Client
	mu     sync.Mutex
	conn   net.Conn
}

// grace is how much longer than it was asked to a blocking command may take before its connection counts as broken.
const grace = 5 * time.Second

func (s *Store) newBlocker() *blocker {
	b := &blocker{}
	o := *s.options
	dial := o.Dialer
	if dial == nil {
		dial = redis.NewDialer(s.options)
	}
	o.Dialer = func(ctx context.Context, network, addr string) (net.Conn, error) {
		c, err := dial(ctx, network, addr)
		b.mu.Lock()
		defer b.mu.Unlock()
		b.conn = c
		return c, err
	}
	o.PoolSize, o.MinIdleConns, o.MaxIdleConns = 1, 0, 1
	o.ReadTimeout = -1
	o.MaxRetries = -1
	b.client = redis.NewClient(&o)
	return b
}

// cut closes the connection under a blocking command.
func (b *blocker) cut() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.conn != nil {
		_ = b.conn.Close() // the command fails, which is what is wanted
	}
}

func (p *blockers) take(s *Store) (*blocker, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return nil, queue.ErrClosed
	}
	if n := len(p.idle); n > 0 {
		b := p.idle[n-1]
		p.idle = p.idle[:n-1]
		return b, nil
	}
	return s.newBlocker(), nil
}

// give returns a blocker whose connection is sound.
func (p *blockers) give(b *blocker) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		_ = b.client.Close()
		return
	}
	p.idle = append(p.idle, b)
}

func (p *blockers) close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.closed = true
	for _, b := range p.idle {
		_ = b.client.Close()
	}
	p.idle = nil
}

// popped is how a blocking pop ended.
type popped struct {
	woken bool
	err   error
}

// block waits for a hint, at most so long, or until early fires. It returns whether a hint came.
func (s *Store) block(ctx context.Context, line string, most time.Duration, early <-chan time.Time) (bool, error) {
	b, err := s.blocked.take(s)
	if err != nil {
		return false, err
	}
	c := b.client.Conn() // stays on one connection: a cut one is not replaced under the command
	if err := ping(ctx, c); err != nil {
		_, _ = c.Close(), b.client.Close()
		return false, s.failure(ctx, "ping", err)
	}
	done := make(chan popped, 1)
	begun := time.Now()
	go func() {
		defer c.Close()
		_, err := c.Do(context.WithoutCancel(ctx), "blpop", s.prefix+keyWake+line, fmt.Sprintf("%.3f", most.Seconds())).Result()
		if errors.Is(err, redis.Nil) {
			done <- popped{}
			return
		}
		done <- popped{woken: err == nil, err: err}
	}()
	overdue := time.NewTimer(most + grace)
	defer overdue.Stop()
	select {
	case r := <-done:
		return s.unblocked(ctx, b, r, time.Since(begun)-most)
	case <-early:
		s.abandon(ctx, b, done, line, false)
		return false, nil
	case <-ctx.Done():
		s.abandon(ctx, b, done, line, true)
		return false, context.Cause(ctx)
	case <-s.life.Done():
		s.abandon(ctx, b, done, line, true)
		return false, queue.ErrClosed
	case <-overdue.C:
		s.outage.note()
		s.abandon(ctx, b, done, line, true)
		return false, fmt.Errorf("%w: redis did not answer within %s", queue.ErrUnavailable, most+grace)
	}
}

// ping makes sure of a connection before a command blocks on it.
func ping(ctx context.Context, c *redis.Conn) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), grace)
	defer cancel()
	return c.Ping(ctx).Err()
}

// unblocked deals with a command that ended by itself, late by so much (negative: early).
func (s *Store) unblocked(ctx context.Context, b *blocker, r popped, late time.Duration) (bool, error) {
	if r.err != nil {
		_ = b.client.Close()
		return false, s.failure(ctx, "blpop", r.err)
	}
	s.blocked.give(b)
	s.outage.late(late)
	return r.woken, nil
}

// abandon ends a blocking command whose caller gives up. Redis may have handed it a hint already: that is passed on.
func (s *Store) abandon(ctx context.Context, b *blocker, done <-chan popped, line string, pass bool) {
	b.cut()
	<-done
	_ = b.client.Close()
	if !pass {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
	defer cancel()
	args := []any{"evalsha", s.scripts["hint"].sha, 1, s.prefix, s.clockArg(), line}
	if err := s.client.Do(ctx, args...).Err(); redis.HasErrorPrefix(err, "NOSCRIPT") {
		args[0], args[1] = "eval", s.scripts["hint"].text
		err = s.client.Do(ctx, args...).Err()
		if err != nil {
			s.o.Logger.Debug("a hint could not be passed on; others look again by themselves", "error", err)
		}
	}
}

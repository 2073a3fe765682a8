package redisq

import (
	"context"
	"crypto/tls"
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
	purpose string // begins the name of each connection, where the client has one

	mu     sync.Mutex
	idle   []*blocker
	closed bool
	busy   sync.WaitGroup // blocking commands, until what they may have been handed is passed on
}

// blocker is a client of one connection.
type blocker struct {
	client *redis.Client
	mu     sync.Mutex
	conn   net.Conn
	gone   bool      // cut: there will be no other connection, on which the command would block after all
	sound  time.Time // when the connection was last known to be
}

// soundFor is how long a connection that answered needs no ping before a command blocks on it.
const soundFor = time.Second

// alive makes the kernel notice a peer that vanished, which no command would while one blocks.
var alive = net.KeepAliveConfig{Enable: true, Idle: 15 * time.Second, Interval: 5 * time.Second, Count: 3}

// grace is how much longer than it was asked to a blocking command may take before its connection counts as broken.
const grace = 5 * time.Second

func (p *blockers) newBlocker(s *Store) *blocker {
	b := &blocker{}
	o := *s.options
	if o.ClientName != "" {
		o.ClientName = p.purpose + o.ClientName
	}
	dial := o.Dialer
	if dial == nil {
		dial = redis.NewDialer(s.options)
	}
	o.Dialer = func(ctx context.Context, network, addr string) (net.Conn, error) {
		c, err := dial(ctx, network, addr)
		if err == nil {
			keepAlive(s, c)
		}
		b.mu.Lock()
		defer b.mu.Unlock()
		if err == nil && b.gone {
			_ = c.Close() // the command fails on it; of an error here the client would try to recover
		}
		b.conn = c
		return c, err
	}
	o.PoolSize, o.MinIdleConns, o.MaxIdleConns = 1, 0, 1
	o.ReadTimeout = -1
	o.MaxRetries = -1
	b.client = redis.NewClient(&o)
	return b
}

// keepAlive turns alive on for a connection.
func keepAlive(s *Store, c net.Conn) {
	if t, ok := c.(*tls.Conn); ok {
		c = t.NetConn()
	}
	t, ok := c.(*net.TCPConn)
	if !ok { // a UNIX socket: its peer cannot vanish
		return
	}
	if err := t.SetKeepAliveConfig(alive); err != nil {
		s.o.Logger.Debug("no keep-alive on a blocking connection: a peer that vanished is noticed later", "error", err)
	}
}

// cut closes the connection under a blocking command, for good: one that has not been sent yet fails as well.
func (b *blocker) cut() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.gone = true
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
	p.busy.Add(1)
	if n := len(p.idle); n > 0 {
		b := p.idle[n-1]
		p.idle = p.idle[:n-1]
		return b, nil
	}
	return p.newBlocker(s), nil
}

// give returns a blocker whose connection is sound.
func (p *blockers) give(b *blocker) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		_ = b.client.Close()
		return
	}
	b.sound = time.Now()
	p.idle = append(p.idle, b)
}

// close ends the connections, once those who block have ended, which the end of the store's life makes them do.
func (p *blockers) close() {
	p.mu.Lock()
	p.closed = true
	for _, b := range p.idle {
		_ = b.client.Close()
	}
	p.idle = nil
	p.mu.Unlock()
	p.busy.Wait()
}

// popped is how a blocking pop ended.
type popped struct {
	token string // "" for none
	err   error
}

// wish is what a caller blocks for.
type wish struct {
	keys  []string         // the lists, without the prefix
	most  time.Duration    // at most so long, at least 1 ms
	early <-chan time.Time // or until this fires; may be nil
	pass  func()           // passes a token on that a caller who gives up may have taken
}

// block waits on a connection of p for a token and returns it; "" when none came.
func (s *Store) block(ctx context.Context, p *blockers, w wish) (string, error) {
	b, err := p.take(s)
	if err != nil {
		return "", err
	}
	defer p.busy.Done()
	c := b.client.Conn() // stays on one connection: a cut one is not replaced under the command
	if time.Since(b.sound) > soundFor {
		if err := ping(ctx, c); err != nil {
			_, _ = c.Close(), b.client.Close()
			return "", s.failure(ctx, "ping", err)
		}
	}
	args := []any{"blpop"}
	for _, k := range w.keys {
		args = append(args, s.prefix+k)
	}
	args = append(args, fmt.Sprintf("%.3f", w.most.Seconds()))
	done := make(chan popped, 1)
	begun := time.Now()
	go func() {
		defer c.Close()
		got, err := c.Do(context.WithoutCancel(ctx), args...).Slice()
		switch {
		case errors.Is(err, redis.Nil):
			done <- popped{}
		case err != nil:
			done <- popped{err: err}
		case len(got) != 2:
			done <- popped{err: fmt.Errorf("redis answered a pop with %d values", len(got))}
		default:
			done <- popped{token: asString(got[1])}
		}
	}()
	overdue := time.NewTimer(w.most + grace)
	defer overdue.Stop()
	giveUp := func() {
		b.cut()
		<-done
		_ = b.client.Close()
	}
	select {
	case r := <-done:
		if r.err != nil {
			_ = b.client.Close()
			return "", s.failure(ctx, "blpop", r.err)
		}
		p.give(b)
		s.outage.late(time.Since(begun) - w.most)
		return r.token, nil
	case <-w.early:
		giveUp()
		return "", nil
	case <-ctx.Done():
		giveUp()
		w.pass()
		return "", context.Cause(ctx)
	case <-s.life.Done():
		giveUp()
		w.pass()
		return "", queue.ErrClosed
	case <-overdue.C:
		s.outage.note()
		giveUp()
		w.pass()
		return "", fmt.Errorf("%w: redis did not answer within %s", queue.ErrUnavailable, w.most+grace)
	}
}

// ping makes sure of a connection before a command blocks on it.
func ping(ctx context.Context, c *redis.Conn) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), grace)
	defer cancel()
	return c.Ping(ctx).Err()
}

// passOn runs the script that gives a token to somebody else.
func (s *Store) passOn(ctx context.Context, script string, args ...any) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
	defer cancel()
	if _, err := s.run(ctx, script, args...); err != nil {
		s.o.Logger.Debug("a hint could not be passed on; others look again by themselves", "error", err)
	}
}

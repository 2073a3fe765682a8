package redistest

import (
	"bytes"
	"context"
	"errors"
	"net"
	"net/url"
	"sync"
)

// Proxy is a network between a store and a server that can lose replies: the command is executed, and its sender never learns.
type Proxy struct {
	target string
	l      net.Listener
	stop   context.CancelFunc // of dialling
	wg     sync.WaitGroup

	mu     sync.Mutex
	drop   int
	dropTo string // the next request that has it in it loses its reply
	lost   int
	conns  map[net.Conn]bool
	done   bool
}

// NewProxy listens in front of a server. Close ends it.
func NewProxy(ctx context.Context, s *Server) (*Proxy, error) {
	l, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	p := &Proxy{target: s.Addr(), l: l, conns: make(map[net.Conn]bool)}
	ctx, p.stop = context.WithCancel(context.WithoutCancel(ctx))
	p.wg.Go(func() { p.accept(ctx) })
	return p, nil
}

// URL is rawURL, which names the server, through the proxy.
func (p *Proxy) URL(rawURL string) (string, error) {
	u, err := url.Parse(rawURL)
	if err != nil {
		return "", err
	}
	u.Host = p.l.Addr().String()
	return u.String(), nil
}

// DropReplies loses the next n replies; each takes its connection with it.
func (p *Proxy) DropReplies(n int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.drop = n
}

// DropReplyTo loses the reply to the next request that has this text in it, together with its connection. The request is carried out.
func (p *Proxy) DropReplyTo(text string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.dropTo = text
}

// asks looks whether a request is the one whose reply is to be lost.
func (p *Proxy) asks(request []byte) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.dropTo != "" && bytes.Contains(request, []byte(p.dropTo)) {
		p.dropTo = ""
		p.drop++
	}
}

// Lost is how many replies were lost so far.
func (p *Proxy) Lost() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.lost
}

// Cut closes all connections.
func (p *Proxy) Cut() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for c := range p.conns {
		_ = c.Close() // whoever reads it finds out
	}
}

// Close ends the proxy and all connections through it.
func (p *Proxy) Close() error {
	p.mu.Lock()
	p.done = true
	p.mu.Unlock()
	p.stop()
	err := p.l.Close()
	p.Cut()
	p.wg.Wait()
	return err
}

func (p *Proxy) accept(ctx context.Context) {
	for {
		in, err := p.l.Accept()
		if err != nil {
			return
		}
		out, err := new(net.Dialer).DialContext(ctx, "tcp", p.target)
		if err != nil {
			_ = in.Close()
			continue
		}
		if !p.add(in, out) {
			return
		}
		p.wg.Go(func() { p.pipe(out, in, false) })
		p.wg.Go(func() { p.pipe(in, out, true) })
	}
}

func (p *Proxy) add(conns ...net.Conn) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, c := range conns {
		if p.done {
			_ = c.Close()
			continue
		}
		p.conns[c] = true
	}
	return !p.done
}

// loses says whether the reply that has just come is to be lost.
func (p *Proxy) loses() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.drop == 0 {
		return false
	}
	p.drop--
	p.lost++
	return true
}

func (p *Proxy) pipe(to, from net.Conn, replies bool) {
	defer func() {
		_ = errors.Join(to.Close(), from.Close())
		p.mu.Lock()
		defer p.mu.Unlock()
		delete(p.conns, from)
	}()
	b := make([]byte, 64<<10)
	for {
		n, err := from.Read(b)
		if err != nil || replies && p.loses() {
			return
		}
		if !replies {
			p.asks(b[:n])
		}
		if _, err := to.Write(b[:n]); err != nil {
			return
		}
	}
}

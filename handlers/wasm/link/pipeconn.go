package link

import (
	"errors"
	"net"
	"os"
	"time"
)

// PipeConn makes a connection of two pipes, one for each direction, where there are no socket pairs to inherit. It owns both. Deadlines
// are kept where the system's pipes have them and ignored where they do not: the ends are processes of one host, and whoever waits
// for the other is told when it dies.
func PipeConn(read, write *os.File) net.Conn { return &pipeConn{read, write} }

type pipeConn struct{ read, write *os.File }

func (c *pipeConn) Read(b []byte) (int, error)  { return c.read.Read(b) }
func (c *pipeConn) Write(b []byte) (int, error) { return c.write.Write(b) }
func (c *pipeConn) Close() error                { return errors.Join(c.write.Close(), c.read.Close()) }
func (c *pipeConn) LocalAddr() net.Addr         { return pipeAddr{} }
func (c *pipeConn) RemoteAddr() net.Addr        { return pipeAddr{} }

func (c *pipeConn) SetDeadline(t time.Time) error {
	return errors.Join(c.SetReadDeadline(t), c.SetWriteDeadline(t))
}

func (c *pipeConn) SetReadDeadline(t time.Time) error  { return without(c.read.SetReadDeadline(t)) }
func (c *pipeConn) SetWriteDeadline(t time.Time) error { return without(c.write.SetWriteDeadline(t)) }

func without(err error) error {
	if errors.Is(err, os.ErrNoDeadline) {
		return nil
	}
	return err
}

type pipeAddr struct{}

func (pipeAddr) Network() string { return "pipe" }
func (pipeAddr) String() string  { return "pipe" }

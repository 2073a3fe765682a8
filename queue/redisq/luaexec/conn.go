package luaexec

import (
	"context"
	"errors"
	"time"

	"github.com/redis/go-redis/v9"
)

// Connections takes connections from the pool of a client.
func Connections(c *redis.Client) func(context.Context) (Conn, error) {
	return func(context.Context) (Conn, error) { return execConn{c.Conn()}, nil }
}

// execConn is a connection of the client's pool for one run of a script.
type execConn struct{ c *redis.Conn }

// Do implements Conn.
func (e execConn) Do(ctx context.Context, cmds [][]string) ([]any, error) {
	replies := make([]any, len(cmds))
	sent := make([]*redis.Cmd, len(cmds))
	pipe := e.c.Pipeline()
	for i, c := range cmds {
		args := make([]any, len(c))
		for k, a := range c {
			args[k] = a
		}
		if len(cmds) == 1 {
			sent[i] = e.c.Do(ctx, args...)
		} else {
			sent[i] = pipe.Do(ctx, args...)
		}
	}
	if len(cmds) > 1 {
		_, _ = pipe.Exec(ctx) // each command has its own error
	}
	for i, c := range sent {
		v, err := c.Result()
		if replies[i], err = execReply(v, err); err != nil {
			return nil, err
		}
	}
	return replies, nil
}

// execReply tells error replies from failures of the connection.
func execReply(v any, err error) (any, error) {
	switch reply := redis.Error(nil); {
	case err == nil:
		if list, ok := v.([]any); ok {
			for i, e := range list {
				if e, ok := e.(error); ok {
					list[i] = Error(e.Error())
				}
			}
		}
		return v, nil
	case errors.Is(err, redis.Nil):
		return nil, nil //nolint:nilnil // nil is a reply
	case errors.As(err, &reply):
		return Error(err.Error()), nil
	}
	return nil, err
}

// Close implements Conn.
func (e execConn) Close(broken bool) {
	if broken {
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		_ = e.c.Do(ctx, "quit").Err() // Redis closes it, whatever it is amid
	}
	_ = e.c.Close()
}

package luaexec_test

import (
	"context"
	"fmt"
	"os"
	"sync/atomic"
	"testing"

	"github.com/redis/go-redis/v9"
	"go.uber.org/goleak"

	"github.com/taskhost/taskhost/queue/redisq/luaexec"
	"github.com/taskhost/taskhost/queue/redisq/redistest"
)

var shared redistest.Shared

func TestMain(m *testing.M) {
	code := m.Run()
	if err := shared.Stop(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = max(code, 1)
	}
	if code == 0 {
		if err := goleak.Find(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			code = 1
		}
	}
	os.Exit(code)
}

// client connects to the shared server; its pool has one connection, so that what a run left behind on it is met by the next.
func client(t testing.TB, size int) *redis.Client {
	t.Helper()
	c := redis.NewClient(&redis.Options{Addr: shared.Server(t).Addr(), Protocol: 2, DisableIdentity: true, MaxRetries: -1, PoolSize: size})
	t.Cleanup(func() {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	})
	return c
}

var prefixes atomic.Int64

func newPrefix() string { return fmt.Sprintf("x%d:", prefixes.Add(1)) }

// config is that of an executor for one prefix.
func config(c *redis.Client, prefix string) luaexec.Config {
	return luaexec.Config{Connect: luaexec.Connections(c), Rev: prefix + "rev", Lock: prefix + "lock", Mark: prefix + "mode", MarkValue: "nolua",
		Holder: fmt.Sprint("holder", prefixes.Add(1))}
}

func compile(t testing.TB, text string) *luaexec.Program {
	t.Helper()
	p, err := luaexec.Compile("test", text)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// run runs a script with a prefix for its key.
func run(t testing.TB, x *luaexec.Executor, prefix, text string, args ...string) any {
	t.Helper()
	v, err := x.Run(t.Context(), compile(t, text), []string{prefix}, args)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// spy is a connection that calls before a request is sent.
type spy struct {
	luaexec.Conn
	before func(cmds [][]string)
}

func (s spy) Do(ctx context.Context, cmds [][]string) ([]any, error) {
	s.before(cmds)
	return s.Conn.Do(ctx, cmds)
}

// spied lets before look at every request.
func spied(c luaexec.Config, before func(cmds [][]string)) luaexec.Config {
	connect := c.Connect
	c.Connect = func(ctx context.Context) (luaexec.Conn, error) {
		conn, err := connect(ctx)
		return spy{conn, before}, err
	}
	return c
}

// has reports whether a request has a command.
func has(cmds [][]string, name string) bool {
	for _, c := range cmds {
		if c[0] == name {
			return true
		}
	}
	return false
}

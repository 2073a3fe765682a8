package luaexec_test

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/taskhost/taskhost/queue/redisq/luaexec"
)

// add reads a number and writes it back with one more: runs that overlap would lose some.
const add = `#!lua
local call = redis.call
local n = tonumber(call('GET', KEYS[1] .. 'n') or 0) + 1
call('SET', KEYS[1] .. 'n', n)
call('SET', KEYS[1] .. 'copy', n)
return n
`

// Hosts that work on the same keys lose nothing, and all get their turn.
func TestHostsTakeTurns(t *testing.T) {
	t.Parallel()
	const hosts, each = 6, 25
	prefix := newPrefix()
	p := compile(t, add)
	var wg sync.WaitGroup
	for range hosts {
		x := luaexec.New(config(client(t, 2), prefix))
		for range 2 { // within a host too
			wg.Go(func() {
				for range each {
					if _, err := x.Run(t.Context(), p, []string{prefix}, nil); err != nil {
						t.Error(err)
						return
					}
				}
			})
		}
	}
	wg.Wait()
	c := client(t, 1)
	if n, err := c.Get(t.Context(), prefix+"n").Int(); err != nil || n != hosts*each*2 {
		t.Errorf("%d, %v, want %d", n, err, hosts*each*2)
	}
	if n := c.Exists(t.Context(), prefix+"lock").Val(); n != 0 {
		t.Error("the lock is still held")
	}
}

// What a script that only reads returns was true in one moment.
func TestReadsAreOfOneMoment(t *testing.T) {
	t.Parallel()
	prefix := newPrefix()
	writer, reader := luaexec.New(config(client(t, 2), prefix)), luaexec.New(config(client(t, 2), prefix))
	run(t, writer, prefix, add)
	ctx, stop := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	p := compile(t, add)
	wg.Go(func() {
		for ctx.Err() == nil {
			if _, err := writer.Run(ctx, p, []string{prefix}, nil); err != nil && ctx.Err() == nil {
				t.Error(err)
				return
			}
		}
	})
	both := compile(t, "#!lua flags=no-writes\nlocal call = redis.call\nlocal a = call('GET', KEYS[1] .. 'n')\nreturn {a, call('GET', KEYS[1] .. 'copy')}\n")
	moments := map[any]bool{}
	for len(moments) < 20 {
		v, err := reader.Run(t.Context(), both, []string{prefix}, nil)
		if err != nil {
			t.Fatal(err)
		}
		l := v.([]any)
		if l[0] != l[1] {
			t.Errorf("%v: two moments", l)
			break
		}
		moments[l[0]] = true
	}
	stop()
	wg.Wait()
}

// A change between the reads and EXEC makes the script run again, whatever the change was to.
func TestChangedMeanwhile(t *testing.T) {
	t.Parallel()
	other := client(t, 1)
	for what, change := range map[string]func(ctx context.Context, prefix string) error{
		"the revision": func(ctx context.Context, prefix string) error {
			return errors.Join(other.Set(ctx, prefix+"n", 41, 0).Err(), other.Incr(ctx, prefix+"rev").Err())
		},
		"the lock is gone": func(ctx context.Context, prefix string) error { return other.Del(ctx, prefix+"lock").Err() },
		"the mark":         func(ctx context.Context, prefix string) error { return other.Set(ctx, prefix+"mode", "nolua", 0).Err() },
		"a popped key":     func(ctx context.Context, prefix string) error { return other.RPush(ctx, prefix+"wake", "x").Err() },
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			prefix := newPrefix()
			c := config(client(t, 1), prefix)
			c.Popped = func(key string) bool { return key == prefix+"wake" }
			tries := 0
			x := luaexec.New(spied(c, func(cmds [][]string) {
				if !has(cmds, "exec") {
					return
				}
				if tries++; tries == 1 {
					if err := change(t.Context(), prefix); err != nil {
						t.Error(err)
					}
				}
			}))
			text := strings.Replace(add, "return n", "redis.call('SET', KEYS[1] .. 'waiting', redis.call('LLEN', KEYS[1] .. 'wake'))\nreturn n", 1)
			want := int64(1)
			if what == "the revision" {
				want = 42
			}
			if v := run(t, x, prefix, text); v != want || tries != 2 {
				t.Errorf("%v in %d tries, want %d in 2", v, tries, want)
			}
		})
	}
}

// A host that died with the lock holds up the others for the time of its lock, and no longer.
func TestDeadHolder(t *testing.T) {
	t.Parallel()
	c, prefix := client(t, 2), newPrefix()
	if err := c.Set(t.Context(), prefix+"lock", "somebody who died", 100*time.Millisecond).Err(); err != nil {
		t.Fatal(err)
	}
	waits := 0
	x := luaexec.New(spied(config(c, prefix), func(cmds [][]string) {
		if has(cmds, "unwatch") {
			waits++
		}
	}))
	if v := run(t, x, prefix, add); v != int64(1) || waits == 0 {
		t.Errorf("%v after %d waits, want 1 after some", v, waits)
	}
	// One that never lets go: the run gives up, and has changed nothing.
	if err := c.Set(t.Context(), prefix+"lock", "somebody else", 0).Err(); err != nil {
		t.Fatal(err)
	}
	k := config(c, prefix)
	k.Patience = 50 * time.Millisecond
	_, err := luaexec.New(k).Run(t.Context(), compile(t, add), []string{prefix}, nil)
	if busy := new(luaexec.BusyError); !errors.As(err, &busy) || busy.Script != "test" {
		t.Errorf("%v, want a BusyError", err)
	}
	if n := c.Get(t.Context(), prefix+"n").Val(); n != "1" {
		t.Errorf("n = %s", n)
	}
	// Reading needs no lock.
	if v := run(t, luaexec.New(k), prefix, "#!lua flags=no-writes\nreturn redis.call('GET', KEYS[1] .. 'n')\n"); v != "1" {
		t.Errorf("read %v", v)
	}
	// The lock that a lost call of one's own left behind is one's own.
	if err := c.Set(t.Context(), prefix+"lock", k.Holder, 0).Err(); err != nil {
		t.Fatal(err)
	}
	if v := run(t, luaexec.New(k), prefix, add); v != int64(2) {
		t.Errorf("%v, want 2", v)
	}
}

// A key that is there when the script asks and has expired when the transaction is executed: what the script went on with holds.
func TestKeyExpiresMeanwhile(t *testing.T) {
	t.Parallel()
	prefix, other := newPrefix(), client(t, 1)
	if err := other.Set(t.Context(), prefix+"k", "1", time.Second).Err(); err != nil {
		t.Fatal(err)
	}
	x := luaexec.New(spied(config(client(t, 2), prefix), func(cmds [][]string) {
		for ctx := context.WithoutCancel(t.Context()); has(cmds, "exec"); {
			if n, err := other.Exists(ctx, prefix+"k").Result(); n == 0 || err != nil {
				return
			}
		}
	}))
	text := "#!lua\nredis.call('SET', KEYS[1] .. 'n', 1)\nreturn redis.call('SET', KEYS[1] .. 'k', '2', 'NX', 'PX', 90000) and 1 or 0\n"
	if v, err := x.Run(t.Context(), compile(t, text), []string{prefix}, nil); err != nil || v != int64(0) {
		t.Errorf("%v, %v; want 0", v, err)
	}
	if n, err := other.Exists(t.Context(), prefix+"k").Result(); n != 0 || err != nil {
		t.Errorf("the key was set all the same: %d, %v", n, err)
	}
}

// However a run ends, it leaves a connection that is in no transaction and watches nothing, and no lock.
func TestNothingIsLeftBehind(t *testing.T) {
	t.Parallel()
	other := client(t, 1)
	cancelled, cancel := context.WithCancel(t.Context())
	for what, c := range map[string]struct {
		text string
		ctx  context.Context
		set  func(c *luaexec.Config, prefix string)
		want string
	}{
		"success":       {text: add},
		"an error":      {text: strings.Replace(add, "return n", "error('no')", 1), want: "no"},
		"an unknown":    {text: "#!lua\nreturn redis.call('KEYS', '*')\n", want: "not supported without Lua"},
		"read only":     {text: strings.Replace(add, "#!lua", "#!lua flags=no-writes", 1), want: "Write commands are not allowed"},
		"steps":         {text: "#!lua\nwhile true do pcall(function() while true do end end) end\n", want: "too many steps"},
		"calls":         {text: "#!lua\nfor i = 1, 1e9 do redis.call('SET', KEYS[1], i) end\n", want: "1000 calls"},
		"bytes":         {text: "#!lua\nfor i = 1, 1e9 do redis.call('SET', KEYS[1] .. i, string.rep('x', 1e6)) end\n", want: "bytes"},
		"a string":      {text: "#!lua\nlocal s = string.rep('x', 1e9)\n", want: "too large"},
		"depth":         {text: "#!lua\nlocal function f(n) return 1 + f(n + 1) end\nreturn f(1)\n", want: "stack overflow"},
		"a wrong value": {text: strings.Replace(add, "return n", "redis.call('HSET', KEYS[1] .. 'n', 'a', 1)", 1), want: "WRONGTYPE"},
		"found at exec": {text: "#!lua\nredis.call('HSET', KEYS[1] .. 'text', 'a', 1)\n", want: "WRONGTYPE"},
		"another mode": {text: add, want: `mode is "lua", not "nolua"`, set: func(_ *luaexec.Config, prefix string) {
			if err := other.Set(t.Context(), prefix+"mode", "lua", 0).Err(); err != nil {
				t.Error(err)
			}
		}},
		"cancelled": {text: add, ctx: cancelled, want: "context canceled", set: func(c *luaexec.Config, _ string) {
			*c = spied(*c, func(cmds [][]string) {
				if cmds[0][0] == "get" {
					cancel()
				}
			})
		}},
		"differs": {text: "#!lua\nreturn redis.call('RPUSH', KEYS[1] .. 'l', 'x')\n", want: "redis replied 2 to rpush", set: func(c *luaexec.Config, prefix string) {
			*c = spied(*c, func(cmds [][]string) {
				if has(cmds, "exec") { // somebody who does not raise the revision
					if err := other.RPush(context.WithoutCancel(t.Context()), prefix+"l", "y").Err(); err != nil {
						t.Error(err)
					}
				}
			})
		}},
	} {
		t.Run(what, func(t *testing.T) {
			pool, prefix := client(t, 1), newPrefix()
			if err := pool.Set(t.Context(), prefix+"text", "x", 0).Err(); err != nil {
				t.Fatal(err)
			}
			k := config(pool, prefix)
			k.Limits = luaexec.Limits{Steps: 1_000_000, Calls: 1000, Bytes: 10 << 20}
			if c.set != nil {
				c.set(&k, prefix)
			}
			ctx := c.ctx
			if ctx == nil {
				ctx = t.Context()
			}
			_, err := luaexec.New(k).Run(ctx, compile(t, c.text), []string{prefix}, nil)
			if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
				t.Fatalf("error %v, want one with %q", err, c.want)
			}
			if n := other.Exists(t.Context(), prefix+"lock").Val(); n != 0 {
				t.Error("the lock is still held")
			}
			// The only connection of the pool: what it still watches would fail this EXEC, what it is still amid would refuse MULTI.
			if err := other.Incr(t.Context(), prefix+"rev").Err(); err != nil {
				t.Fatal(err)
			}
			if _, err := pool.TxPipelined(t.Context(), func(p redis.Pipeliner) error { return p.Ping(t.Context()).Err() }); err != nil {
				t.Errorf("the connection was not given back as it was: %v", err)
			}
			if c.want != "" && what != "found at exec" && what != "differs" {
				if left := contents(t.Context(), t, other, prefix, "rev", "mode", "text"); len(left) > 0 {
					t.Errorf("it wrote %v", left)
				}
			}
		})
	}
}

// Reads that the last two runs asked for come with the first round trip.
func TestForesight(t *testing.T) {
	t.Parallel()
	prefix, trips := newPrefix(), 0
	x := luaexec.New(spied(config(client(t, 1), prefix), func([][]string) { trips++ }))
	text := "#!lua flags=no-writes\nlocal out = {}\nfor i = 1, 10 do out[i] = redis.call('HGET', KEYS[1] .. 'h', i) end\nreturn out[7]\n"
	p := compile(t, text)
	set := func(n int) {
		run(t, x, prefix, "#!lua\nfor i = 1, 10 do redis.call('HSET', KEYS[1] .. 'h', i, ARGV[1] + i) end\n", strconv.Itoa(n))
		trips = 0
	}
	for i, want := range []int{12, 12, 2, 2} {
		set(i * 100)
		v, err := x.Run(t.Context(), p, []string{prefix}, nil)
		if err != nil || v != fmt.Sprint(i*100+7) || trips != want {
			t.Errorf("run %d: %v in %d round trips, want %d in %d: %v", i, v, trips, i*100+7, want, err)
		}
	}
}

// Scripts that would mean something else here are refused.
func TestCompileRefuses(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"return 1":                                "must begin with #!lua",
		"#!lua flags=no-cluster\nreturn 1":        "no-cluster",
		"#!lua\nreturn (":                         "syntax error",
		"#!lua\nlocal call = print\ncall(1)":      "must mean redis.call",
		"#!lua\nlocal function f(call) end":       "must mean redis.call",
		"#!lua\nlocal function call() end":        "must mean redis.call",
		"#!lua\nlocal x = {function(call) end}":   "must mean redis.call",
		"#!lua\nfor call = 1, 2 do end":           "must mean redis.call",
		"#!lua\nlocal call\ncall = redis.call":    "must mean redis.call",
		"#!lua\nfor _, call in ipairs({}) do end": "must mean redis.call",
	} {
		if _, err := luaexec.Compile("x", text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
}

// FuzzUnpack feeds cmsgpack and struct what no client wrote: an error of the script, never a crash.
func FuzzUnpack(f *testing.F) {
	f.Add("\x93\x01\xa1a\x81\xa1k\xc0", ">dI2sc0")
	f.Add("\xdf\xff\xff\xff\xff", "i9")
	f.Add("\x81\xcb\x7f\xf8\x00\x00\x00\x00\x00\x00\x01", "<c99999999")
	p, err := luaexec.Compile("fuzz", "#!lua\nlocal a = pcall(cmsgpack.unpack, ARGV[1])\nlocal b = pcall(struct.unpack, ARGV[2], ARGV[1])\nreturn {a, b}\n")
	if err != nil {
		f.Fatal(err)
	}
	x := luaexec.New(luaexec.Config{Connect: func(context.Context) (luaexec.Conn, error) { return nowhere{}, nil }})
	f.Fuzz(func(t *testing.T, packed, format string) {
		if _, err := x.Run(t.Context(), p, nil, []string{packed, format}); err != nil {
			t.Error(err)
		}
	})
}

// nowhere is a Redis that agrees to a transaction without writes.
type nowhere struct{}

func (nowhere) Do(_ context.Context, cmds [][]string) ([]any, error) {
	out := make([]any, len(cmds))
	if has(cmds, "exec") {
		out[len(out)-1] = []any{}
	}
	return out, nil
}

func (nowhere) Close(bool) {}

package luaexec_test

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"
	"pgregory.net/rapid"

	"github.com/taskhost/taskhost/queue/redisq/luaexec"
)

// player is a script that carries out commands given as arguments, each as: 'd' (its reply is dropped) or 'r', how many words, the words.
// '@' at the begin of a word stands for the prefix. It returns what it saw of the replies, as text.
const player = `#!lua
local call = redis.call
local function show(r)
  local t = type(r)
  if t == 'number' then return 'n' .. string.format('%.17g', r) end
  if t == 'string' then return 's' .. r end
  if t == 'boolean' then return tostring(r) end
  if r.ok then return 'ok ' .. r.ok end
  if r.err then return 'err ' .. string.match(r.err, '^%S+') end
  local out = {}
  for k, v in ipairs(r) do out[k] = show(v) end
  return '[' .. table.concat(out, ' ') .. ']'
end
local out, i = {}, 1
while i <= #ARGV do
  local how, n, cmd = ARGV[i], tonumber(ARGV[i + 1]), {}
  for k = 1, n do cmd[k] = string.gsub(ARGV[i + 1 + k], '^@', KEYS[1]) end
  i = i + 2 + n
  if how == 'd' then
    call(unpack(cmd))
    out[#out + 1] = 'dropped'
  else
    local r = redis.pcall(unpack(cmd))
    if how == 's' and type(r) == 'table' and not r.err then table.sort(r, function(a, b) return show(a) < show(b) end) end
    if how == 'p' and type(r) == 'table' and not r.err then
      local pairs2 = {}
      for k = 1, #r, 2 do pairs2[#pairs2 + 1] = r[k] .. '=' .. r[k + 1] end
      table.sort(pairs2)
      r = pairs2
    end
    out[#out + 1] = show(r)
  end
end
return out
`

// step is one command; how is how its reply is treated: r as it is, s sorted, p as sorted pairs, d dropped.
type step struct {
	how string
	cmd []string
}

func (s step) String() string { return s.how + " " + strings.Join(s.cmd, " ") }

// commands draws one command on few keys with few members, so that they meet.
func steps() *rapid.Generator[step] {
	key := func(kind string) *rapid.Generator[string] {
		return rapid.Custom(func(t *rapid.T) string {
			return "@" + kind + rapid.SampledFrom([]string{"1", "2"}).Draw(t, "key")
		})
	}
	member := rapid.SampledFrom([]string{"a", "b", "c", "d", "e", "f"})
	score := rapid.SampledFrom([]string{"0", "1", "1.5", "-2", "3", "+inf", "-inf", "7.25"})
	index := rapid.SampledFrom([]string{"0", "1", "2", "3", "5", "-1", "-2", "-4", "100"})
	count := rapid.SampledFrom([]string{"0", "1", "2", "3", "9"})
	lex := rapid.SampledFrom([]string{"-", "+", "[a", "(b", "[c", "(d", "[e"})
	bound := rapid.SampledFrom([]string{"-inf", "+inf", "(1", "1", "(1.5", "0", "3", "-2"})
	number := rapid.SampledFrom([]string{"1", "-1", "5", "0"})
	return rapid.Custom(func(t *rapid.T) step {
		words := func(g *rapid.Generator[string], n int) []string {
			return rapid.SliceOfN(g, 1, n).Draw(t, "words")
		}
		pairs := func(a, b *rapid.Generator[string]) []string {
			var out []string
			for range rapid.IntRange(1, 3).Draw(t, "pairs") {
				out = append(out, a.Draw(t, "a"), b.Draw(t, "b"))
			}
			return out
		}
		of := func(how, name, kind string, rest ...string) step {
			return step{how, append([]string{name, key(kind).Draw(t, "key")}, rest...)}
		}
		m := func() string { return member.Draw(t, "member") }
		any1 := func() string {
			return key(rapid.SampledFrom([]string{"s", "l", "h", "e", "z"}).Draw(t, "kind")).Draw(t, "any")
		}
		w := "r"
		if rapid.Bool().Draw(t, "drop") {
			w = "d"
		}
		all := []func() step{
			func() step { return of("r", "GET", "s") },
			func() step { return of("r", "STRLEN", "s") },
			func() step { return of(w, "SET", "s", m()) },
			func() step { return of(w, "SET", "s", number.Draw(t, "n"), "PX", "600000") },
			func() step { return of(w, "SET", "s", m(), rapid.SampledFrom([]string{"NX", "XX"}).Draw(t, "o")) },
			func() step { return of(w, "SETNX", "s", m()) },
			func() step { return of(w, "APPEND", "s", m()) },
			func() step { return of("r", "INCRBY", "s", number.Draw(t, "n")) },
			func() step { return of("r", "DECR", "s") },
			func() step { return of(w, "GETDEL", "s") },
			func() step {
				return step{"r", []string{"MGET", any1(), key("s").Draw(t, "k"), any1()}}
			},
			func() step {
				return step{w, []string{"MSET", key("s").Draw(t, "k"), m(), key("s").Draw(t, "k"), m()}}
			},
			func() step { return of("r", "LLEN", "l") },
			func() step { return of("r", "LINDEX", "l", index.Draw(t, "i")) },
			func() step { return of("r", "LRANGE", "l", index.Draw(t, "i"), index.Draw(t, "j")) },
			func() step { return of(w, "LTRIM", "l", index.Draw(t, "i"), index.Draw(t, "j")) },
			func() step { return of(w, "LPUSH", "l", words(member, 4)...) },
			func() step { return of(w, "RPUSH", "l", words(member, 4)...) },
			func() step { return of(w, "RPUSHX", "l", m()) },
			func() step { return of(w, "LPOP", "l") },
			func() step { return of(w, "RPOP", "l") },
			func() step { return of(w, "LPOP", "l", count.Draw(t, "n")) },
			func() step { return of(w, "RPOP", "l", count.Draw(t, "n")) },
			func() step {
				return of(w, "LREM", "l", rapid.SampledFrom([]string{"1", "0", "-1", "2", "-3"}).Draw(t, "n"), m())
			},
			func() step {
				return of(w, "LINSERT", "l", rapid.SampledFrom([]string{"BEFORE", "AFTER"}).Draw(t, "side"), m(), m())
			},
			func() step { return of("r", "HGET", "h", m()) },
			func() step { return of("r", "HMGET", "h", words(member, 4)...) },
			func() step { return of("r", "HEXISTS", "h", m()) },
			func() step { return of("r", "HLEN", "h") },
			func() step { return of("p", "HGETALL", "h") },
			func() step { return of("s", "HKEYS", "h") },
			func() step { return of("s", "HVALS", "h") },
			func() step { return of(w, "HSET", "h", pairs(member, number)...) },
			func() step { return of(w, "HSETNX", "h", m(), number.Draw(t, "n")) },
			func() step { return of(w, "HDEL", "h", words(member, 3)...) },
			func() step { return of(w, "HINCRBY", "h", m(), number.Draw(t, "n")) },
			func() step { return of("r", "SISMEMBER", "e", m()) },
			func() step { return of("r", "SMISMEMBER", "e", words(member, 3)...) },
			func() step { return of("r", "SCARD", "e") },
			func() step { return of("s", "SMEMBERS", "e") },
			func() step { return of(w, "SADD", "e", words(member, 3)...) },
			func() step { return of(w, "SREM", "e", words(member, 3)...) },
			func() step { return of("r", "ZSCORE", "z", m()) },
			func() step { return of("r", "ZMSCORE", "z", words(member, 3)...) },
			func() step { return of("r", "ZCARD", "z") },
			func() step { return of(w, "ZADD", "z", pairs(score, member)...) },
			func() step { return of(w, "ZINCRBY", "z", number.Draw(t, "n"), m()) },
			func() step { return of(w, "ZREM", "z", words(member, 3)...) },
			func() step { return of(w, "ZPOPMIN", "z") },
			func() step { return of(w, "ZPOPMAX", "z", count.Draw(t, "n")) },
			func() step { return of("r", "ZRANGE", "z", index.Draw(t, "i"), index.Draw(t, "j")) },
			func() step { return of("r", "ZRANGE", "z", index.Draw(t, "i"), index.Draw(t, "j"), "WITHSCORES") },
			func() step { return of("r", "ZREVRANGE", "z", index.Draw(t, "i"), index.Draw(t, "j"), "WITHSCORES") },
			func() step { return of("r", "ZRANGEBYSCORE", "z", bound.Draw(t, "i"), bound.Draw(t, "j")) },
			func() step {
				return of("r", "ZRANGEBYSCORE", "z", bound.Draw(t, "i"), bound.Draw(t, "j"), "WITHSCORES", "LIMIT", count.Draw(t, "o"), count.Draw(t, "n"))
			},
			func() step {
				return of("r", "ZREVRANGEBYSCORE", "z", bound.Draw(t, "i"), bound.Draw(t, "j"), "LIMIT", "0", count.Draw(t, "n"))
			},
			func() step { return of("r", "ZCOUNT", "z", bound.Draw(t, "i"), bound.Draw(t, "j")) },
			func() step { return of(w, "ZREMRANGEBYSCORE", "z", bound.Draw(t, "i"), bound.Draw(t, "j")) },
			func() step { return of(w, "ZADD", "n", "0", m(), "0", m()) }, // all scores equal: by name
			func() step { return of(w, "ZREM", "n", m()) },
			func() step { return of("r", "ZRANGEBYLEX", "n", lex.Draw(t, "i"), lex.Draw(t, "j")) },
			func() step {
				return of("r", "ZRANGEBYLEX", "n", lex.Draw(t, "i"), lex.Draw(t, "j"), "LIMIT", count.Draw(t, "o"), count.Draw(t, "n"))
			},
			func() step { return of("r", "ZREVRANGEBYLEX", "n", lex.Draw(t, "i"), lex.Draw(t, "j")) },
			func() step { return of("r", "ZLEXCOUNT", "n", lex.Draw(t, "i"), lex.Draw(t, "j")) },
			func() step { return of(w, "ZREMRANGEBYLEX", "n", lex.Draw(t, "i"), lex.Draw(t, "j")) },
			func() step { return step{"r", []string{"EXISTS", any1(), any1()}} },
			func() step { return step{"r", []string{"TYPE", any1()}} },
			func() step { return step{w, []string{"DEL", any1(), any1()}} },
			func() step {
				return step{w, []string{"PEXPIRE", any1(), rapid.SampledFrom([]string{"600000", "-1"}).Draw(t, "ms")}}
			},
			// Errors, with replies that are wanted: the wrong kind, no number, too few words.
			func() step { return step{"r", []string{"HGET", any1(), m()}} },
			func() step { return step{"r", []string{"RPUSH", any1(), m()}} },
			func() step { return step{"r", []string{"SADD", any1(), m()}} },
			func() step { return step{"r", []string{"ZADD", any1(), "1", m()}} },
			func() step { return step{"r", []string{"GET", any1()}} },
			func() step { return of("r", "INCRBY", "s", "x") },
			func() step { return of("r", "ZADD", "z", "x", m()) },
			func() step { return of("r", "HGET", "h") },
		}
		return rapid.SampledFrom(all).Draw(t, "command")()
	})
}

// contents is everything under a prefix, as text.
func contents(ctx context.Context, t rapid.TB, c *redis.Client, prefix string, but ...string) map[string]string {
	t.Helper()
	keys, err := c.Keys(ctx, prefix+"*").Result()
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]string{}
	for _, k := range keys {
		name := strings.TrimPrefix(k, prefix)
		if slices.Contains(but, name) {
			continue
		}
		var v any
		switch kind := c.Type(ctx, k).Val(); kind {
		case "string":
			v = c.Get(ctx, k).Val()
		case "list":
			v = c.LRange(ctx, k, 0, -1).Val()
		case "hash":
			v = c.HGetAll(ctx, k).Val()
		case "set":
			l := c.SMembers(ctx, k).Val()
			slices.Sort(l)
			v = l
		case "zset":
			v = c.ZRangeWithScores(ctx, k, 0, -1).Val()
		}
		all[name] = fmt.Sprintf("%v expires %t", v, c.PTTL(ctx, k).Val() > 0)
	}
	return all
}

// Random scripts do in the host what they do in Redis: the same replies, the same keys afterwards.
func TestRandomScriptsAsInRedis(t *testing.T) {
	t.Parallel()
	c := client(t, 2)
	p := compile(t, player)
	script := redis.NewScript(player)
	rapid.Check(t, func(rt *rapid.T) {
		there, here := newPrefix(), newPrefix()
		x := luaexec.New(config(c, here))
		for range rapid.IntRange(1, 4).Draw(rt, "scripts") {
			list := rapid.SliceOfN(steps(), 1, 12).Draw(rt, "steps")
			var args []string
			for _, s := range list {
				args = append(append(args, s.how, strconv.Itoa(len(s.cmd))), s.cmd...)
			}
			anys := make([]any, len(args))
			for i, a := range args {
				anys[i] = a
			}
			want, wantErr := script.Run(t.Context(), c, []string{there}, anys...).Result()
			got, err := x.Run(t.Context(), p, []string{here}, args)
			if wantErr != nil || err != nil {
				// A command whose reply is dropped failed. Redis keeps what came before it, luaexec does not.
				if wantErr == nil || err == nil {
					rt.Skip("one that is found at EXEC only")
				}
				return
			}
			if !reflect.DeepEqual(got, want) {
				for i, s := range list {
					rt.Logf("%s: redis %v, here %v", s, want.([]any)[i], got.([]any)[i])
				}
				rt.Fatal("the replies differ")
			}
			if a, b := contents(t.Context(), rt, c, there), contents(t.Context(), rt, c, here, "rev", "mode", "lock"); !reflect.DeepEqual(a, b) {
				rt.Fatalf("after %v\nredis %v\nhere  %v", list, a, b)
			}
		}
	})
}

// Expressions are the same in the host as in Redis.
func TestExpressionsAsInRedis(t *testing.T) {
	t.Parallel()
	c := client(t, 2)
	prefix := newPrefix()
	x := luaexec.New(config(c, prefix))
	for _, e := range []string{
		"1", "1.9", "-1.9", "'x'", "true", "false", "nil", "{}", "{1, 2.7, 'x', false, 3}", "{1, nil, 3}", "{ok = 'fine'}", "{{1}, {2, {}}}",
		"redis.status_reply('FINE')", "{1, {err = 'ERR x'}}",
		"tonumber('12')", "tonumber('+0010')", "tonumber('-0010')", "tonumber('0x10')", "tonumber('ff', 16)", "tonumber('z', 36)", "tonumber(' 7 ')",
		"tonumber('') == nil", "tonumber('1_0') == nil", "tonumber('1e3')", "tonumber('x') == nil", "tonumber('inf') > 1e308", "tonumber('08')", "tonumber(nil) == nil",
		"tostring(1)", "tostring(1.5)", "tostring(1/3)", "tostring(1e15)", "tostring(-0.1)", "tostring(2^53)", "tostring(true)", "tostring(nil)",
		"1 .. ''", "12 .. 'x' .. -3", "'10' + 5", "'7' * '6'", "10 % 3", "-1 % 3", "2 ^ 10", "7 / 2 * 2",
		"string.format('%+05d', 10)", "string.format('%+05d', -4095)", "string.format('%06x', 255)", "string.format('%d', 3)", "string.format('%d', '3')",
		"string.format('%.0f', 1700000000123)", "string.format('%.0f %.0f', 1, 2^52)", "string.format('%.17g', 0.1)", "string.format('%.14g', 1e15)", "string.format('%g', 1e20)",
		"string.format('%5s|%-5s|%s', 'a', 'b', 3)", "string.format('%5.1f%%', 99.55)", "string.format('%x %X %o', 255, 255, 8)", "string.format('%c%c', 72, 105)",
		"string.format('%e', 12345.678)", "string.format('%.3s', 'abcdef')", "string.format('%i', 7.0)",
		"{string.match('mail:-7', '^([^:]*):(.*)$')}", "{string.match('p12;3,170,c', '^(%a)(%d+)(;?%d*),?(%d*),?(c?)$')}", "{string.find('a,b,c', ',b,', 1, true)}",
		"{string.byte('abc', 1, -1)}", "string.char(0, 255, 65)", "string.rep('ab', 3)", "string.sub('hello', -3)", "string.sub('hello', 2, 3)", "#'\\0\\255x'",
		"{string.gsub('hello', 'l', 'L')}", "string.reverse('abc') .. string.upper('x') .. string.lower('Y')", "#string.rep('x', 0)",
		"table.concat({1, 2, 3}, '-')", "select(2, 'a', 'b')", "select('#', nil, nil)", "{unpack({1, 2, 3}, 2)}", "{unpack({1, 2, 3}, 2, 3)}", "math.huge > 1", "math.floor(-1.5)",
		"math.max(1, 5, 3)", "math.min(2, -1)", "#{1, 2, 3}", "next({}) == nil", "type(redis)", "type(cmsgpack.pack)",
		"{pcall(error, {err = 'x'})}", "{pcall(function(a, b) return a, b, 3 end, 1, 2)}", "#(function() local t = {1, 2} t[3] = nil t[#t + 1] = 3 return t end)()",
		"(function() local t = {3, 1, 2} t[4] = nil table.sort(t, function(a, b) return a > b end) return t end)()",
		"(function() local t = {3, 1, 2} t[4] = nil table.insert(t, 9) table.insert(t, 1, 8) return {table.remove(t, 2), table.remove(t), unpack(t)} end)()", "(pcall(cmsgpack.unpack, '\\x93\\x01'))", "(pcall(struct.unpack, '>d', 'short'))", "(pcall(string.rep))",
		"cmsgpack.pack(1)", "cmsgpack.pack(127, 128, 255, 256, 65535, 65536, 2^32-1, 2^32, 2^53)", "cmsgpack.pack(-1, -32, -33, -128, -129, -32768, -32769, -2^31, -2^31-1, -2^53)",
		"cmsgpack.pack(0.5, 0.1, -0.25, 1e300, 1/0)", "cmsgpack.pack('', 'a', string.rep('x', 31), string.rep('x', 32), string.rep('x', 255))",
		"cmsgpack.pack(string.rep('x', 256))", "#cmsgpack.pack(string.rep('x', 65536))", "cmsgpack.pack(true, false, nil)", "cmsgpack.pack({})", "cmsgpack.pack({1, 2, 3})",
		"cmsgpack.pack({a = 1})", "cmsgpack.pack({1, {2, {x = 'y'}}})", "cmsgpack.pack({[2] = 1})", "cmsgpack.pack({[1.5] = 1})", "cmsgpack.pack({{}, {{}}})",
		"#cmsgpack.pack({1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17})", "{cmsgpack.unpack(cmsgpack.pack(1, 'x', true))}", "cmsgpack.unpack(cmsgpack.pack({a = {1, 2}})).a",
		"{cmsgpack.unpack(cmsgpack.pack(200, 60000, 2^31, -100, -1000, -2^20, 2^40))}", "cmsgpack.unpack(cmsgpack.pack(0.5)) * 4", "{cmsgpack.unpack('\\xc0\\x01')}",
		"cmsgpack.unpack('\\xcf\\x00\\x00\\x01\\x00\\x00\\x00\\x00\\x00')", "cmsgpack.unpack('\\xd3\\xff\\xff\\xff\\xff\\xff\\xff\\xff\\xfe')", "cmsgpack.unpack('\\xd9\\x02hi')",
		"(pcall(cmsgpack.unpack, '\\xc1'))", "(pcall(cmsgpack.unpack, '\\xdd\\xff\\xff\\xff\\xff'))",
		"struct.pack('>d', 1.5)", "struct.pack('>dddd', 1, -2, 0.1, 1/0)", "struct.pack('>ddI2', 1, 2, 300)", "struct.pack('<I4>I4bBhHi3', 1, 2, -1, 255, -2, 65535, -3)",
		"struct.pack('>fslLx', 0.5, 'zz', -1, 1)", "struct.pack('c3c0', 'abcd', 'xyz')", "{struct.unpack('>ddI2', struct.pack('>ddI2', 1, 2, 300))}",
		"{struct.unpack('>I2', '\\1\\2\\3\\4', 3)}", "{struct.unpack('<i4bs', struct.pack('<i4bs', -5, -6, 'hey'))}", "{struct.unpack('>Bc0', '\\3abcd')}", "{struct.unpack('>fi3', struct.pack('>fi3', 0.5, -9))}",
		"redis.call('SET', KEYS[1] .. 'n', 1.5) and redis.call('GET', KEYS[1] .. 'n')", "redis.call('SET', KEYS[1] .. 'n', 1/3) and redis.call('GET', KEYS[1] .. 'n')",
		"redis.call('SET', KEYS[1] .. 'n', 1e15) and redis.call('GET', KEYS[1] .. 'n')", "redis.call('SET', KEYS[1] .. 'n', 2^53) and redis.call('GET', KEYS[1] .. 'n')",
		"redis.call('GET', KEYS[1] .. 'none')", "redis.call('HGETALL', KEYS[1] .. 'none')", "redis.pcall('GET').err ~= nil", "redis.pcall('HSET', KEYS[1] .. 'n', 'a', '1').err",
		"redis.call('TIME')[1] * 1000 > 1700000000000", "(pcall(redis.call, 'GET', {}))", "(pcall(redis.call))", "{pcall(redis.call, 'HGET', KEYS[1] .. 'n', 'x')}",
	} {
		text := "#!lua\nreturn " + e + "\n"
		want, wantErr := c.Eval(t.Context(), text, []string{prefix + "there:"}).Result()
		got, err := x.Run(t.Context(), compile(t, text), []string{prefix + "here:"}, nil)
		if errors.Is(wantErr, redis.Nil) {
			wantErr = nil
		}
		if (err == nil) != (wantErr == nil) {
			t.Errorf("%s: redis %v, here %v", e, wantErr, err)
		} else if fmt.Sprintf("%#v", plain(got)) != fmt.Sprintf("%#v", plain(want)) {
			t.Errorf("%s:\nredis %#v\nhere  %#v", e, want, got)
		}
	}
}

// plain makes errors within lists comparable.
func plain(v any) any {
	switch v := v.(type) {
	case []any:
		for i := range v {
			v[i] = plain(v[i])
		}
	case error:
		return "error " + v.Error()
	}
	return v
}

// What is an error in Redis is one here.
func TestErrorsAsInRedis(t *testing.T) {
	t.Parallel()
	c := client(t, 2)
	prefix := newPrefix()
	x := luaexec.New(config(c, prefix))
	for _, body := range []string{
		"return redis.error_reply('DAMAGED record')", "return {err = 'VIEWS too many'}", "error('no')", "error({err = 'ERR mine'})", "return redis.call('NOSUCH')",
		"x = 1", "return nosuch", "return redis.call('GET')", "local t = {} return t.a.b", "return redis.call('INCRBY', KEYS[1] .. 'i', 'x')",
		"redis.call('SET', KEYS[1] .. 's', 'x') return redis.call('LLEN', KEYS[1] .. 's')", "local t = {} for i = 1, 8000 do t[i] = i end return {unpack(t)}",
	} {
		text := "#!lua\n" + body + "\n"
		_, want := c.Eval(t.Context(), text, []string{prefix + "there:"}).Result()
		_, got := x.Run(t.Context(), compile(t, text), []string{prefix + "here:"}, nil)
		if want == nil || got == nil {
			t.Errorf("%s: redis %v, here %v", body, want, got)
			continue
		}
		code := func(err error) string { s, _, _ := strings.Cut(err.Error(), " "); return s }
		if code(got) != code(want) {
			t.Errorf("%s: redis %q, here %q", body, want, got)
		}
		if !redis.HasErrorPrefix(got, code(want)) && code(want) != "ERR" {
			t.Errorf("%s: %v is no error reply for the client library", body, got)
		}
	}
}

package luaexec

import (
	"fmt"
	"strings"
)

// zsetSource reads a ZSET.
type zsetSource struct{ k *key }

func (s zsetSource) get(names []string) ([]*float64, error) {
	values, err := optional(s.k.v.read(append([]string{"zmscore", s.k.name}, names...)...))
	if err != nil {
		return nil, err
	}
	out := make([]*float64, len(names))
	for i, t := range values {
		if t != nil {
			f, ok := number(*t)
			if !ok {
				return nil, fmt.Errorf("luaexec: redis replied the score %q", *t)
			}
			out[i] = &f
		}
	}
	return out, nil
}

func (s zsetSource) count() (int64, error) { return number64(s.k.v.read("zcard", s.k.name)) }

func (s zsetSource) each(f func(string, float64)) error {
	list, err := scored(s.k.v.read("zrange", s.k.name, "0", "-1", "withscores"))
	for _, m := range list {
		f(m.name, m.score)
	}
	return err
}

// member is one of a ZSET.
type member struct {
	name  string
	score float64
}

// scored reads a reply with scores.
func scored(r any, err error) ([]member, error) {
	l, err := texts(r, err)
	if err != nil {
		return nil, err
	}
	out := make([]member, 0, len(l)/2)
	for i := 0; i+1 < len(l); i += 2 {
		f, ok := number(l[i+1])
		if !ok {
			return nil, fmt.Errorf("luaexec: redis replied the score %q", l[i+1])
		}
		out = append(out, member{l[i], f})
	}
	return out, nil
}

func (v *view) zsetOf(name string, members ...string) (*key, error) {
	k, err := v.key(name, kindZSet)
	if err != nil {
		return nil, err
	}
	return k, k.zset.find(zsetSource{k}, members...)
}

var zsetCommands = map[string]command{
	"zscore": {3, false, func(v *view, c []string, _ bool) (any, error) {
		k, err := v.zsetOf(c[1], c[2])
		if err != nil || k.zset.now[c[2]] == nil {
			return nil, err
		}
		return scoreText(*k.zset.now[c[2]]), nil
	}},
	"zmscore": {3, false, func(v *view, c []string, _ bool) (any, error) {
		k, err := v.zsetOf(c[1], c[2:]...)
		if err != nil {
			return nil, err
		}
		out := make([]any, len(c)-2)
		for i, m := range c[2:] {
			if f := k.zset.now[m]; f != nil {
				out[i] = scoreText(*f)
			}
		}
		return out, nil
	}},
	"zcard": {2, false, func(v *view, c []string, _ bool) (any, error) {
		k, err := v.zsetOf(c[1])
		if err != nil {
			return nil, err
		}
		return k.zset.card(zsetSource{k})
	}},
	"zadd": {4, true, zadd},
	"zincrby": {4, true, func(v *view, c []string, drop bool) (any, error) {
		by, err := parseFloat(c[2])
		if err != nil {
			return nil, err
		}
		k, err := v.zsetOf(c[1], c[3])
		if err != nil {
			return nil, err
		}
		if old := k.zset.now[c[3]]; old != nil {
			by += *old
		}
		if by != by {
			return nil, Error("ERR resulting score is not a number (NaN)")
		}
		k.zset.change(c[3], &by)
		return v.send(c, scoreText(by), drop)
	}},
	"zrem": {3, true, func(v *view, c []string, drop bool) (any, error) {
		var names []string
		if !drop {
			names = c[2:]
		}
		k, err := v.zsetOf(c[1], names...)
		if err != nil {
			return nil, err
		}
		n := int64(0)
		for _, m := range c[2:] {
			n += bit(k.zset.now[m] != nil)
			k.zset.change(m, nil)
		}
		return v.send(c, n, drop)
	}},
	"zpopmin": {2, true, zpop(false)},
	"zpopmax": {2, true, zpop(true)},
}

// zadd is ZADD without options.
func zadd(v *view, c []string, drop bool) (any, error) {
	if o := strings.ToLower(c[2]); o == "nx" || o == "xx" || o == "gt" || o == "lt" || o == "ch" || o == "incr" {
		return nil, Error("ERR the option " + c[2] + " of zadd is not supported without Lua")
	}
	if len(c)%2 != 0 {
		return nil, errSyntax
	}
	var names []string
	scores := make([]float64, 0, len(c)/2)
	for i := 2; i < len(c); i += 2 {
		f, err := parseFloat(c[i])
		if err != nil {
			return nil, err
		}
		scores = append(scores, f)
		if !drop {
			names = append(names, c[i+1])
		}
	}
	k, err := v.zsetOf(c[1], names...)
	if err != nil {
		return nil, err
	}
	n := int64(0)
	for i := range scores {
		m := c[2*i+3]
		n += bit(k.zset.now[m] == nil)
		k.zset.change(m, &scores[i])
	}
	return v.send(c, n, drop)
}

func zpop(most bool) func(v *view, c []string, drop bool) (any, error) {
	return func(v *view, c []string, drop bool) (any, error) {
		k, err := v.zsetOf(c[1])
		if err != nil {
			return nil, err
		}
		n := int64(1)
		if len(c) > 2 {
			if n, err = parseInt(c[2]); err != nil || n < 0 {
				return nil, Error("ERR value is out of range, must be positive")
			}
		}
		list, err := k.first(byScore(most), n)
		if err != nil {
			return nil, err
		}
		for _, m := range list {
			k.zset.change(m.name, nil)
		}
		return v.send(c, listed(list, true), drop)
	}
}

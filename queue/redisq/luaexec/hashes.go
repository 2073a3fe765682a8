package luaexec

import "strconv"

// hashSource reads a HASH.
type hashSource struct{ k *key }

func (s hashSource) get(names []string) ([]*string, error) {
	if len(names) == 1 {
		r, err := s.k.v.read("hget", s.k.name, names[0])
		if err != nil {
			return nil, err
		}
		if t, ok := r.(string); ok {
			return []*string{&t}, nil
		}
		return []*string{nil}, nil
	}
	return optional(s.k.v.read(append([]string{"hmget", s.k.name}, names...)...))
}

func (s hashSource) count() (int64, error) { return number64(s.k.v.read("hlen", s.k.name)) }

func (s hashSource) each(f func(string, string)) error {
	l, err := texts(s.k.v.read("hgetall", s.k.name))
	for i := 0; i+1 < len(l); i += 2 {
		f(l[i], l[i+1])
	}
	return err
}

// hashOf returns a key as a HASH with some of its fields known.
func (v *view) hashOf(name string, fields ...string) (*key, error) {
	k, err := v.key(name, kindHash)
	if err != nil {
		return nil, err
	}
	return k, k.hash.find(hashSource{k}, fields...)
}

func hashCommandsList(part func(k *key, name string) []string) func(v *view, c []string, drop bool) (any, error) {
	return func(v *view, c []string, _ bool) (any, error) {
		k, err := v.hashOf(c[1])
		if err != nil {
			return nil, err
		}
		names, err := k.hash.names(hashSource{k})
		if err != nil {
			return nil, err
		}
		out := []any{}
		for _, n := range names {
			out = append(out, anys(part(k, n))...)
		}
		return out, nil
	}
}

var hashCommands = map[string]command{
	"hget": {3, false, func(v *view, c []string, _ bool) (any, error) {
		k, err := v.hashOf(c[1], c[2])
		if err != nil || k.hash.now[c[2]] == nil {
			return nil, err
		}
		return *k.hash.now[c[2]], nil
	}},
	"hmget": {3, false, func(v *view, c []string, _ bool) (any, error) {
		k, err := v.hashOf(c[1], c[2:]...)
		if err != nil {
			return nil, err
		}
		out := make([]any, len(c)-2)
		for i, f := range c[2:] {
			if s := k.hash.now[f]; s != nil {
				out[i] = *s
			}
		}
		return out, nil
	}},
	"hexists": {3, false, func(v *view, c []string, _ bool) (any, error) {
		k, err := v.hashOf(c[1], c[2])
		if err != nil {
			return nil, err
		}
		return bit(k.hash.now[c[2]] != nil), nil
	}},
	"hlen": {2, false, func(v *view, c []string, _ bool) (any, error) {
		k, err := v.hashOf(c[1])
		if err != nil {
			return nil, err
		}
		return k.hash.card(hashSource{k})
	}},
	"hgetall": {2, false, hashCommandsList(func(k *key, n string) []string { return []string{n, *k.hash.now[n]} })},
	"hkeys":   {2, false, hashCommandsList(func(_ *key, n string) []string { return []string{n} })},
	"hvals":   {2, false, hashCommandsList(func(k *key, n string) []string { return []string{*k.hash.now[n]} })},
	"hset": {4, true, func(v *view, c []string, drop bool) (any, error) {
		if len(c)%2 != 0 {
			return nil, Error("ERR wrong number of arguments for 'hset' command")
		}
		var fields []string
		if !drop {
			for i := 2; i < len(c); i += 2 {
				fields = append(fields, c[i])
			}
		}
		k, err := v.hashOf(c[1], fields...)
		if err != nil {
			return nil, err
		}
		n := int64(0)
		for i := 2; i < len(c); i += 2 {
			n += bit(k.hash.now[c[i]] == nil)
			k.hash.change(c[i], &c[i+1])
		}
		return v.send(c, n, drop)
	}},
	"hsetnx": {4, true, func(v *view, c []string, drop bool) (any, error) {
		k, err := v.hashOf(c[1], c[2])
		if err != nil {
			return nil, err
		}
		fresh := k.hash.now[c[2]] == nil
		if fresh {
			k.hash.change(c[2], &c[3])
		}
		return v.send(c, bit(fresh), drop)
	}},
	"hdel": {3, true, func(v *view, c []string, drop bool) (any, error) {
		var fields []string
		if !drop {
			fields = c[2:]
		}
		k, err := v.hashOf(c[1], fields...)
		if err != nil {
			return nil, err
		}
		n := int64(0)
		for _, f := range c[2:] {
			n += bit(k.hash.now[f] != nil)
			k.hash.change(f, nil)
		}
		return v.send(c, n, drop)
	}},
	"hincrby": {4, true, func(v *view, c []string, drop bool) (any, error) {
		if _, err := parseInt(c[3]); err != nil {
			return nil, err
		}
		k, err := v.hashOf(c[1], c[2])
		if err != nil {
			return nil, err
		}
		n, err := sum(k.hash.now[c[2]], c[3], Error("ERR hash value is not an integer"))
		if err != nil {
			return nil, err
		}
		s := strconv.FormatInt(n, 10)
		k.hash.change(c[2], &s)
		return v.send(c, n, drop)
	}},
}

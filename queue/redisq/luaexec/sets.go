package luaexec

// setSource reads a SET.
type setSource struct{ k *key }

func (s setSource) get(names []string) ([]*struct{}, error) {
	r, err := s.k.v.read(append([]string{"smismember", s.k.name}, names...)...)
	if err != nil {
		return nil, err
	}
	out := make([]*struct{}, len(names))
	if l, ok := r.([]any); ok {
		for i, e := range l {
			if e == int64(1) {
				out[i] = &struct{}{}
			}
		}
	}
	return out, nil
}

func (s setSource) count() (int64, error) { return number64(s.k.v.read("scard", s.k.name)) }

func (s setSource) each(f func(string, struct{})) error {
	l, err := texts(s.k.v.read("smembers", s.k.name))
	for _, m := range l {
		f(m, struct{}{})
	}
	return err
}

func (v *view) setOf(name string, members ...string) (*key, error) {
	k, err := v.key(name, kindSet)
	if err != nil {
		return nil, err
	}
	return k, k.set.find(setSource{k}, members...)
}

// turn makes members of a SET present or absent and counts those that were not so before.
func turn(to *struct{}) func(v *view, c []string, drop bool) (any, error) {
	return func(v *view, c []string, drop bool) (any, error) {
		var names []string
		if !drop {
			names = c[2:]
		}
		k, err := v.setOf(c[1], names...)
		if err != nil {
			return nil, err
		}
		n := int64(0)
		for _, m := range c[2:] {
			n += bit((k.set.now[m] == nil) != (to == nil))
			k.set.change(m, to)
		}
		return v.send(c, n, drop)
	}
}

var setCommands = map[string]command{
	"sismember": {3, false, func(v *view, c []string, _ bool) (any, error) {
		k, err := v.setOf(c[1], c[2])
		if err != nil {
			return nil, err
		}
		return bit(k.set.now[c[2]] != nil), nil
	}},
	"smismember": {3, false, func(v *view, c []string, _ bool) (any, error) {
		k, err := v.setOf(c[1], c[2:]...)
		if err != nil {
			return nil, err
		}
		var out []any
		for _, m := range c[2:] {
			out = append(out, bit(k.set.now[m] != nil))
		}
		return out, nil
	}},
	"scard": {2, false, func(v *view, c []string, _ bool) (any, error) {
		k, err := v.setOf(c[1])
		if err != nil {
			return nil, err
		}
		return k.set.card(setSource{k})
	}},
	"smembers": {2, false, func(v *view, c []string, _ bool) (any, error) {
		k, err := v.setOf(c[1])
		if err != nil {
			return nil, err
		}
		names, err := k.set.names(setSource{k})
		return anys(names), err
	}},
	"sadd": {3, true, turn(&struct{}{})},
	"srem": {3, true, turn(nil)},
}

package luaexec

import (
	"math"
	"slices"
	"strconv"
	"strings"
)

// text is a STRING in a view.
type text struct {
	known   bool
	changed bool
	value   *string // nil = not there
}

// load makes the value known.
func (k *key) load() (*string, error) {
	if !k.str.known {
		r, err := k.v.read("get", k.name)
		if err != nil {
			return nil, err
		}
		k.str.known = true
		if s, ok := r.(string); ok {
			k.str.value = &s
		}
	}
	return k.str.value, nil
}

func (k *key) set1(s string) { k.str = &text{known: true, changed: true, value: &s} }

var stringCommands = map[string]command{
	"get": {2, false, func(v *view, c []string, _ bool) (any, error) {
		s, err := v.str(c[1])
		if err != nil || s == nil {
			return nil, err
		}
		return *s, nil
	}},
	"strlen": {2, false, func(v *view, c []string, _ bool) (any, error) {
		s, err := v.str(c[1])
		if err != nil || s == nil {
			return int64(0), err
		}
		return int64(len(*s)), nil
	}},
	"mget": {2, false, mget},
	"set":  {3, true, set},
	"setnx": {3, true, func(v *view, c []string, drop bool) (any, error) {
		k, err := v.key(c[1], kindNone)
		if err != nil {
			return nil, err
		}
		there, err := k.exists()
		if err == nil && !there {
			err = v.overwrite(c[1], c[2])
		}
		if err != nil {
			return nil, err
		}
		return v.send(c, bit(!there), drop)
	}},
	"mset": {3, true, func(v *view, c []string, drop bool) (any, error) {
		if len(c)%2 == 0 {
			return nil, Error("ERR wrong number of arguments for 'mset' command")
		}
		for i := 1; i < len(c); i += 2 {
			if err := v.overwrite(c[i], c[i+1]); err != nil {
				return nil, err
			}
		}
		return v.send(c, status("OK"), drop)
	}},
	"append": {3, true, func(v *view, c []string, drop bool) (any, error) {
		k, err := v.key(c[1], kindString)
		if err != nil {
			return nil, err
		}
		s, err := k.load()
		if err != nil {
			return nil, err
		}
		now := c[2]
		if s != nil {
			now = *s + c[2]
		}
		k.set1(now)
		return v.send(c, int64(len(now)), drop)
	}},
	"incr":   {2, true, func(v *view, c []string, drop bool) (any, error) { return v.add(c, "1", drop) }},
	"decr":   {2, true, func(v *view, c []string, drop bool) (any, error) { return v.add(c, "-1", drop) }},
	"incrby": {3, true, func(v *view, c []string, drop bool) (any, error) { return v.add(c, c[2], drop) }},
	"decrby": {3, true, func(v *view, c []string, drop bool) (any, error) {
		n, err := parseInt(c[2])
		if err != nil {
			return nil, err
		}
		return v.add(c, strconv.FormatInt(-n, 10), drop)
	}},
	"getdel": {2, true, func(v *view, c []string, drop bool) (any, error) {
		k, err := v.key(c[1], kindString)
		if err != nil {
			return nil, err
		}
		s, err := k.load()
		if err != nil {
			return nil, err
		}
		k.clear()
		if s == nil {
			return v.send(c, nil, drop)
		}
		return v.send(c, *s, drop)
	}},
}

func (v *view) str(name string) (*string, error) {
	k, err := v.key(name, kindString)
	if err != nil {
		return nil, err
	}
	return k.load()
}

// overwrite is what SET does to a key of any kind.
func (v *view) overwrite(name, value string) error {
	k, err := v.key(name, kindNone)
	if err != nil {
		return err
	}
	k.clear()
	if k, err = v.key(name, kindString); err != nil {
		return err
	}
	k.set1(value)
	return nil
}

func (v *view) add(c []string, by string, drop bool) (any, error) {
	if _, err := parseInt(by); err != nil {
		return nil, err
	}
	k, err := v.key(c[1], kindString)
	if err != nil {
		return nil, err
	}
	s, err := k.load()
	if err != nil {
		return nil, err
	}
	n, err := sum(s, by, errInteger)
	if err != nil {
		return nil, err
	}
	k.set1(strconv.FormatInt(n, 10))
	return v.send(c, n, drop)
}

// sum adds to a number that is stored as text, nothing as 0.
func sum(stored *string, by string, bad error) (int64, error) {
	d, err := parseInt(by)
	if err != nil {
		return 0, err
	}
	n := int64(0)
	if stored != nil {
		if n, err = parseInt(*stored); err != nil {
			return 0, bad
		}
	}
	if d > 0 && n > math.MaxInt64-d || d < 0 && n < math.MinInt64-d {
		return 0, Error("ERR increment or decrement would overflow")
	}
	return n + d, nil
}

func mget(v *view, c []string, _ bool) (any, error) {
	ask := []string{"mget"}
	var asked []*key
	out := make([]any, len(c)-1)
	keys := make([]*key, len(c)-1)
	for i, name := range c[1:] {
		k, err := v.key(name, kindNone)
		if err != nil {
			return nil, err
		}
		if !k.changed() {
			if k, err = v.key(name, kindString); err != nil {
				return nil, err
			}
		}
		if keys[i] = k; k.kind == kindString && !k.str.known {
			ask, asked = append(ask, name), append(asked, k)
		}
	}
	if len(asked) > 0 {
		values, err := optional(v.read(ask...))
		if err != nil {
			return nil, err
		}
		for i, k := range asked {
			if !k.str.known && values[i] != nil { // what is no STRING is nothing here: that stays unknown
				k.str = &text{known: true, value: values[i]}
			}
			if values[i] == nil {
				if err := k.settle(); err != nil {
					return nil, err
				}
			}
		}
	}
	for i, k := range keys {
		if k.kind == kindString && k.str.value != nil {
			out[i] = *k.str.value
		}
	}
	return out, nil
}

// settle finds out whether a key without a STRING holds something else.
func (k *key) settle() error {
	n, err := number64(k.v.read("exists", k.name))
	if err != nil {
		return err
	}
	if n == 0 {
		k.str = &text{known: true}
	} else {
		k.kind, k.str = kindNone, nil
	}
	return nil
}

// set is SET with EX, PX, EXAT, PXAT, KEEPTTL, NX, XX; the time to live does not show in the run.
// set decides NX and XX by what it reads, and sends what it decided: a key that expires before the transaction is executed, which no
// watch notices, would make Redis decide otherwise than the script went on.
func set(v *view, c []string, drop bool) (any, error) {
	var nx, xx bool
	decided := slices.Clone(c[:min(len(c), 3)])
	for i := 3; i < len(c); i++ {
		switch strings.ToLower(c[i]) {
		case "ex", "px", "exat", "pxat":
			if i++; i == len(c) {
				return nil, errSyntax
			}
			if n, err := parseInt(c[i]); err != nil || n <= 0 {
				return nil, Error("ERR invalid expire time in 'set' command")
			}
			decided = append(decided, c[i-1], c[i])
		case "keepttl":
			decided = append(decided, c[i])
		case "nx":
			nx = true
		case "xx":
			xx = true
		default:
			return nil, errSyntax
		}
	}
	if nx && xx {
		return nil, errSyntax
	}
	if nx || xx {
		k, err := v.key(c[1], kindNone)
		if err != nil {
			return nil, err
		}
		there, err := k.exists()
		if err != nil {
			return nil, err
		}
		if there == nx {
			return nil, nil
		}
	}
	if err := v.overwrite(c[1], c[2]); err != nil {
		return nil, err
	}
	return v.send(decided, status("OK"), drop)
}

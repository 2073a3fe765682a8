package luaexec

import (
	"cmp"
	"math"
	"slices"
	"strconv"
	"strings"
)

// order is one way to go through a ZSET: which command reads it, and which members count.
type order struct {
	reverse bool
	command []string // of Redis, without the key; its bounds behind the key
	bounds  []string
	in      func(member) bool // nil = all
	scores  bool              // the command takes WITHSCORES; else the order is by name, which is only defined among equal scores
}

func (o order) compare(a, b member) int {
	c := strings.Compare(a.name, b.name)
	if o.scores {
		c = cmp.Or(cmp.Compare(a.score, b.score), c)
	}
	if o.reverse {
		return -c
	}
	return c
}

// byScore goes from the lowest score to the highest, or the other way round.
func byScore(reverse bool) order {
	if reverse {
		return order{reverse: true, command: []string{"zrevrange"}, scores: true}
	}
	return order{command: []string{"zrange"}, scores: true}
}

// first returns the first n members of an order as the run sees them; n < 0 = all. Redis is asked for as many more as the run has
// changed, for these may be among its first.
func (k *key) first(o order, n int64) ([]member, error) {
	z := k.zset
	var list []member
	if z.all {
		for name, f := range z.now {
			if m := (member{name: name, score: deref(f)}); f != nil && (o.in == nil || o.in(m)) {
				list = append(list, m)
			}
		}
	} else {
		stored, err := k.ask(o, n)
		if err != nil {
			return nil, err
		}
		if !z.changed() {
			return cut(stored, n), nil
		}
		for _, m := range stored {
			if _, changed := z.was[m.name]; !changed {
				list = append(list, m)
			}
		}
		for name := range z.was {
			if f := z.now[name]; f != nil && (o.in == nil || o.in(member{name, *f})) {
				list = append(list, member{name, *f})
			}
		}
	}
	slices.SortFunc(list, o.compare)
	return cut(list, n), nil
}

func deref(f *float64) float64 {
	if f == nil {
		return 0
	}
	return *f
}

func cut(list []member, n int64) []member {
	if n >= 0 && n < int64(len(list)) {
		return list[:n]
	}
	return list
}

// ask reads the first members of an order from Redis.
func (k *key) ask(o order, n int64) ([]member, error) {
	last := int64(-1)
	if n >= 0 {
		last = n + int64(len(k.zset.was))
	}
	cmd := []string{o.command[0], k.name}
	switch {
	case o.bounds == nil && last == 0:
		return nil, nil
	case o.bounds == nil:
		stop := int64(-1)
		if last > 0 {
			stop = last - 1
		}
		cmd = append(cmd, "0", strconv.FormatInt(stop, 10), "withscores")
	default:
		cmd = append(cmd, o.bounds...)
		if o.scores {
			cmd = append(cmd, "withscores")
		}
		if last >= 0 {
			cmd = append(cmd, "limit", "0", strconv.FormatInt(last, 10))
		}
	}
	if o.scores {
		return scored(k.v.read(cmd...))
	}
	names, err := texts(k.v.read(cmd...))
	if err != nil {
		return nil, err
	}
	list := make([]member, len(names))
	for i, name := range names {
		list[i] = member{name: name}
	}
	return list, nil
}

// listed is a reply of members.
func listed(list []member, scores bool) []any {
	out := []any{}
	for _, m := range list {
		out = append(out, m.name)
		if scores {
			out = append(out, scoreText(m.score))
		}
	}
	return out
}

// byRank is ZRANGE and ZREVRANGE between two ranks.
func (v *view) byRank(name string, o order, start, stop string, scores bool) (any, error) {
	from, err := parseInt(start)
	if err != nil {
		return nil, err
	}
	to, err := parseInt(stop)
	if err != nil {
		return nil, err
	}
	k, err := v.zsetOf(name)
	if err != nil {
		return nil, err
	}
	if from > 0 && to >= from && !k.zset.changed() && !k.zset.all { // a page: not from the beginning
		list, err := scored(v.read(o.command[0], name, start, stop, "withscores"))
		return listed(list, scores), err
	}
	if from < 0 || to < 0 {
		n, err := k.zset.card(zsetSource{k})
		if err != nil {
			return nil, err
		}
		from, to = span(from, to, n)
	} else {
		to++
	}
	if from >= to {
		_, err := k.zset.card(zsetSource{k}) // nothing of a ZSET; of another kind it is an error
		return []any{}, err
	}
	list, err := k.first(o, to)
	if err != nil {
		return nil, err
	}
	return listed(list[min(from, int64(len(list))):], scores), nil
}

// options are what follows the bounds: WITHSCORES and LIMIT.
type options struct {
	scores        bool
	offset, count int64
	rest          []string
}

func readOptions(words []string) (options, error) {
	o := options{count: -1}
	for i := 0; i < len(words); i++ {
		switch strings.ToLower(words[i]) {
		case "withscores":
			o.scores = true
		case "limit":
			if i+2 >= len(words) {
				return o, errSyntax
			}
			var err error
			if o.offset, err = parseInt(words[i+1]); err != nil {
				return o, err
			}
			if o.count, err = parseInt(words[i+2]); err != nil {
				return o, err
			}
			i += 2
		default:
			o.rest = append(o.rest, words[i])
		}
	}
	return o, nil
}

// within replies the members of an order after the options.
func (v *view) within(name string, o order, opt options) (any, error) {
	if len(opt.rest) > 0 {
		return nil, errSyntax
	}
	k, err := v.zsetOf(name)
	if err != nil {
		return nil, err
	}
	n := int64(-1)
	if opt.count >= 0 && opt.offset >= 0 {
		n = opt.offset + opt.count
	}
	list, err := k.first(o, n)
	if err != nil {
		return nil, err
	}
	if opt.offset < 0 {
		list = nil
	}
	return listed(list[min(max(opt.offset, 0), int64(len(list))):], opt.scores), nil
}

// scoreBound reads "5", "(5", "-inf", "+inf".
func scoreBound(s string) (f float64, open bool, err error) {
	t, open := strings.CutPrefix(s, "(")
	f, ok := number(t)
	if !ok || math.IsNaN(f) {
		return 0, false, Error("ERR min or max is not a float")
	}
	return f, open, nil
}

func scoreOrder(low, high string, reverse bool) (order, error) {
	from, openFrom, err := scoreBound(low)
	if err != nil {
		return order{}, err
	}
	to, openTo, err := scoreBound(high)
	if err != nil {
		return order{}, err
	}
	o := order{reverse: reverse, command: []string{"zrangebyscore"}, bounds: []string{low, high}, scores: true, in: func(m member) bool {
		return (m.score > from || !openFrom && m.score == from) && (m.score < to || !openTo && m.score == to)
	}}
	if reverse {
		o.command, o.bounds = []string{"zrevrangebyscore"}, []string{high, low}
	}
	return o, nil
}

// lexBound reads "[a", "(a", "-", "+"; side is how a name compares with it.
func lexBound(s string) (side func(name string) int, open bool, err error) {
	switch {
	case s == "-":
		return func(string) int { return 1 }, false, nil
	case s == "+":
		return func(string) int { return -1 }, false, nil
	case strings.HasPrefix(s, "["), strings.HasPrefix(s, "("):
		return func(name string) int { return strings.Compare(name, s[1:]) }, s[0] == '(', nil
	}
	return nil, false, Error("ERR min or max not valid string range item")
}

func lexOrder(low, high string, reverse bool) (order, error) {
	from, openFrom, err := lexBound(low)
	if err != nil {
		return order{}, err
	}
	to, openTo, err := lexBound(high)
	if err != nil {
		return order{}, err
	}
	o := order{reverse: reverse, command: []string{"zrangebylex"}, bounds: []string{low, high}, in: func(m member) bool {
		a, b := from(m.name), to(m.name)
		return (a > 0 || !openFrom && a == 0) && (b < 0 || !openTo && b == 0)
	}}
	if reverse {
		o.command, o.bounds = []string{"zrevrangebylex"}, []string{high, low}
	}
	return o, nil
}

// between is one of the four commands by score or name.
func between(make func(low, high string, reverse bool) (order, error), reverse bool) func(v *view, c []string, _ bool) (any, error) {
	return func(v *view, c []string, _ bool) (any, error) {
		low, high := c[2], c[3]
		if reverse {
			low, high = high, low
		}
		o, err := make(low, high, reverse)
		if err != nil {
			return nil, err
		}
		opt, err := readOptions(c[4:])
		if err != nil {
			return nil, err
		}
		return v.within(c[1], o, opt)
	}
}

func ranked(reverse bool) func(v *view, c []string, _ bool) (any, error) {
	return func(v *view, c []string, _ bool) (any, error) {
		opt, err := readOptions(c[4:])
		if err == nil && (len(opt.rest) > 0 || opt.count >= 0) {
			err = Error("ERR zrange without Lua takes two ranks and WITHSCORES only")
		}
		if err != nil {
			return nil, err
		}
		return v.byRank(c[1], byScore(reverse), c[2], c[3], opt.scores)
	}
}

// removing drops the members of an order.
func removing(make func(c []string) (order, error)) func(v *view, c []string, drop bool) (any, error) {
	return func(v *view, c []string, drop bool) (any, error) {
		o, err := make(c)
		if err != nil {
			return nil, err
		}
		k, err := v.zsetOf(c[1])
		if err != nil {
			return nil, err
		}
		list, err := k.first(o, -1)
		if err != nil {
			return nil, err
		}
		for _, m := range list {
			if _, ok := k.zset.was[m.name]; !ok {
				k.zset.now[m.name] = &m.score
			}
			k.zset.change(m.name, nil)
		}
		return v.send(c, int64(len(list)), drop)
	}
}

func counting(make func(low, high string, reverse bool) (order, error)) func(v *view, c []string, _ bool) (any, error) {
	return func(v *view, c []string, _ bool) (any, error) {
		o, err := make(c[2], c[3], false)
		if err != nil {
			return nil, err
		}
		k, err := v.zsetOf(c[1])
		if err != nil {
			return nil, err
		}
		list, err := k.first(o, -1)
		return int64(len(list)), err
	}
}

var zsetRanges = map[string]command{
	"zrange":           {4, false, ranked(false)},
	"zrevrange":        {4, false, ranked(true)},
	"zrangebyscore":    {4, false, between(scoreOrder, false)},
	"zrevrangebyscore": {4, false, between(scoreOrder, true)},
	"zrangebylex":      {4, false, between(lexOrder, false)},
	"zrevrangebylex":   {4, false, between(lexOrder, true)},
	"zcount":           {4, false, counting(scoreOrder)},
	"zlexcount":        {4, false, counting(lexOrder)},
	"zremrangebyscore": {4, true, removing(func(c []string) (order, error) { return scoreOrder(c[2], c[3], false) })},
	"zremrangebylex":   {4, true, removing(func(c []string) (order, error) { return lexOrder(c[2], c[3], false) })},
}

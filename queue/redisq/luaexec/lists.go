package luaexec

import (
	"slices"
	"strconv"
	"strings"
)

// line is a LIST in a view: what the run pushed in front (front, foremost first), the elements lo to hi of the list in Redis but
// those in gone, and what the run pushed behind.
type line struct {
	front, tail []string
	lo, hi      int64
	gone        []int64 // sorted, all within lo to hi
	sized       bool    // hi is known
	changed     bool
}

// element is one of the list in Redis.
type element struct {
	at    int64
	value string
}

// size makes hi known.
func (k *key) size() error {
	if k.list.sized {
		return nil
	}
	n, err := number64(k.v.read("llen", k.name))
	k.list.hi, k.list.sized = n, err == nil
	return err
}

func (l *line) middle() int64 { return l.hi - l.lo - int64(len(l.gone)) }

func (k *key) length() (int64, error) {
	if err := k.size(); err != nil {
		return 0, err
	}
	l := k.list
	return int64(len(l.front)+len(l.tail)) + l.middle(), nil
}

// stored reads elements from to to of those that are left in Redis.
func (k *key) stored(from, to int64) ([]element, error) {
	if from >= to {
		return nil, nil
	}
	l := k.list
	first, last := l.lo+from, l.lo+to-1
	if len(l.gone) > 0 {
		first, last = l.lo, min(last+int64(len(l.gone)), l.hi-1)
	}
	values, err := texts(k.v.read("lrange", k.name, strconv.FormatInt(first, 10), strconv.FormatInt(last, 10)))
	if err != nil {
		return nil, err
	}
	var out []element
	for i, v := range values {
		if _, gone := slices.BinarySearch(l.gone, first+int64(i)); !gone {
			out = append(out, element{first + int64(i), v})
		}
	}
	if len(l.gone) > 0 {
		out = out[min(from, int64(len(out))):min(to, int64(len(out)))]
	}
	return out, nil
}

// part is elements from to to.
func (k *key) part(from, to int64) ([]string, error) {
	l := k.list
	f, m := int64(len(l.front)), l.middle()
	var out []string
	out = append(out, l.front[min(from, f):min(to, f)]...)
	stored, err := k.stored(min(max(from-f, 0), m), min(max(to-f, 0), m))
	if err != nil {
		return nil, err
	}
	for _, e := range stored {
		out = append(out, e.value)
	}
	t := int64(len(l.tail))
	return append(out, l.tail[min(max(from-f-m, 0), t):min(max(to-f-m, 0), t)]...), nil
}

// pop takes n elements from the front.
func (k *key) pop(n int64) ([]string, error) {
	out, err := k.part(0, n)
	if err != nil || n == 0 {
		return out, err
	}
	l := k.list
	l.changed = true
	f := min(n, int64(len(l.front)))
	l.front, n = l.front[f:], n-f
	if s := min(n, l.middle()); s > 0 {
		stored, err := k.stored(0, s)
		if err != nil {
			return nil, err
		}
		l.lo, n = stored[s-1].at+1, n-s
		i, _ := slices.BinarySearch(l.gone, l.lo)
		l.gone = l.gone[i:]
	}
	l.tail = l.tail[n:]
	return out, nil
}

// popLast takes n elements from the end, the last first.
func (k *key) popLast(n int64) ([]string, error) {
	length, err := k.length()
	if err != nil {
		return nil, err
	}
	out, err := k.part(length-n, length)
	if err != nil || n == 0 {
		return out, err
	}
	slices.Reverse(out)
	l := k.list
	l.changed = true
	t := min(n, int64(len(l.tail)))
	l.tail, n = l.tail[:int64(len(l.tail))-t], n-t
	if m := l.middle(); n > 0 && m > 0 {
		s := min(n, m)
		stored, err := k.stored(m-s, m)
		if err != nil {
			return nil, err
		}
		l.hi, n = stored[0].at, n-s
		i, _ := slices.BinarySearch(l.gone, l.hi)
		l.gone = l.gone[:i]
	}
	l.front = l.front[:int64(len(l.front))-n]
	return out, nil
}

// lineOf returns a key as a LIST of known length.
func (v *view) lineOf(name string) (*key, int64, error) {
	k, err := v.key(name, kindList)
	if err != nil {
		return nil, 0, err
	}
	n, err := k.length()
	return k, n, err
}

func push(front, must bool) func(v *view, c []string, drop bool) (any, error) {
	return func(v *view, c []string, drop bool) (any, error) {
		k, err := v.key(c[1], kindList)
		if err != nil {
			return nil, err
		}
		n := int64(0)
		if must || !drop {
			if n, err = k.length(); err != nil {
				return nil, err
			}
		}
		if must && n == 0 {
			return v.send(c, int64(0), drop)
		}
		l := k.list
		l.changed = true
		if front {
			added := slices.Clone(c[2:])
			slices.Reverse(added)
			l.front = append(added, l.front...)
		} else {
			l.tail = append(l.tail, c[2:]...)
		}
		return v.send(c, n+int64(len(c)-2), drop)
	}
}

// popping is LPOP and RPOP: one element, or with a count a list of at most so many.
func popping(take func(k *key, n int64) ([]string, error)) func(v *view, c []string, drop bool) (any, error) {
	return func(v *view, c []string, drop bool) (any, error) {
		if len(c) > 3 {
			return nil, Error("ERR wrong number of arguments for '" + c[0] + "' command")
		}
		k, length, err := v.lineOf(c[1])
		if err != nil {
			return nil, err
		}
		n := int64(1)
		if len(c) == 3 {
			if n, err = parseInt(c[2]); err != nil || n < 0 {
				return nil, Error("ERR value is out of range, must be positive")
			}
		}
		if length == 0 {
			return v.send(c, nil, drop)
		}
		out, err := take(k, min(n, length))
		if err != nil {
			return nil, err
		}
		if len(c) == 2 {
			return v.send(c, out[0], drop)
		}
		return v.send(c, anys(out), drop)
	}
}

var listCommands = map[string]command{
	"llen": {2, false, func(v *view, c []string, _ bool) (any, error) {
		_, n, err := v.lineOf(c[1])
		return n, err
	}},
	"lindex": {3, false, func(v *view, c []string, _ bool) (any, error) {
		i, err := parseInt(c[2])
		if err != nil {
			return nil, err
		}
		k, n, err := v.lineOf(c[1])
		if err != nil {
			return nil, err
		}
		if i = at(i, n); i < 0 || i >= n {
			return nil, nil //nolint:nilnil // nil is a reply
		}
		out, err := k.part(i, i+1)
		if err != nil {
			return nil, err
		}
		return out[0], nil
	}},
	"lrange": {4, false, func(v *view, c []string, _ bool) (any, error) {
		from, to, k, err := v.rangeOf(c)
		if err != nil {
			return nil, err
		}
		out, err := k.part(from, to)
		return anys(out), err
	}},
	"ltrim": {4, true, func(v *view, c []string, drop bool) (any, error) {
		from, to, k, err := v.rangeOf(c)
		if err != nil {
			return nil, err
		}
		n, err := k.length()
		if err != nil {
			return nil, err
		}
		if _, err := k.popLast(n - to); err != nil {
			return nil, err
		}
		if _, err := k.pop(from); err != nil {
			return nil, err
		}
		return v.send(c, status("OK"), drop)
	}},
	"lpush":   {3, true, push(true, false)},
	"rpush":   {3, true, push(false, false)},
	"lpushx":  {3, true, push(true, true)},
	"rpushx":  {3, true, push(false, true)},
	"lpop":    {2, true, popping((*key).pop)},
	"rpop":    {2, true, popping((*key).popLast)},
	"lrem":    {4, true, lrem},
	"linsert": {5, true, linsert},
}

// rangeOf reads the arguments of LRANGE and LTRIM.
func (v *view) rangeOf(c []string) (from, to int64, k *key, err error) {
	start, err := parseInt(c[2])
	if err != nil {
		return 0, 0, nil, err
	}
	stop, err := parseInt(c[3])
	if err != nil {
		return 0, 0, nil, err
	}
	k, n, err := v.lineOf(c[1])
	if err != nil {
		return 0, 0, nil, err
	}
	from, to = span(start, stop, n)
	return from, to, k, nil
}

func lrem(v *view, c []string, drop bool) (any, error) {
	count, err := parseInt(c[2])
	if err != nil {
		return nil, err
	}
	k, _, err := v.lineOf(c[1])
	if err != nil {
		return nil, err
	}
	l := k.list
	var stored []int64
	if l.middle() > 0 {
		r, err := v.read("lpos", k.name, c[3], "count", "0")
		if err != nil {
			return nil, err
		}
		places, _ := r.([]any)
		for _, p := range places {
			if i, ok := p.(int64); ok && i >= l.lo && i < l.hi {
				if _, gone := slices.BinarySearch(l.gone, i); !gone {
					stored = append(stored, i)
				}
			}
		}
	}
	left, removed := count, int64(0)
	if count == 0 {
		left = int64(len(l.front)+len(l.tail)) + int64(len(stored))
	}
	some := func(list []string, backwards bool) []string {
		var kept []string
		for i := range list {
			j := i
			if backwards {
				j = len(list) - 1 - i
			}
			if list[j] == c[3] && left > removed {
				removed++
			} else {
				kept = append(kept, list[j])
			}
		}
		if backwards {
			slices.Reverse(kept)
		}
		return kept
	}
	drops := func(backwards bool) {
		if backwards {
			slices.Reverse(stored)
		}
		n := min(left-removed, int64(len(stored)))
		l.gone = append(slices.Clone(l.gone), stored[:n]...)
		slices.Sort(l.gone)
		removed += n
	}
	if left < 0 {
		left = -left
		l.tail = some(l.tail, true)
		drops(true)
		l.front = some(l.front, true)
	} else {
		l.front = some(l.front, false)
		drops(false)
		l.tail = some(l.tail, false)
	}
	l.changed = l.changed || removed > 0
	return v.send(c, removed, drop)
}

// linsert puts a value beside the first that equals another. What of the list in Redis lies before it becomes part of the front.
func linsert(v *view, c []string, drop bool) (any, error) {
	side := strings.ToLower(c[2])
	if len(c) != 5 || side != "before" && side != "after" {
		return nil, errSyntax
	}
	k, n, err := v.lineOf(c[1])
	if err != nil {
		return nil, err
	}
	if n == 0 {
		return v.send(c, int64(0), drop)
	}
	l := k.list
	f, m := len(l.front), int(l.middle())
	place := slices.Index(l.front, c[3])
	if place < 0 && m > 0 {
		r, err := v.read("lpos", k.name, c[3], "count", "0")
		if err != nil {
			return nil, err
		}
		places, _ := r.([]any)
		for _, p := range places {
			at, ok := p.(int64)
			before, gone := slices.BinarySearch(l.gone, at)
			if ok && at >= l.lo && at < l.hi && !gone {
				place = f + int(at-l.lo) - before
				break
			}
		}
	}
	if i := slices.Index(l.tail, c[3]); place < 0 && i >= 0 {
		place = f + m + i
	}
	if place < 0 {
		return v.send(c, int64(-1), drop)
	}
	if side == "after" {
		place++
	}
	switch {
	case place <= f:
		l.front = slices.Insert(slices.Clone(l.front), place, c[4])
	case place >= f+m:
		l.tail = slices.Insert(slices.Clone(l.tail), place-f-m, c[4])
	default:
		stored, err := k.stored(0, int64(place-f))
		if err != nil {
			return nil, err
		}
		l.front = slices.Clone(l.front)
		for _, e := range stored {
			l.front = append(l.front, e.value)
		}
		l.front = append(l.front, c[4])
		l.lo = stored[len(stored)-1].at + 1
		l.gone = after(l.gone, l.lo)
	}
	l.changed = true
	return v.send(c, n+1, drop)
}

// after is the part of a sorted list from a number on.
func after(list []int64, from int64) []int64 {
	i, _ := slices.BinarySearch(list, from)
	return list[i:]
}

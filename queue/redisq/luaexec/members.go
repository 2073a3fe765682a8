package luaexec

import (
	"maps"
	"slices"
)

// presence says whether a member is in Redis.
type presence uint8

const (
	unknown presence = iota
	absent
	present
)

// source reads the members of one key from Redis.
type source[V any] interface {
	get(names []string) ([]*V, error) // nil for what is not there
	count() (int64, error)
	each(func(name string, v V)) error
}

// members is what a run knows of a key that holds members: fields of a HASH, members of a SET or a ZSET with their scores. It knows as
// much as it was asked for and no more.
type members[V any] struct {
	now map[string]*V       // as the script sees it; nil = not there
	was map[string]presence // of those that the run has changed: what Redis has
	all bool                // now has every member
}

func newMembers[V any](empty bool) *members[V] {
	return &members[V]{now: map[string]*V{}, was: map[string]presence{}, all: empty}
}

// find makes members known.
func (m *members[V]) find(src source[V], names ...string) error {
	if m.all {
		return nil
	}
	var ask []string
	for _, n := range names {
		if _, ok := m.now[n]; !ok && !slices.Contains(ask, n) {
			ask = append(ask, n)
		}
	}
	if len(ask) == 0 {
		return nil
	}
	values, err := src.get(ask)
	if err != nil {
		return err
	}
	for i, n := range ask {
		m.now[n] = values[i]
	}
	return nil
}

func (m *members[V]) change(name string, v *V) {
	if _, ok := m.was[name]; !ok {
		old, known := m.now[name]
		switch {
		case old != nil:
			m.was[name] = present
		case known || m.all:
			m.was[name] = absent
		default:
			m.was[name] = unknown
		}
	}
	m.now[name] = v
}

func (m *members[V]) changed() bool { return len(m.was) > 0 }

// base is how many members Redis has that the run has changed.
func (m *members[V]) base(src source[V]) (int64, error) {
	var ask []string
	for n, p := range m.was {
		if p == unknown {
			ask = append(ask, n)
		}
	}
	if len(ask) > 0 {
		slices.Sort(ask)
		values, err := src.get(ask)
		if err != nil {
			return 0, err
		}
		for i, n := range ask {
			m.was[n] = absent
			if values[i] != nil {
				m.was[n] = present
			}
		}
	}
	var k int64
	for _, p := range m.was {
		if p == present {
			k++
		}
	}
	return k, nil
}

// card is the number of members.
func (m *members[V]) card(src source[V]) (int64, error) {
	var n int64
	if m.all {
		for _, v := range m.now {
			if v != nil {
				n++
			}
		}
		return n, nil
	}
	n, err := src.count()
	if err != nil || !m.changed() {
		return n, err
	}
	k, err := m.base(src)
	if err != nil {
		return 0, err
	}
	n -= k
	for name := range m.was {
		if m.now[name] != nil {
			n++
		}
	}
	return n, nil
}

// any reports whether there is a member.
func (m *members[V]) any(src source[V]) (bool, error) {
	for name := range m.was {
		if m.now[name] != nil {
			return true, nil
		}
	}
	n, err := m.card(src)
	return n > 0, err
}

// load makes every member known.
func (m *members[V]) load(src source[V]) error {
	if m.all {
		return nil
	}
	err := src.each(func(name string, v V) {
		if _, ok := m.was[name]; !ok {
			m.now[name] = &v
		}
	})
	m.all = err == nil
	return err
}

// names lists every member in bytewise order.
func (m *members[V]) names(src source[V]) ([]string, error) {
	if err := m.load(src); err != nil {
		return nil, err
	}
	return slices.DeleteFunc(slices.Sorted(maps.Keys(m.now)), func(n string) bool { return m.now[n] == nil }), nil
}

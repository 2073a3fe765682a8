package luaexec

import (
	"context"
	"fmt"
	"strings"
)

// view is the keys as one run sees them: what Redis has, under WATCH, and over it what the run has written.
type view struct {
	ctx      context.Context
	conn     Conn
	readOnly bool
	popped   func(key string) bool // keys that others change without raising the revision
	moment   any                   // reply of TIME

	replies map[string]any // of Redis to reads of this run, by reading
	asked   [][]string     // what the script caused to be read, in order
	failed  bool           // the connection did
	watched map[string]bool
	keys    map[string]*key
	writes  []write

	limits Limits
	calls  int
	bytes  int
}

// write is a command that is to be sent, and its reply where that was computed and does not depend on time.
type write struct {
	cmd   []string
	reply any
	check bool
}

func newView(ctx context.Context, conn Conn, c *Config, p *Program) *view {
	return &view{ctx: ctx, conn: conn, readOnly: p.ReadOnly, popped: c.Popped, replies: map[string]any{}, watched: map[string]bool{},
		keys: map[string]*key{}, limits: c.Limits}
}

// reading names a read.
func reading(cmd []string) string { return strings.Join(cmd, "\x00") }

// plan lists the commands for a read: a key that others change without raising the revision is watched itself.
func (v *view) plan(cmd []string) [][]string {
	if len(cmd) < 2 || v.popped == nil || !v.popped(cmd[1]) || v.watched[cmd[1]] {
		return [][]string{cmd}
	}
	v.watched[cmd[1]] = true
	return [][]string{{"watch", cmd[1]}, cmd}
}

// read asks Redis, once in a run.
func (v *view) read(cmd ...string) (any, error) {
	v.asked = append(v.asked, cmd)
	r, ok := v.replies[reading(cmd)]
	if !ok {
		plan := v.plan(cmd)
		all, err := v.conn.Do(v.ctx, plan)
		if err == nil && len(all) != len(plan) {
			err = fmt.Errorf("luaexec: %d replies to %d commands", len(all), len(plan))
		}
		if err != nil {
			v.failed = true
			return nil, err
		}
		if r, err = v.keep(cmd, all); err != nil {
			return nil, err
		}
	}
	if e, isError := r.(Error); isError {
		return nil, e
	}
	return r, nil
}

// keep remembers the reply of a read: the last of its plan.
func (v *view) keep(cmd []string, replies []any) (any, error) {
	for _, r := range replies[:len(replies)-1] {
		if e, ok := r.(Error); ok {
			return nil, fmt.Errorf("luaexec: watch: %w", e)
		}
	}
	r := replies[len(replies)-1]
	v.replies[reading(cmd)] = r
	return r, v.charge(weight(r))
}

// weight is about what a reply takes in memory, in bytes.
func weight(r any) int {
	switch r := r.(type) {
	case string:
		return 32 + len(r)
	case []any:
		n := 32
		for _, e := range r {
			n += weight(e)
		}
		return n
	}
	return 16
}

// LimitError says that a script took more than it may.
type LimitError struct {
	What string // "calls" or "bytes"
	Max  int
}

// Error implements error.
func (e *LimitError) Error() string {
	return fmt.Sprintf("luaexec: the script takes too much: the limit is %d %s of one run", e.Max, e.What)
}

func (v *view) charge(n int) error {
	if v.bytes += n; v.bytes > v.limits.Bytes {
		return &LimitError{What: "bytes", Max: v.limits.Bytes}
	}
	return nil
}

// do carries out one command of a script.
func (v *view) do(cmd []string, drop bool) (any, error) {
	if v.calls++; v.calls > v.limits.Calls {
		return nil, &LimitError{What: "calls", Max: v.limits.Calls}
	}
	cmd[0] = strings.ToLower(cmd[0])
	c, ok := commands()[cmd[0]]
	if !ok {
		return nil, Error(fmt.Sprintf("ERR the command %q is not supported without Lua", cmd[0]))
	}
	if len(cmd) < c.least {
		return nil, Error("ERR wrong number of arguments for '" + cmd[0] + "' command")
	}
	if c.writes && v.readOnly {
		return nil, Error("ERR Write commands are not allowed from read-only scripts.")
	}
	return c.run(v, cmd, drop)
}

// send keeps a write back.
func (v *view) send(cmd []string, reply any, drop bool) (any, error) {
	n := 0
	for _, a := range cmd {
		n += 16 + len(a)
	}
	v.writes = append(v.writes, write{cmd: cmd, reply: reply, check: !drop && !timed[cmd[0]]})
	return reply, v.charge(n)
}

// timed are commands whose reply may differ at EXEC because a key has expired since, or that depends on who listens.
var timed = map[string]bool{"del": true, "unlink": true, "pexpire": true, "expire": true, "publish": true}

// kind is what a key holds.
type kind uint8

const (
	kindNone kind = iota // not known, or nothing
	kindString
	kindList
	kindHash
	kindSet
	kindZSet
)

// key is one key in a view.
type key struct {
	v       *view
	name    string
	kind    kind
	cleared bool // what Redis has does not count any more
	str     *text
	list    *line
	hash    *members[string]
	set     *members[struct{}]
	zset    *members[float64]
}

const wrongType = Error("WRONGTYPE Operation against a key holding the wrong kind of value")

// key returns a key that is to be used as a kind.
func (v *view) key(name string, want kind) (*key, error) {
	k := v.keys[name]
	if k == nil {
		k = &key{v: v, name: name}
		v.keys[name] = k
	}
	if k.kind == want || want == kindNone {
		return k, nil
	}
	if k.kind != kindNone && k.changed() {
		there, err := k.exists()
		if err != nil {
			return nil, err
		}
		if there {
			return nil, wrongType
		}
		k.clear()
	}
	k.kind = want
	switch want {
	case kindString:
		k.str = &text{known: k.cleared}
	case kindList:
		k.list = &line{sized: k.cleared}
	case kindHash:
		k.hash = newMembers[string](k.cleared)
	case kindSet:
		k.set = newMembers[struct{}](k.cleared)
	case kindZSet:
		k.zset = newMembers[float64](k.cleared)
	case kindNone:
	}
	return k, nil
}

// clear makes the key absent.
func (k *key) clear() { *k = key{v: k.v, name: k.name, cleared: true} }

// changed reports whether the run has changed the key.
func (k *key) changed() bool {
	switch k.kind {
	case kindString:
		return k.str.changed
	case kindList:
		return k.list.changed
	case kindHash:
		return k.hash.changed()
	case kindSet:
		return k.set.changed()
	case kindZSet:
		return k.zset.changed()
	case kindNone:
	}
	return false
}

func (k *key) exists() (bool, error) {
	if !k.cleared && !k.changed() {
		r, err := k.v.read("exists", k.name)
		return r == int64(1), err
	}
	switch k.kind {
	case kindString:
		return k.str.value != nil, nil
	case kindList:
		n, err := k.length()
		return n > 0, err
	case kindHash:
		return k.hash.any(hashSource{k})
	case kindSet:
		return k.set.any(setSource{k})
	case kindZSet:
		return k.zset.any(zsetSource{k})
	case kindNone:
	}
	return false, nil
}

// Replies of Redis to reads, which have been asked for so that they have these types.

func number64(r any, err error) (int64, error) {
	if err != nil {
		return 0, err
	}
	n, ok := r.(int64)
	if !ok {
		return 0, fmt.Errorf("luaexec: redis replied %T instead of a number", r)
	}
	return n, nil
}

func texts(r any, err error) ([]string, error) {
	if err != nil {
		return nil, err
	}
	l, ok := r.([]any)
	if !ok {
		return nil, fmt.Errorf("luaexec: redis replied %T instead of a list", r)
	}
	out := make([]string, len(l))
	for i, e := range l {
		s, ok := e.(string)
		if !ok {
			return nil, fmt.Errorf("luaexec: redis replied a list with %T instead of a string", e)
		}
		out[i] = s
	}
	return out, nil
}

// optional is texts for a list in which values may be missing.
func optional(r any, err error) ([]*string, error) {
	if err != nil {
		return nil, err
	}
	l, ok := r.([]any)
	if !ok {
		return nil, fmt.Errorf("luaexec: redis replied %T instead of a list", r)
	}
	out := make([]*string, len(l))
	for i, e := range l {
		if s, ok := e.(string); ok {
			out[i] = &s
		}
	}
	return out, nil
}

func anys(list []string) []any {
	out := make([]any, len(list))
	for i, s := range list {
		out[i] = s
	}
	return out
}

func bit(b bool) int64 {
	if b {
		return 1
	}
	return 0
}

// at turns an index from the end into one from the start.
func at(i, n int64) int64 {
	if i < 0 {
		i += n
	}
	return i
}

// span is the part of n elements that start and stop name, as from and to (behind the last).
func span(start, stop, n int64) (from, to int64) {
	from, to = max(at(start, n), 0), min(at(stop, n)+1, n)
	if from >= to {
		return 0, 0
	}
	return from, to
}

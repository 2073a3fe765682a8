package luaexec

import (
	"maps"
	"slices"
	"strconv"
	"sync"
)

// command is what a view does for one command of Redis. least is the fewest words, with the command itself.
type command struct {
	least  int
	writes bool
	run    func(v *view, cmd []string, drop bool) (any, error)
}

// commands is the table of what scripts may call.
var commands = sync.OnceValue(func() map[string]command {
	m := map[string]command{
		"time":   {1, false, func(v *view, _ []string, _ bool) (any, error) { return v.moment, nil }},
		"exists": {2, false, exists},
		"type":   {2, false, typeOf},
		"del":    {2, true, del},
		"unlink": {2, true, del},
		"expire": {3, true, expire}, "pexpire": {3, true, expire},
		"publish": {3, true, func(v *view, c []string, drop bool) (any, error) { return v.send(c, int64(0), drop) }},
		"pubsub":  {3, false, numsub},
	}
	for _, part := range []map[string]command{stringCommands, listCommands, hashCommands, setCommands, zsetCommands, zsetRanges} {
		maps.Copy(m, part)
	}
	return m
})

// Supported lists the commands that scripts may call, in lower case and in order.
func Supported() []string { return slices.Sorted(maps.Keys(commands())) }

const (
	errInteger = Error("ERR value is not an integer or out of range")
	errFloat   = Error("ERR value is not a valid float")
	errSyntax  = Error("ERR syntax error")
)

func parseInt(s string) (int64, error) {
	n, err := strconv.ParseInt(s, 10, 64)
	if err != nil {
		return 0, errInteger
	}
	return n, nil
}

func parseFloat(s string) (float64, error) {
	f, ok := number(s)
	if !ok || f != f {
		return 0, errFloat
	}
	return f, nil
}

func exists(v *view, c []string, _ bool) (any, error) {
	n := int64(0)
	for _, name := range c[1:] {
		k, err := v.key(name, kindNone)
		if err != nil {
			return nil, err
		}
		there, err := k.exists()
		if err != nil {
			return nil, err
		}
		n += bit(there)
	}
	return n, nil
}

func typeOf(v *view, c []string, _ bool) (any, error) {
	k, err := v.key(c[1], kindNone)
	if err != nil {
		return nil, err
	}
	there, err := k.exists()
	if err != nil || !there {
		return status("none"), err
	}
	if k.kind != kindNone {
		return status([]string{kindString: "string", kindList: "list", kindHash: "hash", kindSet: "set", kindZSet: "zset"}[k.kind]), nil
	}
	r, err := v.read("type", c[1])
	s, _ := r.(string)
	return status(s), err
}

func del(v *view, c []string, drop bool) (any, error) {
	n := int64(0)
	for _, name := range c[1:] {
		k, err := v.key(name, kindNone)
		if err != nil {
			return nil, err
		}
		if !drop {
			there, err := k.exists()
			if err != nil {
				return nil, err
			}
			n += bit(there)
		}
		k.clear()
	}
	return v.send(c, n, drop)
}

// expire sets a time to live. That a key is gone when its time is up does not show in the run.
func expire(v *view, c []string, drop bool) (any, error) {
	n, err := parseInt(c[2])
	if err != nil {
		return nil, err
	}
	k, err := v.key(c[1], kindNone)
	if err != nil {
		return nil, err
	}
	there := true
	if !drop || n <= 0 {
		if there, err = k.exists(); err != nil {
			return nil, err
		}
	}
	if n <= 0 && there {
		k.clear()
	}
	return v.send(c, bit(there), drop)
}

// numsub answers that there is a subscriber: nobody can know who will have subscribed until EXEC.
func numsub(_ *view, c []string, _ bool) (any, error) {
	var out []any
	for _, name := range c[2:] {
		out = append(out, name, int64(1))
	}
	return out, nil
}

package redisq

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/redis/go-redis/v9"

	"github.com/taskhost/taskhost/queue"
	"github.com/taskhost/taskhost/queue/redisq/luaexec"
)

// Without Lua (?lua=0) the scripts of lua/ run in the host, and Redis gets transactions: see package luaexec. Nothing else differs: who
// waits still blocks in Redis, and a call whose reply was lost is still sent again under its number.

// newExecutor makes what runs the scripts.
func (s *Store) newExecutor() error {
	holder, err := newToken()
	if err != nil {
		return err
	}
	wake, guard, timer := s.prefix+keyWake, s.prefix+keyGuard, s.prefix+keyTimer
	s.exec = luaexec.New(luaexec.Config{
		Connect: luaexec.Connections(s.client),
		Rev:     s.prefix + keyRevision, Lock: s.prefix + keyLock, Mark: s.prefix + keyMode, MarkValue: ModeNoLua,
		Holder: string(holder),
		Popped: func(key string) bool { return key == guard || key == timer || strings.HasPrefix(key, wake) },
	})
	return nil
}

// runHere runs a script in this process.
func (s *Store) runHere(ctx context.Context, name string, args []any) (any, error) {
	p, err := s.scripts[name].program()
	if err != nil {
		return nil, err
	}
	argv := make([]string, 0, len(args)+1)
	for _, a := range append([]any{s.clockArg()}, args...) {
		t, err := argText(a)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		argv = append(argv, t)
	}
	return s.exec.Run(ctx, p, []string{s.prefix}, argv)
}

// argText is an argument as the client library would send it.
func argText(a any) (string, error) {
	switch a := a.(type) {
	case string:
		return a, nil
	case []byte:
		return string(a), nil
	case int:
		return strconv.Itoa(a), nil
	case int64:
		return strconv.FormatInt(a, 10), nil
	case float64:
		return strconv.FormatFloat(a, 'f', -1, 64), nil
	}
	return "", fmt.Errorf("an argument of type %T: strings, bytes and numbers can be sent", a)
}

// Modes of a store.
const (
	ModeLua   = "lua"   // scripts run in Redis
	ModeNoLua = "nolua" // scripts run in the hosts, for a Redis that does not run scripts
)

func (s *Store) mode() string {
	if s.exec != nil {
		return ModeNoLua
	}
	return ModeLua
}

func modeError(got, want string) error {
	lua := map[string]string{ModeLua: "without ?lua=0", ModeNoLua: "with ?lua=0"}
	return &queue.InvalidError{Field: "redis", Reason: fmt.Sprintf("the hosts of this store run in mode %s (store URL %s), this one in mode %s (%s): "+
		"a store has one mode; use its URL, or stop all its hosts and change it: taskhost store mode", got, lua[got], want, lua[want])}
}

// wrongMode is the error of a call to a store of the other mode, nil for any other error.
func (s *Store) wrongMode(err error) error {
	if m, ok := errors.AsType[*luaexec.MarkError](err); ok {
		return modeError(m.Got, m.Want)
	}
	if redis.HasErrorPrefix(err, "MODE") {
		return modeError(ModeNoLua, ModeLua)
	}
	return nil
}

// checkMode marks a new store with this host's mode and refuses one of the other.
func (s *Store) checkMode(ctx context.Context) error {
	v, err := s.run(ctx, "mode", s.mode())
	if err != nil {
		return err
	}
	if got := asString(v); got != s.mode() {
		return modeError(got, s.mode())
	}
	return nil
}

// SetMode makes the store that the options name one for hosts of the mode that they name, and returns the mode it had ("" = none) and the
// one it has. Hosts of the other mode are refused from then on at every call, so that all should have been stopped before. Errors
// are those of Open.
func SetMode(ctx context.Context, o Options) (before, now string, err error) {
	t, err := o.parse()
	if err != nil {
		return "", "", err
	}
	c := t.connect()
	defer func() { err = joinClosed(err, c.Close()) }()
	now = ModeLua
	if t.noLua {
		now = ModeNoLua
	}
	mode := t.prefix + keyMode
	err = c.Watch(ctx, func(tx *redis.Tx) error {
		if before, err = tx.Get(ctx, mode).Result(); err != nil && !errors.Is(err, redis.Nil) {
			return err
		}
		// The revision ends what hosts without Lua are amid.
		_, err := tx.TxPipelined(ctx, func(p redis.Pipeliner) error {
			p.Set(ctx, mode, now, 0)
			p.Incr(ctx, t.prefix+keyRevision)
			return nil
		})
		return err
	}, mode)
	if err != nil {
		return "", "", fmt.Errorf("%w: redis: mode: %w", queue.ErrUnavailable, err)
	}
	return before, now, nil
}

func joinClosed(err, closing error) error {
	if err == nil {
		return closing
	}
	return joinClose(err, closing)
}

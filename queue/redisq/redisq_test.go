package redisq_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/taskhost/taskhost/queue"
	"github.com/taskhost/taskhost/queue/queuetest"
	"github.com/taskhost/taskhost/queue/redisq"
	"github.com/taskhost/taskhost/queue/redisq/redistest"
)

var shared redistest.Shared

func TestMain(m *testing.M) {
	if os.Getenv(workerEnv) != "" {
		runWorker()
		return
	}
	if os.Getenv(waiterEnv) != "" {
		runWaiter()
		return
	}
	code := m.Run()
	if err := shared.Stop(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = max(code, 1)
	}
	if code == 0 {
		if err := goleak.Find(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			code = 1
		}
	}
	os.Exit(code)
}

func open(t testing.TB, o redisq.Options) *redisq.Store {
	t.Helper()
	if o.URL == "" {
		o.URL = shared.URL(t)
	}
	s, err := redisq.Open(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Errorf("Close: %v", err)
		}
	})
	return s
}

// mode is a way in which scripts run. The tests of both play without Lua as a user who may not run scripts.
type mode string

// url names the server of this package, with a prefix that nobody else has.
func (m mode) url(tb testing.TB) string {
	tb.Helper()
	if m == redisq.ModeNoLua {
		return shared.URLWithoutScripts(tb)
	}
	return shared.URL(tb)
}

// of names a server and the prefix x:.
func (m mode) of(s *redistest.Server) string {
	if m == redisq.ModeNoLua {
		return s.URLWithoutScripts("x:")
	}
	return s.URL("x:")
}

// inBothModes plays a test in both modes.
func inBothModes(t *testing.T, test func(t *testing.T, m mode)) {
	t.Helper()
	t.Parallel()
	for _, m := range []mode{redisq.ModeLua, redisq.ModeNoLua} {
		t.Run(string(m), func(t *testing.T) {
			t.Parallel()
			test(t, m)
		})
	}
}

func TestContract(t *testing.T) { inBothModes(t, contract) }

func contract(t *testing.T, m mode) {
	queuetest.Exercise(t, func(t *testing.T) queuetest.Backend {
		clock := queuetest.NewFakeClock()
		o := redisq.Options{URL: m.url(t), Clock: clock}
		current := open(t, o)
		return queuetest.Backend{
			Queue:   current,
			Advance: clock.Advance,
			Reopen: func(t *testing.T) queue.Queue {
				if err := current.Close(); err != nil {
					t.Fatal(err)
				}
				current = open(t, o)
				return current
			},
			// The store lives on when a host dies; what ran there comes back when its lease has ended.
			Crash: func(t *testing.T) queue.Queue {
				current = open(t, o)
				clock.Advance(30 * time.Second)
				if _, err := current.Maintain(t.Context()); err != nil {
					t.Fatal(err)
				}
				return current
			},
		}
	})
}

// seeds are those of the histories of a mode, none for all that there are. Without Lua a few do, unless time does not matter: the scripts
// are the same, and luaexec has histories of its own.
func seeds(m mode) []uint64 {
	if m == redisq.ModeLua || os.Getenv(queuetest.LongEnv) == "1" || os.Getenv(queuetest.SeedEnv) != "" {
		return nil
	}
	return []uint64{1, 2, 3, 4, rand.Uint64()}
}

func TestHistories(t *testing.T) {
	inBothModes(t, func(t *testing.T, m mode) {
		queuetest.Histories(t, func(t *testing.T, clock queue.Clock, limits queue.Limits) queue.Queue {
			return open(t, redisq.Options{URL: m.url(t), Clock: clock, Limits: limits})
		}, seeds(m)...)
	})
}

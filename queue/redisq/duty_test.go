package redisq_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/taskhost/taskhost/queue"
	"github.com/taskhost/taskhost/queue/queuetest"
	"github.com/taskhost/taskhost/queue/redisq"
)

// sleepers are hosts in WaitDue on one store, with one clock.
type sleepers struct {
	t     *testing.T
	clock *queuetest.FakeClock
	url   string
	done  chan string // the host whose WaitDue returned nil
}

// start calls WaitDue of one more host, and returns when so many block.
func (s *sleepers) start(name string, blocked int) (host *redisq.Store, stop func()) {
	s.t.Helper()
	host = open(s.t, redisq.Options{URL: s.url + "&client_name=" + hostName, Clock: s.clock})
	ctx, cancel := context.WithCancelCause(s.t.Context())
	ended, gaveUp := make(chan struct{}), errors.New("gave up")
	go func() {
		defer close(ended)
		switch err := host.WaitDue(ctx); {
		case err == nil:
			s.done <- name
		case !errors.Is(err, gaveUp) && !errors.Is(err, queue.ErrClosed):
			s.t.Errorf("%s: %v", name, err)
		}
	}()
	s.t.Cleanup(func() { cancel(gaveUp); <-ended })
	waitBlocked(s.t, client(s.t, shared.Server(s.t).Addr()), blocked)
	return host, func() { cancel(gaveUp); <-ended }
}

// wakes checks which host returns next.
func (s *sleepers) wakes(why, name string) {
	s.t.Helper()
	select {
	case got := <-s.done:
		if got != name {
			s.t.Errorf("%s: %s was told, want %s", why, got, name)
		}
	case <-time.After(patience):
		s.t.Fatalf("%s: nobody was told", why)
	}
}

// Of the hosts that wait for what time makes due one is told, and the next a second later when that one does nothing about it.
func TestOneHostHasTheDuty(t *testing.T) { oneByOne(t, oneHostHasTheDuty) }

// oneByOne plays a test in both modes, not at once: it counts blocked clients of the package's server.
func oneByOne(t *testing.T, test func(t *testing.T, s *sleepers)) {
	t.Helper()
	for _, m := range []mode{redisq.ModeLua, redisq.ModeNoLua} {
		t.Run(string(m), func(t *testing.T) {
			test(t, &sleepers{t: t, clock: queuetest.NewFakeClock(), url: m.url(t), done: make(chan string, 9)})
		})
	}
}

func oneHostHasTheDuty(t *testing.T, s *sleepers) {
	producer := open(t, redisq.Options{URL: s.url, Clock: s.clock})
	later := mail("a")
	later.Delay = 10 * time.Second
	put(t, producer, later)
	s.start("first", 1)
	second, stopSecond := s.start("second", 2)
	_, stopThird := s.start("third", 3)

	s.clock.Advance(10 * time.Second)
	s.wakes("a due job", "first")
	s.clock.Advance(999 * time.Millisecond)
	select {
	case name := <-s.done:
		t.Fatalf("%s was told before the first host had its second", name)
	default:
	}
	// The first host does nothing. Which of the others comes is not said.
	s.clock.Advance(time.Millisecond)
	var name string
	select {
	case name = <-s.done:
	case <-time.After(patience):
		t.Fatal("nobody takes over")
	}
	if name == "first" {
		t.Error("the first host was told twice")
	}
	if r, err := second.Maintain(t.Context()); err != nil || r.Promoted != 1 {
		t.Errorf("Maintain = %+v, %v; want one promoted", r, err)
	}
	stopSecond()
	stopThird()
}

// What becomes due earlier than anybody knew is known to two hosts: it is done in time although one of them dies.
func TestTheDutyEndsEarlier(t *testing.T) {
	oneByOne(t, func(t *testing.T, s *sleepers) {
		s.start("first", 1)
		s.start("second", 2)
		producer := open(t, redisq.Options{URL: s.url, Clock: s.clock})
		// Nobody has anything to do before this one.
		later := mail("a")
		later.Delay = 5 * time.Second
		put(t, producer, later)
		waitBlocked(t, client(t, shared.Server(t).Addr()), 2) // both were woken, and know now
		s.clock.Advance(5 * time.Second)
		one := <-s.done
		s.clock.Advance(time.Second) // the one that was told does nothing
		select {
		case two := <-s.done:
			if one == two {
				t.Errorf("%s was told twice", one)
			}
		case <-time.After(patience):
			t.Fatal("nobody takes over")
		}
	})
}

// A host that gives up hands the duty on at once.
func TestTheDutyIsHandedOn(t *testing.T) {
	oneByOne(t, func(t *testing.T, s *sleepers) {
		producer := open(t, redisq.Options{URL: s.url, Clock: s.clock})
		later := mail("a")
		later.Delay = 10 * time.Second
		put(t, producer, later)
		_, stop := s.start("first", 1)
		s.start("second", 2)
		stop()
		waitBlocked(t, client(t, shared.Server(t).Addr()), 1)
		s.clock.Advance(10 * time.Second) // at its time, not a second later
		s.wakes("a due job after the first host gave up", "second")
	})
}

package redisq

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strconv"
	"time"

	"github.com/taskhost/taskhost/queue"
)

// waitMost is how long a Wait blocks before it looks again, guardMost how long the guard does.
const (
	waitMost  = time.Minute
	guardMost = 5 * time.Minute
)

// guardDelay is how long a host that was woken has to come and reserve, before somebody else is woken.
const guardDelay = time.Second

// What lua/wait.lua answers besides a time, and the token that says that there is something to reserve.
const (
	somethingReady = -2
	tokenReady     = "1"
)

// Wait implements queue.Queue: when nothing is ready, it blocks on the lists of hints of all queues it names, in one command. Redis
// serves blocked clients oldest first, so that one job wakes one host.
func (s *Store) Wait(ctx context.Context, view queue.View) error {
	if err := s.enter(ctx); err != nil {
		return err
	}
	if err := view.Validate(); err != nil {
		return err
	}
	s.guarding.Do(func() { s.workers.Go(s.guard) })
	name := viewName(view)
	keys := []string{keyWake + "*"}
	if len(view.Queues) > 0 {
		keys = keys[:0]
		for _, q := range view.Queues {
			keys = append(keys, keyWake+q)
		}
	}
	who := s.lanes.name + "-" + strconv.FormatInt(s.waits.Add(1), 36)
	pass := func() { s.passOn(ctx, "check", name) }
	for {
		asked := s.clockNow()
		v, err := s.run(ctx, "wait", name, who)
		if err != nil {
			return err
		}
		ms := asInt(v)
		if ms == somethingReady {
			return nil
		}
		token, err := s.sleep(ctx, keys, asked, ms, pass)
		if err != nil || token == tokenReady {
			return err
		}
	}
}

// WaitDue implements queue.Queue: it sleeps until the next due time that lua/due.lua knows, or until somebody makes something due
// earlier than that. Of the hosts that share a store one has the duty; the others sleep until it ends, and take it over when they are
// woken.
func (s *Store) WaitDue(ctx context.Context) error {
	if err := s.enter(ctx); err != nil {
		return err
	}
	me, woken := s.lanes.name, int64(0)
	pass := func() { s.passOn(ctx, "timer", me) }
	for {
		asked := s.clockNow()
		v, err := s.run(ctx, "due", me, woken, waitMost.Milliseconds())
		if err != nil {
			return err
		}
		n, err := asList(v)
		if err != nil || len(n) != 2 {
			return fmt.Errorf("%w: redis answered what is due with %d values", queue.ErrUnavailable, len(n))
		}
		ms, duty := asInt(n[0]), asInt(n[1]) == 1
		if ms == 0 || duty && s.clock == nil && s.outage.gapped() { // Maintain deals with the gap
			return nil
		}
		token, err := s.sleep(ctx, []string{keyTimer}, asked, ms, pass)
		if err != nil {
			return err
		}
		woken = flag(token != "")
	}
}

// sleep blocks for a token until it is ms after asked (-1: for ever), at most for a while. It returns the token, "" for none.
func (s *Store) sleep(ctx context.Context, keys []string, asked time.Time, ms int64, pass func()) (string, error) {
	w := wish{keys: keys, most: waitMost - rand.N(waitMost/4), pass: pass}
	if ms >= 0 && s.clock == nil {
		w.most = min(w.most, time.Duration(max(ms, 1))*time.Millisecond)
	}
	if ms >= 0 && s.clock != nil {
		at := asked.Add(time.Duration(ms) * time.Millisecond)
		early, stop := s.clock.NewTimer(at.Sub(s.clock.Now()))
		defer stop()
		if !s.clock.Now().Before(at) { // it moved meanwhile
			return "", nil
		}
		w.early = early
	}
	return s.block(ctx, &s.blocked, w)
}

// guard looks after hints that were taken, so that a host that dies between its wake and its Reserve delays a job by little more than
// guardDelay. Two guards of different hosts are told of each; it costs nothing while nobody is woken.
func (s *Store) guard() {
	for s.life.Err() == nil {
		token, err := s.block(s.life, &s.guards, wish{keys: []string{keyGuard}, most: guardMost - rand.N(guardMost/4), pass: func() {}})
		if err == nil && token != "" {
			t := time.NewTimer(s.guardDelay)
			select {
			case <-t.C:
				_, err = s.run(s.life, "check", "")
			case <-s.life.Done():
			}
			t.Stop()
		}
		if err != nil && !pause(s.life) {
			return
		}
	}
}

// clockNow is the time that scripts are told; zero when it is that of Redis.
func (s *Store) clockNow() time.Time {
	if s.clock == nil {
		return time.Time{}
	}
	return queue.Millis(s.clock.Now())
}

package lease

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/taskhost/taskhost/handlers"
	"github.com/taskhost/taskhost/host/lifecycle"
	"github.com/taskhost/taskhost/host/lifecycle/lifecycletest"
	"github.com/taskhost/taskhost/queue"
)

// grants is a store that answers ok, or what is scripted for an id.
type grants struct {
	mu     sync.Mutex
	calls  [][]string
	answer map[string]queue.ExtendStatus
	err    error
	hang   time.Duration
}

func (g *grants) Extend(ctx context.Context, refs []queue.Ref, _ time.Duration) ([]queue.ExtendOutcome, error) {
	g.mu.Lock()
	hang, err := g.hang, g.err
	var ids []string
	out := make([]queue.ExtendOutcome, len(refs))
	for i, ref := range refs {
		ids = append(ids, ref.ID)
		out[i].Status = queue.ExtendOK
		if s, ok := g.answer[ref.ID]; ok {
			out[i].Status = s
		}
	}
	g.calls = append(g.calls, ids)
	g.mu.Unlock()
	if hang > 0 {
		select {
		case <-time.After(hang):
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
	return out, err
}

func (g *grants) set(change func(*grants)) {
	g.mu.Lock()
	defer g.mu.Unlock()
	change(g)
}

// seen returns the calls so far, once everything that happens at this instant has happened.
func (g *grants) seen() [][]string {
	synctest.Wait()
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.calls
}

// last is what the last call extended.
func (g *grants) last() string {
	calls := g.seen()
	return fmt.Sprint(calls[len(calls)-1])
}

const testLease = 15 * time.Second

func fresh(t *testing.T, g *grants) *Keeper {
	return New(Options{Queue: g, Lease: testLease, Log: slog.New(slog.NewTextHandler(t.Output(), nil)), Random: func() float64 { return 0 }})
}

func add(k *Keeper, ids ...string) []*Entry {
	var entries []*Entry
	for _, id := range ids {
		e := &Entry{}
		e.Init(queue.Ref{ID: id}, time.Now())
		entries = append(entries, e)
	}
	k.Add(entries)
	return entries
}

func inBubble(t *testing.T, test func(t *testing.T, g *grants, k *Keeper)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		g := &grants{answer: map[string]queue.ExtendStatus{}}
		k := fresh(t, g)
		if err := k.Start(t.Context()); err != nil {
			t.Fatal(err)
		}
		test(t, g, k)
		k.Stop()
	})
}

func TestOneCallForAllPerThirdOfALeaseAndNoneWhenIdle(t *testing.T) {
	inBubble(t, func(t *testing.T, g *grants, k *Keeper) {
		time.Sleep(time.Hour)
		if n := len(g.seen()); n != 0 {
			t.Fatalf("%d calls without a job", n)
		}
		entries := add(k, "a", "b", "c")
		time.Sleep(time.Minute)
		if got, want := fmt.Sprint(len(g.seen()), g.seen()[0]), "12 [a b c]"; got != want {
			t.Errorf("calls %s, want %s", got, want)
		}
		k.Remove(entries[0])
		k.Remove(entries[0]) // twice is once
		time.Sleep(5 * time.Second)
		if got, want := g.last(), "[c b]"; got != want {
			t.Errorf("extended %s, want %s", got, want)
		}
		if entries[0].Context().Err() == nil {
			t.Error("the context of a removed entry lives on")
		}
		if k.Stats().Held != 2 {
			t.Errorf("%+v", k.Stats())
		}
	})
}

func TestWhatTheStoreSaysEndsTheRightInvocation(t *testing.T) {
	inBubble(t, func(t *testing.T, g *grants, k *Keeper) {
		e := add(k, "ok", "lost", "cancelled", "settling")
		g.set(func(g *grants) {
			g.answer["lost"], g.answer["cancelled"], g.answer["settling"] = queue.ExtendLost, queue.ExtendCancelRequested, queue.ExtendLost
		})
		if !e[3].Settling() {
			t.Fatal("lost before it was")
		}
		k.Check()
		synctest.Wait()
		for i, want := range []error{nil, handlers.ErrLeaseLost, handlers.ErrCancelled, nil} {
			if got := context.Cause(e[i].Context()); !errors.Is(got, want) {
				t.Errorf("%s: cause %v, want %v", e[i].Ref().ID, got, want)
			}
		}
		if e[1].Settling() || !e[2].Settling() || !e[0].Settling() {
			t.Error("only the lost one must not be settled")
		}
		if s := k.Stats(); s.Lost != 1 || s.Cancelled != 1 {
			t.Errorf("%+v", s)
		}
		time.Sleep(5 * time.Second)
		if got, want := g.last(), "[ok cancelled settling]"; got != want {
			t.Errorf("extended %s, want %s", got, want)
		}
	})
}

func TestAnOutageIsTriedOftenAndDoubtedBeforeTheLeaseEnds(t *testing.T) {
	for _, kind := range []string{"refusing", "hanging"} {
		t.Run(kind, func(t *testing.T) {
			inBubble(t, func(t *testing.T, g *grants, k *Keeper) {
				e := add(k, "a")
				g.set(func(g *grants) {
					if kind == "hanging" {
						g.hang = time.Hour
					} else {
						g.err = queue.ErrUnavailable
					}
				})
				time.Sleep(testLease * 4 / 5)
				if k.Stats().Unsure {
					t.Error("unsure before four fifths of the lease are over")
				}
				time.Sleep(testLease)
				synctest.Wait()
				if !k.Stats().Unsure || e[0].Context().Err() != nil {
					t.Errorf("unsure %t, context %v; want unsure, and the handler going on", k.Stats().Unsure, e[0].Context().Err())
				}
				if n := len(g.seen()); kind == "refusing" && (n < 15 || n > 60) {
					t.Errorf("%d tries in 27 s", n)
				}
				g.set(func(g *grants) { g.err, g.hang = nil, 0 })
				time.Sleep(testLease)
				if k.Stats().Unsure {
					t.Error("unsure after the store came back")
				}
			})
		})
	}
}

func TestTheWatchdogEndsThenAbandonsAnInvocation(t *testing.T) {
	inBubble(t, func(t *testing.T, g *grants, k *Keeper) {
		e := add(k, "a", "b")
		e[0].Started(time.Now().Add(time.Minute))
		e[1].Started(time.Now().Add(time.Hour))
		time.Sleep(time.Minute + OverdueGraceDefault)
		if e[0].Context().Err() != nil {
			t.Error("ended within the grace")
		}
		time.Sleep(testLease/3 + time.Millisecond)
		if cause := context.Cause(e[0].Context()); !errors.Is(cause, ErrOverdue) || !errors.Is(cause, context.DeadlineExceeded) {
			t.Errorf("cause %v, want ErrOverdue", cause)
		}
		time.Sleep(OverdueGraceDefault + testLease/3)
		if got, want := g.last(), "[b]"; got != want {
			t.Errorf("extended %s, want %s", got, want)
		}
		if s := k.Stats(); s.Overdue != 1 || s.Abandoned != 1 || e[1].Context().Err() != nil {
			t.Errorf("%+v", s)
		}
	})
}

func TestLifecycle(t *testing.T) {
	lifecycletest.Stress(t, func(t *testing.T) lifecycle.Service {
		k := fresh(t, &grants{})
		add(k, "a")
		return k
	})
}

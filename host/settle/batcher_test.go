package settle

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/taskhost/taskhost/host/lifecycle"
	"github.com/taskhost/taskhost/host/lifecycle/lifecycletest"
	"github.com/taskhost/taskhost/queue"
)

// script is a store whose answers are scripted; nil answers ok.
type script struct {
	mu     sync.Mutex
	calls  [][]string
	answer func(call int, s []queue.Settlement) ([]queue.SettleOutcome, error)
}

func (s *script) Settle(ctx context.Context, items []queue.Settlement) ([]queue.SettleOutcome, error) {
	s.mu.Lock()
	var ids []string
	for _, it := range items {
		ids = append(ids, it.ID)
	}
	s.calls = append(s.calls, ids)
	n, answer := len(s.calls), s.answer
	s.mu.Unlock()
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	if answer != nil {
		if out, err := answer(n, items); out != nil || err != nil {
			return out, err
		}
	}
	return slices.Repeat([]queue.SettleOutcome{{Status: queue.SettleOK}}, len(items)), nil
}

type owner struct {
	mu  *sync.Mutex
	got *[]string
	id  string
}

func (o owner) Settled(out queue.SettleOutcome) {
	o.mu.Lock()
	defer o.mu.Unlock()
	*o.got = append(*o.got, fmt.Sprintf("%s %s", o.id, out.Status))
}

type bench struct {
	*Batcher
	store *script
	mu    sync.Mutex
	got   []string
}

func newBench(t *testing.T, change func(*Options)) *bench {
	b := &bench{store: &script{}}
	o := Options{Queue: b.store, Log: slog.New(slog.NewTextHandler(t.Output(), nil)), Random: func() float64 { return 0 }}
	if change != nil {
		change(&o)
	}
	b.Batcher = New(o)
	return b
}

func (b *bench) item(id string, v queue.Verb) Item {
	return Item{Settlement: queue.Settlement{Ref: queue.Ref{ID: id}, Verb: v}, Owner: owner{&b.mu, &b.got, id}}
}

func (b *bench) start(t *testing.T) {
	t.Helper()
	if err := b.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
}

func TestBatchesGatherWhileACallIsInFlight(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, nil)
		b.store.answer = func(int, []queue.Settlement) ([]queue.SettleOutcome, error) {
			time.Sleep(10 * time.Millisecond)
			return nil, nil
		}
		b.start(t)
		b.Submit(b.item("a", queue.VerbAck))
		synctest.Wait()
		for _, id := range []string{"b", "c", "d"} {
			b.Submit(b.item(id, queue.VerbAck))
		}
		b.Stop()
		if got, want := fmt.Sprint(b.store.calls), "[[a] [b c d]]"; got != want {
			t.Errorf("calls %s, want %s", got, want)
		}
		if got, want := fmt.Sprint(b.got), "[a ok b ok c ok d ok]"; got != want {
			t.Errorf("answers %s, want %s", got, want)
		}
	})
}

func TestUnknownIsSentAgainInOrderUntilAnswered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, nil)
		b.store.answer = func(call int, s []queue.Settlement) ([]queue.SettleOutcome, error) {
			switch {
			case call <= 20:
				return nil, fmt.Errorf("call %d: %w", call, queue.ErrUnavailable)
			case call == 21:
				return []queue.SettleOutcome{{Status: queue.SettleUnknown}, {Status: queue.SettleOK}, {Status: queue.SettleUnknown}}, nil
			case call == 22:
				return []queue.SettleOutcome{{Status: queue.SettleOK}, {Status: queue.SettleLeaseLost}}, nil
			}
			return nil, nil
		}
		b.Submit(b.item("a", queue.VerbAck), b.item("b", queue.VerbNack), b.item("c", queue.VerbAck))
		b.start(t)
		b.Stop()
		if got, want := fmt.Sprint(b.got), "[b ok a ok c lease_lost]"; got != want {
			t.Errorf("answers %s, want %s", got, want)
		}
		if got, want := fmt.Sprint(b.store.calls[20:]), "[[a b c] [a c]]"; got != want {
			t.Errorf("calls %s, want %s", got, want)
		}
		if s := b.Stats(); s.OK != 2 || s.Resent != 1 || s.LeaseLost != 0 || s.Pending != 0 || s.GivenUp != 0 {
			t.Errorf("%+v", s)
		}
	})
}

func TestOneSettlementTheStoreChokesOnDoesNotBlockTheRest(t *testing.T) {
	b := newBench(t, nil)
	b.store.answer = func(_ int, s []queue.Settlement) ([]queue.SettleOutcome, error) {
		for _, it := range s {
			if it.ID == "bad" {
				return nil, errors.New("cannot encode")
			}
		}
		return nil, nil
	}
	b.Submit(b.item("a", queue.VerbAck), b.item("bad", queue.VerbAck), b.item("c", queue.VerbAck))
	b.start(t)
	b.Stop()
	if got, want := fmt.Sprint(b.got), "[a ok bad rejected c ok]"; got != want {
		t.Errorf("answers %s, want %s", got, want)
	}
}

func TestHeldReleasesGoInOneCall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, nil)
		b.start(t)
		b.HoldReleases()
		b.Submit(b.item("a", queue.VerbRelease))
		b.Submit(b.item("x", queue.VerbAck))
		synctest.Wait()
		b.Submit(b.item("b", queue.VerbRelease))
		synctest.Wait()
		b.FlushReleases()
		synctest.Wait()
		b.Submit(b.item("late", queue.VerbRelease))
		b.Stop()
		if got, want := fmt.Sprint(b.store.calls), "[[x] [a b] [late]]"; got != want {
			t.Errorf("calls %s, want %s", got, want)
		}
	})
}

func TestSubmitBlocksWhileTooMuchIsPending(t *testing.T) {
	for _, c := range []struct {
		name   string
		change func(*Options)
		result int
	}{
		{"settlements", func(o *Options) { o.MaxPending = 2 }, 0},
		{"bytes", func(o *Options) { o.MaxPendingBytes = 200 }, 100},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := newBench(t, c.change)
			submit := func(id string) {
				it := b.item(id, queue.VerbAck)
				it.Result = make([]byte, c.result)
				b.Submit(it)
			}
			submit("a")
			submit("b")
			third := make(chan struct{})
			go func() {
				submit("c")
				close(third)
			}()
			select {
			case <-third:
				t.Fatal("the third was taken although two are pending")
			case <-time.After(20 * time.Millisecond):
			}
			b.start(t)
			<-third
			b.Stop()
			if s := b.Stats(); s.OK != 3 || s.Pending != 0 || b.bytes != 0 {
				t.Errorf("%+v, %d bytes", s, b.bytes)
			}
		})
	}
}

func TestKillAnswersEveryOwner(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, nil)
		b.store.answer = func(int, []queue.Settlement) ([]queue.SettleOutcome, error) { return nil, queue.ErrUnavailable }
		b.start(t)
		b.Submit(b.item("a", queue.VerbAck))
		synctest.Wait()
		b.Submit(b.item("b", queue.VerbAck))
		b.Kill()
		b.Stop()
		b.Submit(b.item("c", queue.VerbAck))
		if got, want := fmt.Sprint(b.got), "[a unknown b unknown c unknown]"; got != want {
			t.Errorf("answers %s, want %s", got, want)
		}
		if s := b.Stats(); s.GivenUp != 3 || s.Pending != 0 {
			t.Errorf("%+v", s)
		}
	})
}

func TestAClosedStoreEndsSettling(t *testing.T) {
	b := newBench(t, nil)
	b.store.answer = func(int, []queue.Settlement) ([]queue.SettleOutcome, error) { return nil, queue.ErrClosed }
	b.start(t)
	b.Submit(b.item("a", queue.VerbAck))
	<-b.loop.Finished()
	b.Stop()
	if got, want := fmt.Sprint(b.got), "[a unknown]"; got != want {
		t.Errorf("answers %s, want %s", got, want)
	}
}

func TestLifecycle(t *testing.T) {
	lifecycletest.Stress(t, func(t *testing.T) lifecycle.Service { return newBench(t, nil).Batcher })
}

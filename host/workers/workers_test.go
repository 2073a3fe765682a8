package workers

import (
	"context"
	"encoding/json"
	"log/slog"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/taskhost/taskhost/queue"
	"github.com/taskhost/taskhost/queue/memq"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func registry(t *testing.T, store *memq.Store, id string, busy *atomic.Int64) *Registry {
	return New(Options{Records: store, Now: store.Now, Log: slog.New(slog.NewTextHandler(t.Output(), nil)), ID: id, Queues: []string{"q"}, Slots: 4,
		Version: "0.1.0", Busy: func() int { return int(busy.Load()) }})
}

func list(t *testing.T, r *Registry) map[string]Worker {
	t.Helper()
	all, err := r.List(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	byID := map[string]Worker{}
	for _, w := range all {
		byID[w.ID] = w
	}
	return byID
}

func TestHostsComeAndGo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := memq.New(memq.Options{})
		var busy atomic.Int64
		busy.Store(1)
		a, b := registry(t, store, "w-a", &busy), registry(t, store, "w-b", &busy)
		for _, r := range []*Registry{a, b} {
			if err := r.Start(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		defer a.Stop()
		synctest.Wait()
		began := time.Now().UTC()
		got := list(t, a)
		if w := got["w-b"]; len(got) != 2 || !w.Live || w.Slots != 4 || w.Running != 1 || !w.Since.Equal(began) || w.Queues[0] != "q" || w.Version != "0.1.0" {
			t.Errorf("%+v", got)
		}
		busy.Store(3)
		<-time.After(Every)
		synctest.Wait()
		if w := list(t, a)["w-a"]; w.Running != 3 || !w.LastSeen.Equal(began.Add(Every)) || !w.Since.Equal(began) {
			t.Errorf("half a minute later: %+v", w)
		}
		b.Stop()
		if got := list(t, a); len(got) != 1 {
			t.Errorf("after a stop: %+v", got)
		}
	})
}

func TestHostsThatVanish(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := memq.New(memq.Options{})
		var busy atomic.Int64
		r := registry(t, store, "w-a", &busy)
		now := time.Now()
		for id, age := range map[string]time.Duration{"gone": LiveFor + time.Second, "old": ForgetAge + time.Second} {
			value, err := json.Marshal(Worker{ID: id, LastSeen: now.Add(-age)})
			if err != nil {
				t.Fatal(err)
			}
			if _, err := store.PutRecord(t.Context(), kind, id, value, 0); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := store.PutRecord(t.Context(), kind, "broken", []byte("{"), 0); err != nil {
			t.Fatal(err)
		}
		if got := list(t, r); len(got) != 1 || got["gone"].Live {
			t.Errorf("%+v, want only the one that vanished lately, not live", got)
		}
		if _, err := store.GetRecord(t.Context(), kind, "old"); err == nil {
			t.Error("the old one was not removed")
		}
	})
}

// A store that is away is tried again; the host goes on.
func TestStoreAway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := memq.New(memq.Options{})
		var busy atomic.Int64
		var away atomic.Bool
		away.Store(true)
		r := registry(t, store, "w-a", &busy)
		r.o.Now = func(ctx context.Context) (time.Time, error) {
			if away.Load() {
				return time.Time{}, queue.ErrUnavailable
			}
			return store.Now(ctx)
		}
		if err := r.Start(t.Context()); err != nil {
			t.Fatal(err)
		}
		defer r.Stop()
		synctest.Wait()
		away.Store(false)
		<-time.After(Every)
		synctest.Wait()
		if got := list(t, r); len(got) != 1 {
			t.Errorf("%+v", got)
		}
	})
}

package redisq_test

import (
	"context"
	"errors"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/taskhost/taskhost/queue"
	"github.com/taskhost/taskhost/queue/redisq"
	"github.com/taskhost/taskhost/queue/redisq/redistest"
)

// A host finds the master through its Sentinels, one of which is not there, and does everything with it, also what blocks.
func TestSentinel(t *testing.T) { inBothModes(t, sentinel) }

func sentinel(t *testing.T, m mode) {
	master := own(t)
	s, err := redistest.StartSentinel(t.Context(), t.TempDir(), master, "watch-secret")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Kill(); err != nil && !errors.Is(err, os.ErrProcessDone) {
			t.Error(err)
		}
	})
	at := func(name, password string) string {
		url := strings.Replace(m.of(master), master.Addr()+"/0", "127.0.0.1:1,"+s.Addr()+"/"+name+"/0", 1)
		return strings.Replace(url, "redis://", "redis+sentinel://", 1) + "&sentinel_password=" + password + "&client_name=" + hostName
	}
	store := open(t, redisq.Options{URL: at("mymaster", "watch-secret")})
	waited := make(chan error, 1)
	go func() { waited <- store.Wait(t.Context(), queue.View{}) }()
	waitBlocked(t, client(t, master.Addr()), 1)
	put(t, store, mail("a"))
	if err := <-waited; err != nil {
		t.Error(err)
	}
	settle(t, store, queue.VerbAck, take(t, store, 1, time.Minute)...)
	if r := books(t, store); r.Counts[queue.StateSucceeded] != 1 {
		t.Errorf("books: %+v", r)
	}
	for what, url := range map[string]string{"no such master": at("nobody", "watch-secret"), "a wrong password": at("mymaster", "wrong-secret")} {
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		_, err := redisq.Open(ctx, redisq.Options{URL: url})
		cancel()
		if !errors.Is(err, queue.ErrUnavailable) || strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: %v", what, err)
		}
	}
}

//go:build unix

package redisq_test

import (
	"context"
	"errors"
	"os"
	"syscall"
	"testing"

	"github.com/taskhost/taskhost/queue"
	"github.com/taskhost/taskhost/queue/redisq"
)

// A Redis that hangs does not take its callers along: waits end with their contexts, calls with an error, and all is well when it
// goes on.
func TestStoppedRedis(t *testing.T) { inBothModes(t, stoppedRedis) }

func stoppedRedis(t *testing.T, m mode) {
	server := own(t)
	s := open(t, redisq.Options{URL: m.of(server) + "&read_timeout=200ms&client_name=" + hostName})
	admin := client(t, server.Addr())
	ctx, cancel := context.WithCancelCause(t.Context())
	waited := make(chan error, 1)
	go func() { waited <- s.Wait(ctx, queue.View{}) }()
	waitBlocked(t, admin, 1)
	process, err := os.FindProcess(server.PID())
	if err != nil {
		t.Fatal(err)
	}
	if err := process.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	gaveUp := errors.New("gave up")
	cancel(gaveUp)
	if err := <-waited; !errors.Is(err, gaveUp) {
		t.Errorf("wait on a Redis that hangs: %v", err)
	}
	out, err := s.Enqueue(t.Context(), []queue.JobSpec{mail("a")})
	if !errors.Is(err, queue.ErrUnavailable) {
		t.Errorf("enqueue on a Redis that hangs: %+v %v", out, err)
	}
	if err := process.Signal(syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	put(t, s, mail("b"))
	// What was given up may have been stored, once.
	if r := books(t, s); r.Enqueued > 2 {
		t.Errorf("books: %+v", r)
	}
}

package httpapi_test

import (
	"context"
	"errors"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/taskhost/taskhost/queue"
)

// work runs jobs until ctx ends: "echo" gives its payload back, everything else fails for good.
func (s *site) work(ctx context.Context) error {
	for {
		if err := s.store.Wait(ctx, queue.View{}); err != nil {
			return err
		}
		jobs, err := s.store.Reserve(ctx, queue.ReserveParams{Worker: "w-7f2", Max: 1, Lease: time.Minute})
		if err != nil {
			return err
		}
		for _, j := range jobs {
			settlement := queue.Settlement{Ref: queue.Ref{ID: j.ID, Token: j.Token}, Verb: queue.VerbAck, Result: j.Payload}
			if j.Type != "echo" {
				settlement.Verb, settlement.Error = queue.VerbDead, &queue.JobError{Kind: "permanent", Message: "not an echo"}
			}
			if _, err := s.store.Settle(ctx, []queue.Settlement{settlement}); err != nil {
				return err
			}
		}
	}
}

// The Go client, which is a module of its own, and this server agree: its contract program runs against the server.
func TestGoClientAgrees(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- s.work(ctx) }()
	defer func() {
		cancel()
		if err := <-ended; !errors.Is(err, context.Canceled) {
			t.Errorf("the worker ended with %v", err)
		}
	}()
	cmd := exec.CommandContext(ctx, "go", "run", "./client/internal/contract", s.http.URL)
	cmd.Dir = "../../sdk/go"
	cmd.Env = append(cmd.Environ(), "GOWORK=off", "GOFLAGS=")
	out, err := cmd.CombinedOutput()
	if err != nil || !strings.Contains(string(out), "contract: ok") {
		t.Errorf("%v\n%s", err, out)
	}
}

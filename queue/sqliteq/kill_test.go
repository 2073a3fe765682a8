//go:build unix

package sqliteq_test

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/taskhost/taskhost/queue"
	"github.com/taskhost/taskhost/queue/sqliteq"
)

// childEnv makes the test binary a child: "<what> <directory>".
const childEnv = "TASKHOST_SQLITEQ_CHILD"

// runChild does a child's work; false in the test process itself.
func runChild() bool {
	what, dir, is := strings.Cut(os.Getenv(childEnv), " ")
	if !is {
		return false
	}
	var err error
	switch what {
	case "work":
		err = childWork(dir)
	case "fill":
		err = childFill(dir)
	default:
		err = fmt.Errorf("unknown child %q", what)
	}
	if err != nil {
		fmt.Println("error", err)
		os.Exit(1)
	}
	return true
}

func child(t *testing.T, what, dir string) *exec.Cmd {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), self)
	cmd.Env = append(os.Environ(), childEnv+"="+what+" "+dir)
	cmd.Stderr = os.Stderr
	return cmd
}

// childWork enqueues and settles until it is killed, and says so after each answer: "enqueued <id>", "settled <id>".
func childWork(dir string) error {
	ctx := context.Background()
	s, err := sqliteq.Open(ctx, sqliteq.Options{Dir: dir})
	if err != nil {
		return err
	}
	if err := s.Configure(ctx, queue.Scheduling{MaxCrashes: 1000}); err != nil {
		return err
	}
	failed := make(chan error, 16)
	for p := range 8 {
		go func() {
			for n := 0; ; n++ {
				spec := queue.JobSpec{Tenant: "acme", Queue: fmt.Sprint("q", p%3), Type: "work", Payload: []byte("x"), MaxAttempts: 1000}
				if n%10 == 0 {
					spec.Payload = make([]byte, 5000)
				}
				out, err := s.Enqueue(ctx, []queue.JobSpec{spec})
				if err != nil || out[0].Status != queue.EnqueueCreated {
					failed <- fmt.Errorf("enqueue: %v %w", out, err)
					return
				}
				fmt.Println("enqueued", out[0].ID)
			}
		}()
	}
	for range 3 {
		go func() {
			for {
				if err := s.Wait(ctx, queue.View{}); err != nil {
					failed <- err
					return
				}
				jobs, err := s.Reserve(ctx, queue.ReserveParams{Worker: "w", Max: 4, Lease: time.Minute})
				if err != nil {
					failed <- err
					return
				}
				for i, j := range jobs {
					verb := []queue.Verb{queue.VerbAck, queue.VerbAck, queue.VerbRelease, queue.VerbYield}[(i+len(j.ID)+int(j.ID[25]))%4]
					out, err := s.Settle(ctx, []queue.Settlement{{Ref: queue.Ref{ID: j.ID, Token: j.Token}, Verb: verb}})
					if err != nil || out[0].Status != queue.SettleOK {
						failed <- fmt.Errorf("settle: %v %w", out, err)
						return
					}
					if verb == queue.VerbAck {
						fmt.Println("settled", j.ID)
					}
				}
			}
		}()
	}
	return <-failed
}

// A process that is killed while it enqueues and settles loses nothing it had acknowledged, and nothing it had settled
// is given out again.
func TestKill(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	enqueued, settled := map[string]bool{}, map[string]bool{}
	for round := range 6 {
		cmd := child(t, "work", dir)
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		lines := bufio.NewScanner(out)
		var kill sync.Once
		for n := 0; lines.Scan(); n++ {
			if n == 300+170*round {
				kill.Do(func() { _ = cmd.Process.Kill() })
			}
			what, id, _ := strings.Cut(lines.Text(), " ")
			switch what {
			case "enqueued":
				enqueued[id] = true
			case "settled":
				if settled[id] {
					t.Errorf("round %d: %s was settled twice", round, id)
				}
				settled[id] = true
			default:
				t.Fatalf("round %d: the child says %q", round, lines.Text())
			}
		}
		if err := cmd.Wait(); err == nil {
			t.Fatal("the child ended by itself")
		}
		checkAfterKill(t, dir, enqueued, settled)
	}
	if len(settled) < 300 {
		t.Errorf("only %d jobs were settled: the test shows too little", len(settled))
	}
}

func checkAfterKill(t *testing.T, dir string, enqueued, settled map[string]bool) {
	t.Helper()
	s, err := sqliteq.Open(t.Context(), sqliteq.Options{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	for id := range enqueued {
		j, err := s.GetJob(t.Context(), "acme", id)
		if err != nil {
			t.Fatalf("acknowledged job %s: %v", id, err)
		}
		if settled[id] && j.State != queue.StateSucceeded {
			t.Errorf("%s was settled and is %s", id, j.State)
		}
		if j.State == queue.StateRunning || j.State == queue.StateDead {
			t.Errorf("%s is %s after a restart", id, j.State)
		}
	}
	audit(t, s)
}

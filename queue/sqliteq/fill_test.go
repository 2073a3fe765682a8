//go:build unix

package sqliteq_test

import (
	"context"
	"errors"
	"fmt"
	"os/signal"
	"strings"
	"syscall"
	"testing"

	"github.com/taskhost/taskhost/queue"
	"github.com/taskhost/taskhost/queue/sqliteq"
)

// childFill enqueues until the file may not grow any more, and reports what the store answered.
func childFill(dir string) error {
	ctx := context.Background()
	signal.Ignore(syscall.SIGXFSZ) // the write fails instead
	fatal := make(chan error, 2)
	s, err := sqliteq.Open(ctx, sqliteq.Options{Dir: dir, Fatal: func(err error) { fatal <- err }})
	if err != nil {
		return err
	}
	limit := syscall.Rlimit{Cur: 4 << 20, Max: 4 << 20}
	if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &limit); err != nil {
		return err
	}
	for n := 0; ; n++ {
		if n > 100000 {
			return errors.New("the file limit was never met")
		}
		spec := job("x")
		spec.Payload = make([]byte, 50_000)
		out, err := s.Enqueue(ctx, []queue.JobSpec{spec})
		if err == nil {
			fmt.Println("enqueued", out[0].ID)
			continue
		}
		if !errors.Is(err, queue.ErrUnavailable) {
			return fmt.Errorf("enqueue on a file that cannot grow: %w, want ErrUnavailable", err)
		}
		break
	}
	if err := <-fatal; !errors.Is(err, queue.ErrUnavailable) {
		return fmt.Errorf("Fatal was told %w", err)
	}
	if err := s.Err(); !errors.Is(err, queue.ErrUnavailable) {
		return fmt.Errorf("Err() = %w", err)
	}
	if _, err := s.Reserve(ctx, queue.ReserveParams{Worker: "w", Max: 1, Lease: 1e9}); !errors.Is(err, queue.ErrUnavailable) {
		return fmt.Errorf("reserve from a broken store: %w", err)
	}
	fmt.Println("done")
	return nil
}

// A write error is an error for everybody it concerns, and what was acknowledged before is there.
func TestWriteErrorIsForGood(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	out, err := child(t, "fill", dir).Output()
	lines := strings.Split(strings.TrimSpace(string(out)), "\n")
	if err != nil || lines[len(lines)-1] != "done" {
		t.Fatalf("child: %v\n%s", err, lines[len(lines)-1])
	}
	s := open(t, sqliteq.Options{Dir: dir})
	report := audit(t, s)
	if want := int64(len(lines) - 1); want < 10 || report.Enqueued != want {
		t.Errorf("%d jobs are stored, %d were acknowledged", report.Enqueued, want)
	}
	for _, line := range lines[:len(lines)-1] {
		id := strings.TrimPrefix(line, "enqueued ")
		if j, err := s.GetJob(t.Context(), "acme", id); err != nil || len(j.Payload) != 50_000 {
			t.Errorf("acknowledged job %s: %v", id, err)
		}
	}
}

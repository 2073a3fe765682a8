package sqliteq_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/taskhost/taskhost/queue"
	"github.com/taskhost/taskhost/queue/sqliteq"
)

// Many workers, producers and readers, and a backup that holds one snapshot throughout: nobody sees a lock, and the log file stays
// bounded.
func TestCase133ManyWorkersAndALongReader(t *testing.T) {
	t.Parallel()
	s := open(t, sqliteq.Options{})
	const jobs = 2000
	release := holdSnapshot(t, s.Path())
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	var wg sync.WaitGroup
	var done atomic.Int64
	for p := range 16 {
		wg.Go(func() {
			for n := range jobs / 16 {
				spec := job(fmt.Sprint(n))
				spec.Queue = fmt.Sprint("q", p%5)
				enqueue(t, s, spec)
			}
		})
	}
	for range 16 {
		wg.Go(func() {
			for {
				if s.Wait(ctx, queue.View{}) != nil {
					return
				}
				batch := reserve(t, s, 3)
				for i, j := range batch {
					switch {
					case i == 1 && j.Interruptions == 0:
						settle(t, s, queue.VerbRelease, j)
					default:
						settle(t, s, queue.VerbAck, j)
						if done.Add(1) == jobs {
							stop()
						}
					}
				}
			}
		})
	}
	for range 2 {
		wg.Go(func() {
			for ctx.Err() == nil {
				page, err := s.ListJobs(ctx, queue.JobFilter{Tenant: "acme", Limit: 500})
				if err != nil && ctx.Err() == nil {
					t.Errorf("list: %v", err)
				}
				for i := 1; i < len(page.Jobs); i++ {
					if page.Jobs[i].ID >= page.Jobs[i-1].ID {
						t.Errorf("the list is out of order or names a job twice")
					}
				}
				if _, err := s.ListQueues(ctx, "acme"); err != nil && ctx.Err() == nil {
					t.Errorf("queues: %v", err)
				}
			}
		})
	}
	wg.Wait()
	release()
	report := audit(t, s)
	if report.Counts[queue.StateSucceeded] != jobs {
		t.Errorf("counts %v, want %d succeeded", report.Counts, jobs)
	}
	info, err := os.Stat(s.Path() + "-wal")
	if err != nil || info.Size() > 80<<20 {
		t.Errorf("the log file: %v %v", info, err)
	}
}

// holdSnapshot reads from the database as another process would, and goes on until release is called.
func holdSnapshot(t *testing.T, path string) (release func()) {
	t.Helper()
	db, err := sql.Open("sqlite", path)
	if err != nil {
		t.Fatal(err)
	}
	tx, err := db.Begin()
	if err != nil {
		t.Fatal(err)
	}
	count := func() (n int) {
		if err := tx.QueryRow("SELECT count(*) FROM jobs").Scan(&n); err != nil {
			t.Error(err)
		}
		return n
	}
	before := count()
	return func() {
		if after := count(); after != before {
			t.Errorf("the snapshot changed from %d to %d jobs", before, after)
		}
		if err := errors.Join(tx.Commit(), db.Close()); err != nil {
			t.Error(err)
		}
	}
}

// Close while everybody calls: every call ends, with an answer or ErrClosed.
func TestCloseUnderLoad(t *testing.T) {
	t.Parallel()
	for _, cache := range []int{0, -1} {
		s := open(t, sqliteq.Options{CacheBytes: cache})
		ids := enqueue(t, s, job("a"), job("b"))
		started := make(chan struct{}, 8)
		var wg sync.WaitGroup
		for _, call := range []func() error{
			func() error { _, err := s.Enqueue(t.Context(), []queue.JobSpec{job("x")}); return err },
			func() error {
				_, err := s.Reserve(t.Context(), queue.ReserveParams{Worker: "w", Max: 2, Lease: time.Minute})
				return err
			},
			func() error { _, err := s.GetJob(t.Context(), "acme", ids[0]); return err },
			func() error { _, err := s.ListJobs(t.Context(), queue.JobFilter{Tenant: "acme"}); return err },
			func() error { _, err := s.Maintain(t.Context()); return err },
			func() error { _, err := s.CountDead(t.Context(), queue.DeadFilter{Tenant: "acme"}); return err },
			func() error { return s.WaitDue(t.Context()) },
			func() error { return s.Wait(t.Context(), queue.View{Queues: []string{"none"}}) },
		} {
			wg.Go(func() {
				for n := 0; ; n++ {
					if n == 1 || n == 0 {
						select {
						case started <- struct{}{}:
						default:
						}
					}
					if err := call(); errors.Is(err, queue.ErrClosed) {
						return
					} else if err != nil {
						t.Errorf("while closing: %v", err)
						return
					}
				}
			})
		}
		for range 8 {
			<-started
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
		wg.Wait()
		s = open(t, sqliteq.Options{Path: s.Path()})
		audit(t, s)
	}
}

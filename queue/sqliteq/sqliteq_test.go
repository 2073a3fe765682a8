package sqliteq_test

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"

	"go.uber.org/goleak"

	"github.com/taskhost/taskhost/queue"
	"github.com/taskhost/taskhost/queue/queuetest"
	"github.com/taskhost/taskhost/queue/sqliteq"
)

func TestMain(m *testing.M) {
	if runChild() {
		return
	}
	goleak.VerifyTestMain(m)
}

func open(t *testing.T, o sqliteq.Options) *sqliteq.Store {
	t.Helper()
	if o.Dir == "" && o.Path == "" {
		o.Dir = t.TempDir()
	}
	s, err := sqliteq.Open(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Errorf("Close: %v", err)
		}
	})
	return s
}

func TestContract(t *testing.T) {
	t.Parallel()
	queuetest.Exercise(t, func(t *testing.T) queuetest.Backend {
		return backend(t, sqliteq.Options{Dir: t.TempDir()})
	})
}

// The same without a cache: every reservation reads its record from the database.
func TestContractWithoutCache(t *testing.T) {
	t.Parallel()
	queuetest.Exercise(t, func(t *testing.T) queuetest.Backend {
		return backend(t, sqliteq.Options{Dir: t.TempDir(), CacheBytes: -1})
	})
}

func backend(t *testing.T, o sqliteq.Options) queuetest.Backend {
	clock := queuetest.NewFakeClock()
	o.Clock = clock
	current := open(t, o)
	reopened := func(t *testing.T) queue.Queue {
		current = open(t, o)
		return current
	}
	return queuetest.Backend{
		Queue:   current,
		Advance: clock.Advance,
		Reopen: func(t *testing.T) queue.Queue {
			if err := current.Close(); err != nil {
				t.Fatal(err)
			}
			return reopened(t)
		},
		Crash: func(t *testing.T) queue.Queue {
			o.Dir = copyStore(t, current)
			return reopened(t)
		},
	}
}

// copyStore copies the files as they are, which is what a kill at this moment would leave. Requests that nobody waits
// for (batch rows) are let through first.
func copyStore(t *testing.T, s *sqliteq.Store) (dir string) {
	t.Helper()
	if err := s.DeleteRecord(t.Context(), "none", "none"); !errors.Is(err, queue.ErrNotFound) {
		t.Fatal(err)
	}
	dir = t.TempDir()
	for _, suffix := range []string{"", "-wal"} {
		from, err := os.Open(s.Path() + suffix)
		if errors.Is(err, os.ErrNotExist) {
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		to, err := os.Create(filepath.Join(dir, sqliteq.FileName+suffix))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := io.Copy(to, from); err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(from.Close(), to.Close()); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func TestHistories(t *testing.T) {
	t.Parallel()
	queuetest.Histories(t, func(t *testing.T, clock queue.Clock, limits queue.Limits) queue.Queue {
		return open(t, sqliteq.Options{Clock: clock, Limits: limits})
	})
}

func TestHistoriesWithoutCache(t *testing.T) {
	t.Parallel()
	queuetest.Histories(t, func(t *testing.T, clock queue.Clock, limits queue.Limits) queue.Queue {
		return open(t, sqliteq.Options{Clock: clock, Limits: limits, CacheBytes: -1})
	})
}

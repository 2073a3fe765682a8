package sqliteq

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"sync"

	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"

	"github.com/taskhost/taskhost/queue"
)

// work is one request to the writer. plan runs inside the transaction, apply or revert after it under Store.mu, and
// finish last.
type work interface {
	// plan makes the changes in the database. It returns errNextGroup when it meets a job that this group has changed
	// already: it then runs first in the next one.
	plan(g *group) error
	apply(g *group)   // the commit succeeded: change memory
	revert(g *group)  // it did not: take back what plan marked in memory
	finish(err error) // tell the caller
	weight() int      // roughly how many jobs it changes
}

// errNextGroup is plan's wish to run after this group's commit.
var errNextGroup = errors.New("next group")

// writer is the one goroutine that changes the database. It takes all requests that wait, applies them in one
// transaction, commits, changes memory, answers, and begins again: while one commit is on its way to the disk, the next
// group gathers.
type writer struct {
	s      *Store
	c      *conn
	signal chan struct{}
	done   chan struct{}

	mu      sync.Mutex
	pending []work
	stopped bool

	retry    []work // un-awaited requests of a group that failed
	counters counters
	last     birth
	random   *rand.Rand
	g        group
	texts    map[textKey]string
	nextFin  [2]int64 // next numbers of finished rows: others, dead
	flushed  int64    // when the served counters were last written, in milliseconds
}

// groupMax bounds one transaction, in jobs, so that answers do not wait for ever.
const groupMax = 8192

// submit hands over a request; false when the store is closed. It may be called with Store.mu held.
func (w *writer) submit(r work) bool {
	w.mu.Lock()
	if w.stopped {
		w.mu.Unlock()
		return false
	}
	w.pending = append(w.pending, r)
	first := len(w.pending) == 1
	w.mu.Unlock()
	if first {
		select {
		case w.signal <- struct{}{}:
		default:
		}
	}
	return true
}

// stop lets the writer finish what was submitted, and waits for it.
func (w *writer) stop() {
	w.mu.Lock()
	w.stopped = true
	w.mu.Unlock()
	select {
	case w.signal <- struct{}{}:
	default:
	}
	<-w.done
}

func (w *writer) run() {
	defer close(w.done)
	var batch []work
	for range w.signal {
		for {
			// Producers that were just answered are about to ask again; let them, so that groups are large.
			runtime.Gosched()
			w.mu.Lock()
			batch = append(batch, w.pending...)
			clear(w.pending)
			w.pending = w.pending[:0]
			stopped := w.stopped
			w.mu.Unlock()
			if len(batch) == 0 {
				if stopped {
					return
				}
				break
			}
			n := w.commit(batch)
			rest := copy(batch, batch[n:])
			clear(batch[rest:])
			batch = batch[:rest]
		}
	}
}

// commit runs one group, made of the first n requests.
func (w *writer) commit(batch []work) (n int) {
	g := &w.g
	g.begin(w)
	todo := append(w.retry[:len(w.retry):len(w.retry)], batch...)
	retried := len(w.retry)
	w.retry = nil
	err := w.s.unusable()
	taken := 0
	if err == nil {
		taken, err = w.transact(g, todo)
	}
	if err != nil {
		if taken == 0 {
			taken = len(todo)
		}
		err = w.failed(err)
	}
	group := todo[:taken]
	w.s.settleGroup(g, group, err)
	for _, r := range group {
		if _, unawaited := r.(*batchWork); unawaited && err != nil {
			w.retry = append(w.retry, r)
			continue
		}
		r.finish(err)
	}
	if taken < retried {
		w.retry = append(w.retry, todo[taken:retried]...)
	}
	return max(taken-retried, 0)
}

func (w *writer) transact(g *group, todo []work) (taken int, err error) {
	ctx := context.Background()
	if err := w.c.exec(ctx, "BEGIN IMMEDIATE"); err != nil {
		return 0, err
	}
	weight := 0
	for _, r := range todo {
		if weight += r.weight(); taken > 0 && weight > groupMax {
			break
		}
		err = r.plan(g)
		for tries := 0; taken == 0 && errors.Is(err, errNextGroup) && tries < 1000; tries++ {
			err = r.plan(g) // nobody of this group is in the way: a Reserve took the job between two looks
		}
		if errors.Is(err, errNextGroup) && taken > 0 {
			err = nil
			break
		}
		taken++
		if err != nil {
			break
		}
	}
	if err == nil {
		err = g.flush()
	}
	if err == nil {
		err = w.c.exec(ctx, "COMMIT")
	}
	if err != nil {
		w.c.rollback()
	}
	return taken, err
}

// failed says what a failed commit means. Every kind makes the group's outcome an error and the store read-only. An
// error of input or output, or damage, is for good: after a failed fsync nobody knows what the disk holds.
func (w *writer) failed(err error) error {
	s := w.s
	wrapped := fmt.Errorf("%w: %s: %w", queue.ErrUnavailable, s.path, err)
	s.mu.Lock()
	first := s.health == nil
	broke := false
	if !s.broken {
		s.health = wrapped
		if isFatal(err) {
			s.broken, broke = true, true
		}
	}
	s.mu.Unlock()
	if first || broke {
		s.log.Error("the store cannot write and takes no work", "path", s.path, "error", err, "for_good", broke)
	}
	if broke && s.fatal != nil {
		s.fatal(wrapped)
	}
	return wrapped
}

func isFatal(err error) bool {
	var se *sqlite.Error
	if !errors.As(err, &se) {
		return false
	}
	switch se.Code() & 0xff {
	case sqlite3.SQLITE_IOERR, sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB:
		return true
	}
	return false
}

func (s *Store) unusable() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.broken {
		return s.health
	}
	return nil
}

// settleGroup brings memory to what was committed, or back to what was before.
func (s *Store) settleGroup(g *group, group []work, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err != nil {
		for i := len(group) - 1; i >= 0; i-- {
			group[i].revert(g)
		}
		return
	}
	if s.health != nil {
		s.log.Info("the store writes again", "path", s.path)
		s.health = nil
	}
	g.w.counters = g.counters
	for _, r := range group {
		r.apply(g)
	}
	for region := range s.finishedCount {
		if s.finishedCount[region] >= 0 {
			s.finishedCount[region] += g.finAdded[region] - g.finDeleted[region]
		}
	}
	for region, added := range g.firstEnd {
		if added && s.finishedFirst[region] == never {
			s.finishedFirst[region] = g.nowMS
		}
	}
	s.announceDue()
}

// do submits a request and waits for its end.
func (s *Store) do(ctx context.Context, r work, done <-chan error) error {
	if !s.w.submit(r) {
		return queue.ErrClosed
	}
	if ctx.Done() == nil {
		return <-done
	}
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// step is a request made of closures, for everything that is not the hot path. An error of plan that is not the
// database's is the caller's answer (see answer); the group goes on.
type step struct {
	run    func(g *group) error
	then   []func() // after the commit
	undo   []func() // after a failed one
	answer error
	size   int
	done   chan error
}

// answerError carries an outcome out of a plan that changed nothing.
type answerError struct{ error }

func (a answerError) Unwrap() error { return a.error }

func answer(err error) error { return answerError{err} }

// step runs f in the writer's transaction. f may use g to change the database and t to register what to do after the
// commit. It must not have changed anything when it returns an answer.
func (s *Store) step(ctx context.Context, f func(g *group, t *step) error) error {
	t := &step{done: make(chan error, 1), size: 1}
	t.run = func(g *group) error { return f(g, t) }
	return s.do(ctx, t, t.done)
}

// alone is step for a request that is a group of its own.
func (s *Store) alone(ctx context.Context, f func(g *group, t *step) error) error {
	t := &step{done: make(chan error, 1), size: groupMax + 1}
	t.run = func(g *group) error { return f(g, t) }
	return s.do(ctx, t, t.done)
}

func (t *step) plan(g *group) error {
	t.then, t.undo, t.answer = nil, nil, nil
	err := t.run(g)
	var a answerError
	if errors.As(err, &a) {
		t.answer = a.error
		return nil
	}
	return err
}

func (t *step) apply(*group) {
	for _, f := range t.then {
		f()
	}
}

func (t *step) revert(*group) {
	for i := len(t.undo) - 1; i >= 0; i-- {
		t.undo[i]()
	}
}

func (t *step) finish(err error) {
	if err == nil {
		err = t.answer
	}
	t.done <- err
}

func (t *step) weight() int { return t.size }

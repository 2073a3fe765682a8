package luaexec

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"reflect"
	"strconv"
	"sync"
	"time"
)

// Conn is one connection to Redis, for one run.
type Conn interface {
	// Do sends commands in one write and returns one reply for each: nil, int64, string, []any of these, or Error. Its own error
	// says that the connection failed, and that nobody knows what took effect.
	Do(ctx context.Context, cmds [][]string) ([]any, error)
	// Close gives the connection back. broken says that it may be amid a transaction or have replies under way: it must not be used
	// again.
	Close(broken bool)
}

// Limits bound one run.
type Limits struct {
	Steps int64 // instructions of the interpreter; default 100,000,000 (some seconds)
	Calls int   // commands; default 2,000,000
	Bytes int   // what was read and what is to be written, in bytes; default 512 MiB
}

// Config says where and how scripts run.
type Config struct {
	// Connect returns a connection that is not in a transaction.
	Connect func(context.Context) (Conn, error)
	// Rev, Lock and Mark are keys: the revision, the lock, and the mark of stores that are used without Lua.
	Rev, Lock, Mark string
	// MarkValue is what Mark must hold; absent, it is written with the first write. Anything else is a MarkError.
	MarkValue string
	// Holder is the value of Lock while this executor holds it: unguessable, and nobody else's.
	Holder string
	// LockTime is how long a lock holds when its holder dies, at first; a run that took longer gets twice as much at its next try, at
	// most 16 times as much. Default 2 s.
	LockTime time.Duration
	// Patience is how long a run is tried before it fails with a BusyError. Default 60 s.
	Patience time.Duration
	// Popped reports whether others change a key without raising Rev, as blocking pops do: such a key is watched itself. Default: none.
	Popped func(key string) bool
	Limits Limits
}

// Executor runs scripts. It has no goroutines and nothing to close.
type Executor struct {
	c    Config
	turn chan struct{} // of those runs of this executor that take the lock

	mu       sync.Mutex
	machines []*machine
	foreseen map[*Program]*foresight
}

// New makes an executor.
func New(c Config) *Executor {
	if c.LockTime == 0 {
		c.LockTime = 2 * time.Second
	}
	if c.Patience == 0 {
		c.Patience = time.Minute
	}
	if c.Limits.Steps == 0 {
		c.Limits.Steps = 100_000_000
	}
	if c.Limits.Calls == 0 {
		c.Limits.Calls = 2_000_000
	}
	if c.Limits.Bytes == 0 {
		c.Limits.Bytes = 512 << 20
	}
	return &Executor{c: c, turn: make(chan struct{}, 1), foreseen: map[*Program]*foresight{}}
}

// MarkError says that the store is used in another mode.
type MarkError struct{ Key, Got, Want string }

// Error implements error.
func (e *MarkError) Error() string {
	return fmt.Sprintf("luaexec: %s is %q, not %q", e.Key, e.Got, e.Want)
}

// BusyError says that a run was tried for too long.
type BusyError struct {
	Script string
	Tries  int
	After  time.Duration
}

// Error implements error.
func (e *BusyError) Error() string {
	return fmt.Sprintf("luaexec: %s: others were always faster, in %d tries within %s", e.Script, e.Tries, e.After.Round(time.Millisecond))
}

// DifferError says that Redis replied something else to a write than was computed: the overlay has a fault, or somebody writes to the
// store who does not raise its revision.
type DifferError struct {
	Script, Command string
	Got, Want       any
}

// Error implements error.
func (e *DifferError) Error() string {
	return fmt.Sprintf("luaexec: %s: redis replied %v to %s, not %v as it should have", e.Script, e.Got, e.Command, e.Want)
}

var (
	errAgain  = errors.New("luaexec: the store has changed meanwhile")
	errLocked = errors.New("luaexec: another one holds the lock")
)

// Pauses between two tries, at first and at most.
const (
	pauseMin = 200 * time.Microsecond
	pauseMax = 20 * time.Millisecond
)

// looks is how often a read-only run is tried without the lock.
const looks = 3

// Run runs a script until it has happened in one moment, and returns its reply: nil, int64, string or []any. Its errors are an Error
// reply, those of the connection, a MarkError, BusyError, LimitError or DifferError, or the cause of ctx.
func (x *Executor) Run(ctx context.Context, p *Program, keys, args []string) (any, error) {
	begun, pause, locked, px := time.Now(), pauseMin, false, x.c.LockTime
	for try := 1; ; try++ {
		if !locked && (!p.ReadOnly || try > looks) {
			select {
			case x.turn <- struct{}{}:
			case <-ctx.Done():
				return nil, context.Cause(ctx)
			}
			defer func() { <-x.turn }()
			locked = true
		}
		v, err := x.once(ctx, p, keys, args, locked, px)
		again := errors.Is(err, errAgain)
		switch {
		case again:
			pause = pauseMin
			px = min(2*px, 16*x.c.LockTime)
		case !errors.Is(err, errLocked):
			return v, err
		}
		if time.Since(begun) > x.c.Patience {
			if again && locked {
				x.free(ctx)
			}
			return nil, &BusyError{Script: p.Name, Tries: try, After: time.Since(begun)}
		}
		timer := time.NewTimer(pause/2 + rand.N(pause))
		select {
		case <-timer.C:
		case <-ctx.Done():
		}
		timer.Stop()
		if ctx.Err() != nil {
			if again && locked {
				x.free(ctx)
			}
			return nil, context.Cause(ctx)
		}
		pause = min(pause*3/2, pauseMax)
	}
}

// once is one try.
func (x *Executor) once(ctx context.Context, p *Program, keys, args []string, locked bool, px time.Duration) (result any, err error) {
	conn, err := x.c.Connect(ctx)
	if err != nil {
		return nil, err
	}
	t := &try{x: x, conn: conn, view: newView(ctx, conn, &x.c, p), locked: locked}
	defer func() { t.end(err) }()
	if err := t.begin(p, px); err != nil {
		return nil, err
	}
	m := x.take()
	result, err = m.exec(&run{ctx: ctx, view: t.view}, p, keys, args, x.c.Limits.Steps)
	x.give(m)
	returned := errors.As(err, new(returnedError))
	if err != nil && !returned {
		return nil, err
	}
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	if failed := t.commit(p); failed != nil {
		return nil, failed
	}
	x.remember(p, t.view)
	if returned {
		err = errors.Unwrap(err)
	}
	return result, err
}

// returnedError is an error reply that a script returned rather than raised: what it wrote counts.
type returnedError struct{ reply Error }

// Error implements error.
func (e returnedError) Error() string { return string(e.reply) }

// Unwrap gives the reply.
func (e returnedError) Unwrap() error { return e.reply }

// try is one try of a run.
type try struct {
	x        *Executor
	conn     Conn
	view     *view
	locked   bool // it takes the lock
	holds    bool // it may hold it
	watching bool // the connection is not as it was
	marked   bool
	broken   bool
}

// do is Do that remembers when the connection failed.
func (t *try) do(ctx context.Context, cmds ...[]string) ([]any, error) {
	r, err := t.conn.Do(ctx, cmds)
	if err == nil && len(r) != len(cmds) {
		err = fmt.Errorf("luaexec: %d replies to %d commands", len(r), len(cmds))
	}
	t.broken = t.broken || err != nil
	return r, err
}

// begin takes the lock, watches, and reads what the last runs of the script read.
func (t *try) begin(p *Program, px time.Duration) error {
	c := &t.x.c
	var cmds [][]string
	watch := []string{"watch", c.Rev, c.Mark}
	if t.locked {
		cmds = append(cmds, []string{"set", c.Lock, c.Holder, "nx", "get", "px", strconv.FormatInt(px.Milliseconds(), 10)})
		watch = append(watch, c.Lock)
	}
	lead := len(cmds)
	cmds = append(cmds, watch, []string{"time"}, []string{"get", c.Mark})
	ahead := t.x.foresee(p)
	ends := make([]int, len(ahead)) // where the replies of each end
	from := len(cmds)
	for i, read := range ahead {
		cmds = append(cmds, t.view.plan(read)...)
		ends[i] = len(cmds)
	}
	t.watching, t.holds = true, t.locked
	r, err := t.do(t.view.ctx, cmds...)
	if err != nil {
		return err
	}
	if t.locked {
		if e, ok := r[0].(Error); ok {
			t.holds = false
			return e
		}
		if r[0] != nil && r[0] != c.Holder {
			t.holds = false
			return errLocked
		}
	}
	for _, v := range r[lead : lead+3] {
		if e, ok := v.(Error); ok {
			return e
		}
	}
	t.view.moment = r[lead+1]
	mark, marked := r[lead+2].(string)
	if t.marked = marked; marked && mark != c.MarkValue {
		return &MarkError{Key: c.Mark, Got: mark, Want: c.MarkValue}
	}
	for i, read := range ahead {
		if _, err := t.view.keep(read, r[from:ends[i]]); err != nil {
			return err
		}
		from = ends[i]
	}
	return nil
}

// commit sends what the script wrote, all or nothing.
func (t *try) commit(p *Program) error {
	c, v := &t.x.c, t.view
	cmds := [][]string{{"multi"}}
	if len(v.writes) > 0 {
		for _, w := range v.writes {
			cmds = append(cmds, w.cmd)
		}
		if !t.marked {
			cmds = append(cmds, []string{"set", c.Mark, c.MarkValue})
		}
		cmds = append(cmds, []string{"incr", c.Rev})
	}
	if t.locked {
		cmds = append(cmds, []string{"del", c.Lock})
	}
	cmds = append(cmds, []string{"exec"})
	r, err := t.do(v.ctx, cmds...)
	if err != nil {
		return err
	}
	switch done := r[len(r)-1].(type) {
	case nil:
		t.watching = false
		return errAgain
	case []any:
		t.watching, t.holds = false, false
		return v.compare(p, done)
	case Error:
		// EXEC has ended the transaction; the cause is with the command that was refused.
		t.watching = false
		for _, e := range r[:len(r)-1] {
			if e, ok := e.(Error); ok {
				return e
			}
		}
		return done
	default:
		t.broken = true
		return fmt.Errorf("luaexec: exec replied %T", done)
	}
}

// compare looks whether Redis did what the script was told.
func (v *view) compare(p *Program, done []any) error {
	if len(done) < len(v.writes) {
		return fmt.Errorf("luaexec: exec replied %d values to %d writes", len(done), len(v.writes))
	}
	for i, w := range v.writes {
		if e, ok := done[i].(Error); ok {
			return e
		}
		if !w.check {
			continue
		}
		want := w.reply
		if s, ok := want.(status); ok {
			want = string(s)
		}
		if !reflect.DeepEqual(done[i], want) {
			return &DifferError{Script: p.Name, Command: w.cmd[0] + " " + w.cmd[1], Got: done[i], Want: want}
		}
	}
	return nil
}

// endTime bounds what a run does to leave nothing behind after it failed.
const endTime = time.Second

// end leaves the connection as it was, and the lock free unless the run is tried again.
func (t *try) end(err error) {
	again := errors.Is(err, errAgain)
	ctx, cancel := context.WithTimeout(context.WithoutCancel(t.view.ctx), endTime)
	defer cancel()
	t.broken = t.broken || t.view.failed
	if !t.broken && t.watching {
		if _, failed := t.do(ctx, []string{"unwatch"}); failed == nil {
			t.watching = false
		}
	}
	if t.holds && !again && !t.broken {
		t.unlock(ctx)
	}
	t.conn.Close(t.broken)
	if t.holds && !again && t.broken && t.view.ctx.Err() != nil {
		t.x.free(t.view.ctx) // the caller gave up, Redis did not
	}
}

// free frees the lock on a connection of its own.
func (x *Executor) free(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), endTime)
	defer cancel()
	if conn, err := x.c.Connect(ctx); err == nil {
		t := &try{x: x, conn: conn}
		t.unlock(ctx)
		conn.Close(t.broken)
	}
}

// unlock frees the lock if it is still ours. Should it fail, the lock ends by its time.
func (t *try) unlock(ctx context.Context) {
	lock := t.x.c.Lock
	r, err := t.do(ctx, []string{"watch", lock}, []string{"get", lock})
	if err != nil {
		return
	}
	if r[1] != t.x.c.Holder {
		_, _ = t.do(ctx, []string{"unwatch"})
		return
	}
	_, _ = t.do(ctx, []string{"multi"}, []string{"del", lock}, []string{"exec"})
}

// take returns an interpreter that nobody else uses.
func (x *Executor) take() *machine {
	x.mu.Lock()
	defer x.mu.Unlock()
	if n := len(x.machines); n > 0 {
		m := x.machines[n-1]
		x.machines = x.machines[:n-1]
		return m
	}
	return newMachine()
}

// machinesKept is how many interpreters wait for their next run.
const machinesKept = 4

func (x *Executor) give(m *machine) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if len(x.machines) < machinesKept {
		x.machines = append(x.machines, m)
	}
}

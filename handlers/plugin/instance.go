package plugin

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/taskhost/taskhost/abi"
	"github.com/taskhost/taskhost/handlers"
	"github.com/taskhost/taskhost/handlers/session"
)

// fate is why an instance ends. The first one counts.
type fate int

const (
	fateNone    fate = iota // it lives
	fateDied                // it died by itself
	fateSilent              // it did not answer
	fateBreach              // it broke the protocol
	fateKilled              // an attempt did not end
	fateLost                // its socket vanished
	fateStopped             // it is not needed any more
)

// instance is one process of a plugin that has started.
type instance struct {
	log     *slog.Logger
	conn    *connection
	session *session.Session
	since   time.Time
	room    int // attempts at once

	ctx    context.Context // ends when it is asked to go
	cancel context.CancelFunc
	dead   chan struct{} // closed when the process is gone and all attempts have their outcome

	mu   sync.Mutex
	fate fate
	why  error

	slots slots // guarded by the group's mutex
}

// startInstance starts a process and makes it ready for attempts.
func (g *group) startInstance(ctx context.Context) (*instance, error) {
	c, err := connect(ctx, &g.spec, g.sockets, g.spawner, g.log)
	if err != nil {
		return nil, err
	}
	i := &instance{log: g.log.With("pid", c.proc.pid()), conn: c, since: time.Now(), room: min(g.spec.Concurrency, int(c.about.GetSlots())), dead: make(chan struct{})}
	i.ctx, i.cancel = context.WithCancel(context.Background())
	i.session, err = session.Open(session.Options{Client: c.api, Fault: func(v *session.Violation) { i.end(fateBreach, v) }})
	if err != nil {
		i.cancel()
		c.proc.kill()
		<-c.proc.gone
		c.close()
		return nil, c.proc.startError(err, nil)
	}
	go i.reap()
	return i, nil
}

// end kills the process for a reason. The first reason counts.
func (i *instance) end(f fate, why error) {
	i.mark(f, why)
	i.conn.proc.kill()
}

// ask tells the process to go; it is killed if it does not within a moment.
func (i *instance) ask(why error) {
	i.mark(fateStopped, why)
	i.cancel()
}

func (i *instance) mark(f fate, why error) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.fate == fateNone {
		i.fate, i.why = f, why
	}
}

// doomed reports whether the process is on its way out.
func (i *instance) doomed() bool {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.fate != fateNone
}

// stopWithin is how long a process that was asked to go may take.
const stopWithin = 2 * time.Second

// reap waits for the end of the process, then gives every attempt in flight its outcome.
func (i *instance) reap() {
	defer close(i.dead)
	select {
	case <-i.conn.proc.gone:
	case <-i.ctx.Done():
		i.session.Hang()
		timer := time.NewTimer(stopWithin)
		defer timer.Stop()
		select {
		case <-i.conn.proc.gone:
		case <-timer.C:
			i.conn.proc.kill()
			<-i.conn.proc.gone
		}
	}
	i.mark(fateDied, i.deathError())
	i.cancel()
	i.session.Close(i.lost)
	i.conn.close()
}

func (i *instance) deathError() error {
	if line := i.conn.proc.stderr.complaint(); line != "" {
		return fmt.Errorf("plugin died (%s): %s", i.conn.proc.exited(), line)
	}
	return fmt.Errorf("plugin died (%s)", i.conn.proc.exited())
}

// death tells how and why the instance ended, and whether it had finished anything; only after dead.
func (i *instance) death() (how fate, why error, useful bool) {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.fate, i.why, i.session.Landed() > 0
}

// lost is the outcome of an attempt whose process is gone. What the host itself ended for another's sake counts nothing.
func (i *instance) lost(a *session.Attempt) handlers.Outcome {
	i.mu.Lock()
	how, why := i.fate, i.why
	i.mu.Unlock()
	out := handlers.Outcome{RetryAfter: -1, Duration: time.Since(a.Began())}
	switch how {
	case fateKilled, fateLost:
		out.Kind, out.Error = handlers.OutcomeInterrupted, &handlers.Error{Kind: abi.KindInterrupted, Message: "its plugin was killed: " + why.Error()}
	case fateStopped:
		out.Kind, out.Error = handlers.OutcomeInterrupted, &handlers.Error{Kind: abi.KindInterrupted, Message: why.Error()}
	default:
		out.Kind, out.Error = handlers.OutcomeCrashed, &handlers.Error{Kind: abi.KindCrash, Message: why.Error()}
	}
	return out
}

// errNeighbour is what the others in a killed process are told. It names nobody: they may be of another tenant.
var errNeighbour = errors.New("another job that shared its process did not end")

// await waits for the end of an attempt, and makes it end when it has to: first by asking, then by killing its process.
func (i *instance) await(ctx context.Context, a *session.Attempt, grace time.Duration) handlers.Outcome {
	deadline := a.Invocation().Deadline
	timer := time.NewTimer(time.Until(deadline))
	defer timer.Stop()
	asked, killed := false, false
	cancelled := ctx.Done()
	ask := func(reason error) {
		cancelled = nil
		if !asked {
			asked = true
			a.Stop(reason.Error())
		}
		timer.Reset(min(grace, time.Until(deadline)+grace))
	}
	for {
		select {
		case out := <-a.Outcome():
			if a.Ended() {
				a.AwaitLogs()
				return judge(ctx, a, out)
			}
			if killed {
				return overdue(ctx, a)
			}
			return out
		case <-cancelled:
			ask(context.Cause(ctx))
		case <-timer.C:
			if !asked {
				ask(errDeadline)
				continue
			}
			killed = true
			i.log.Warn("an attempt did not end; its plugin is killed", "job", a.Invocation().JobID, "type", a.Invocation().Type, "after", time.Since(a.Began()))
			i.end(fateKilled, errNeighbour)
		}
	}
}

var errDeadline = errors.New("deadline exceeded")

// judge adapts what the handler said to what the host had asked for: a handler that gives up because it was told to is interrupted, or has
// exceeded its deadline.
func judge(ctx context.Context, a *session.Attempt, out handlers.Outcome) handlers.Outcome {
	gaveUp := out.Kind == handlers.OutcomeRetry || out.Kind == handlers.OutcomeInterrupted
	switch {
	case !gaveUp:
		return out
	case ctx.Err() != nil:
		return interrupted(context.Cause(ctx), out.Duration)
	case !time.Now().Before(a.Invocation().Deadline):
		return pastDeadline(out.Duration, "the handler gave up: "+out.Error.Message)
	}
	return out
}

// overdue is the outcome of an attempt that was ended by killing its process.
func overdue(ctx context.Context, a *session.Attempt) handlers.Outcome {
	took := time.Since(a.Began())
	if ctx.Err() != nil {
		return interrupted(context.Cause(ctx), took)
	}
	return pastDeadline(took, "its plugin was killed")
}

func pastDeadline(took time.Duration, how string) handlers.Outcome {
	return handlers.Outcome{Kind: handlers.OutcomeRetry, RetryAfter: -1, Duration: took, Error: &handlers.Error{Kind: abi.KindDeadline,
		Message: fmt.Sprintf("deadline exceeded after %s; %s", took.Round(time.Millisecond), how)}}
}

func interrupted(cause error, after time.Duration) handlers.Outcome {
	return handlers.Outcome{Kind: handlers.OutcomeInterrupted, RetryAfter: -1, Duration: after,
		Error: &handlers.Error{Kind: abi.KindInterrupted, Message: cause.Error()}}
}

func unavailable(err error) handlers.Outcome {
	return handlers.Outcome{Kind: handlers.OutcomeUnavailable, RetryAfter: -1, Error: &handlers.Error{Kind: abi.KindUnavailable, Message: err.Error()}}
}

// Package attempt is the state of one attempt of a job inside a runner: what the guest may read, what it has produced, and how it is told
// to stop. Host functions find it in the context of the call; every attempt has its own, so nothing of it survives.
//
// A State is used by the one goroutine that runs the guest. Only Stop may be called from elsewhere.
package attempt

import (
	"context"
	"crypto/rand"
	"io"
	"sync/atomic"
	"time"

	"github.com/taskhost/taskhost/abi"
)

// Input is what an attempt is given. Nothing of it is changed.
type Input struct {
	JobID, Tenant, Queue, Type string
	Attempt, MaxAttempts       int
	Headers, Config            map[string]string
	Payload                    []byte
	Checkpoint                 []byte // nil = none
	Deadline                   time.Time
	Limits                     Limits
	Random                     io.Reader // what random_get gives; nil = crypto/rand
	Asks                       bool      // the guest can ask should_stop
}

// Limits of an attempt. Those in bytes are all required.
type Limits struct {
	Memory     int64 // bytes
	Result     int   // bytes
	Log        int   // bytes
	Checkpoint int   // bytes
	Fuel       int64 // units; 0 = no limit
}

// Reports is where the guest's reports go. Log and Progress must not block; Checkpoint returns when the host has answered or the attempt
// was stopped.
type Reports interface {
	Log(level int32, message string)
	Progress(done, total int64, message string)
	Checkpoint(data []byte) abi.Errno
}

// StopGrace is how long after its deadline, or after it was told to stop, a guest may still sleep, and run if it can ask should_stop: long
// enough to ask and act on it, shorter than the grace after which its process is killed.
const StopGrace = 100 * time.Millisecond

// State is the state of one attempt.
type State struct {
	Input
	Reports Reports

	// Stdin is how much of the payload was read through WASI.
	Stdin int
	// Closed tells which of the descriptors 0 to 2 the guest has closed.
	Closed [3]bool
	// Failure is what the guest told through the fail call; nil = nothing.
	Failure *Failure

	result    []byte
	oversize  int64 // bytes the guest wanted to have as a result when it went over the limit
	log       logState
	stopped   atomic.Pointer[stop]
	stopc     chan struct{}
	end       End
	exitCode  uint32
	latestCkp []byte
	fuel      fuel
}

// Failure is what a guest says about why it fails.
type Failure struct {
	Kind       int32 // as abi.HandleRetry and so on
	RetryAfter time.Duration
	Message    string
}

type stop struct {
	at     time.Time
	reason string
}

// New returns the state of an attempt that begins now.
func New(in Input, reports Reports) *State {
	if in.Random == nil {
		in.Random = rand.Reader
	}
	return &State{Input: in, Reports: reports, stopc: make(chan struct{}), latestCkp: in.Checkpoint}
}

type key struct{}

// Context returns ctx carrying the state.
func Context(ctx context.Context, s *State) context.Context { return context.WithValue(ctx, key{}, s) }

// From returns the state that ctx carries. It panics without one: a guest then runs outside an attempt, which is a fault of the host.
func From(ctx context.Context) *State { return ctx.Value(key{}).(*State) }

// Stop asks the guest to stop. The first call counts. It may be called from any goroutine.
func (s *State) Stop(reason string) {
	if s.stopped.CompareAndSwap(nil, &stop{time.Now(), reason}) {
		close(s.stopc)
	}
}

// StopReason is the reason given to Stop; false if there was none.
func (s *State) StopReason() (string, bool) {
	if st := s.stopped.Load(); st != nil {
		return st.reason, true
	}
	return "", false
}

// Stopping is closed when Stop is called. The deadline does not close it.
func (s *State) Stopping() <-chan struct{} { return s.stopc }

// ShouldStop reports whether the guest was told to stop or its deadline has passed.
func (s *State) ShouldStop() bool { return s.stopped.Load() != nil || !time.Now().Before(s.Deadline) }

// stopsAt is when the guest has to stop.
func (s *State) stopsAt() time.Time {
	if st := s.stopped.Load(); st != nil && st.at.Before(s.Deadline) {
		return st.at
	}
	return s.Deadline
}

// endsAt is when a guest that goes on is unwound.
func (s *State) endsAt() time.Time { return s.stopsAt().Add(StopGrace) }

// Sleep pauses the guest. When the attempt has to end before d is over, the guest is unwound and Sleep does not return.
func (s *State) Sleep(d time.Duration) {
	if d <= 0 && !s.ShouldStop() {
		return
	}
	wake := time.Now().Add(max(d, 0))
	if wake.Before(time.Now()) { // the sum went over
		wake = s.Deadline.Add(time.Hour)
	}
	stopc := s.stopc
	for {
		until, now := s.endsAt(), time.Now()
		if !now.Before(wake) {
			if !now.Before(until) {
				s.unwindStopped()
			}
			return
		}
		if !now.Before(until) {
			s.unwindStopped()
		}
		if wake.Before(until) {
			until = wake
		}
		if s.stopped.Load() != nil {
			stopc = nil
		}
		timer := time.NewTimer(until.Sub(now))
		select {
		case <-timer.C:
		case <-stopc:
			timer.Stop()
		}
	}
}

// endIfDue unwinds a guest that computes though its time is over.
func (s *State) endIfDue(now time.Time) {
	end := s.stopsAt()
	if s.Asks {
		end = end.Add(StopGrace)
	}
	if !now.Before(end) {
		s.unwindStopped()
	}
}

func (s *State) unwindStopped() {
	if _, ok := s.StopReason(); ok {
		s.Unwind(EndStopped, 0)
	}
	s.Unwind(EndDeadline, 0)
}

// Checkpointed returns what checkpoint_get answers; nil = none.
func (s *State) Checkpointed() []byte { return s.latestCkp }

// PutCheckpoint makes data durable. It keeps data.
func (s *State) PutCheckpoint(data []byte) abi.Errno {
	if len(data) > s.Limits.Checkpoint {
		return abi.ErrTooLarge
	}
	if s.ShouldStop() && time.Now().After(s.endsAt()) {
		return abi.ErrCancelled
	}
	if e := s.Reports.Checkpoint(data); e != 0 {
		return e
	}
	s.latestCkp = data
	return 0
}

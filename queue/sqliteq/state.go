package sqliteq

import (
	"slices"
	"time"

	"github.com/taskhost/taskhost/queue"
)

const stateFormat = 1

// Flags of a state.
const (
	stateCancel      = 1 << iota // cancel requested
	stateCheckpoint              // a checkpoint blob exists
	stateLogs                    // log lines exist
	stateLargeResult             // the result is a blob
)

// state is what happened to a job so far. A stored state is never changed: whoever changes one works on a clone, so that a
// failed commit leaves the old one.
type state struct {
	flags         byte
	run           int
	attempt       int // counted attempts; the running one is not counted yet
	crashes       int
	interruptions int
	returns       int64 // how often it came back from a reservation, ever; see batchrow.go
	reason        queue.Reason
	startedAt     time.Time
	lastError     *queue.JobError
	attempts      []queue.Attempt
	progress      *queue.Progress
	handler       queue.Handler
	resultBytes   int
	result        []byte
	logSeq        int64 // last line's number, also of lines that are gone
	cutRun        int   // the last attempt whose log reached its cap; 0 = none
	cutAttempt    int
}

// fresh is the state of a job that has none.
var fresh = &state{run: 1}

func (s *state) clone() *state {
	c := *s
	c.attempts = slices.Clip(c.attempts) // an append to the clone must not write behind the original
	return &c
}

func (s *state) has(flag byte) bool { return s.flags&flag != 0 }

func (s *state) set(flag byte, on bool) {
	if on {
		s.flags |= flag
	} else {
		s.flags &^= flag
	}
}

func (s *state) encode() []byte {
	e := newEncoder(stateFormat, 96+96*len(s.attempts)+len(s.result))
	e.byte(s.flags)
	e.int(int64(s.run))
	e.int(int64(s.attempt))
	e.int(int64(s.crashes))
	e.int(int64(s.interruptions))
	e.int(s.returns)
	e.string(string(s.reason))
	e.time(s.startedAt)
	e.jobError(s.lastError)
	e.int(int64(len(s.attempts)))
	for i := range s.attempts {
		a := &s.attempts[i]
		e.int(int64(a.Run))
		e.int(int64(a.Attempt))
		e.string(string(a.Outcome))
		e.jobError(a.Error)
		e.time(a.StartedAt)
		e.int(a.DurationMS)
		e.int(a.Fuel)
		e.int(a.PeakMemoryBytes)
		e.string(a.Worker)
		e.string(a.Handler.Runtime)
		e.int(int64(a.Handler.Version))
	}
	e.bool(s.progress != nil)
	if p := s.progress; p != nil {
		e.int(p.Done)
		e.int(p.Total)
		e.string(p.Message)
		e.time(p.At)
	}
	e.string(s.handler.Runtime)
	e.int(int64(s.handler.Version))
	e.int(int64(s.resultBytes))
	e.bool(s.result != nil)
	e.bytes(s.result)
	e.int(s.logSeq)
	e.int(int64(s.cutRun))
	e.int(int64(s.cutAttempt))
	return e.seal()
}

// decodeState reads a state column; NULL is a job nothing happened to yet.
func decodeState(b []byte) (*state, error) {
	if b == nil {
		return fresh, nil
	}
	d := open(b, stateFormat)
	s := &state{flags: d.byte(), run: int(d.int()), attempt: int(d.int()), crashes: int(d.int()), interruptions: int(d.int()),
		returns: d.int(), reason: queue.Reason(d.string()), startedAt: d.time(), lastError: d.jobError()}
	n := d.count()
	if n > 0 {
		s.attempts = make([]queue.Attempt, n)
	}
	for i := range s.attempts {
		s.attempts[i] = queue.Attempt{Run: int(d.int()), Attempt: int(d.int()), Outcome: queue.AttemptOutcome(d.string()),
			Error: d.jobError(), StartedAt: d.time(), DurationMS: d.int(), Fuel: d.int(), PeakMemoryBytes: d.int(), Worker: d.string(),
			Handler: queue.Handler{Runtime: d.string(), Version: int(d.int())}}
	}
	if d.bool() {
		s.progress = &queue.Progress{Done: d.int(), Total: d.int(), Message: d.string(), At: d.time()}
	}
	s.handler = queue.Handler{Runtime: d.string(), Version: int(d.int())}
	s.resultBytes = int(d.int())
	kept := d.bool()
	s.result = d.bytes()
	if !kept {
		s.result = nil
	}
	s.logSeq, s.cutRun, s.cutAttempt = d.int(), int(d.int()), int(d.int())
	return s, d.close()
}

// stateCodes are the numbers of the terminal states in finished.outcome; index finished_dead names that of dead.
var stateCodes = map[queue.State]int64{
	queue.StateSucceeded: 4, queue.StateDead: 5, queue.StateCancelled: 6, queue.StateExpired: 7,
}

func stateOfCode(code int64) queue.State {
	for s, c := range stateCodes {
		if c == code {
			return s
		}
	}
	return queue.StateDead // a damaged row; the dead-letter queue is where people look
}

package sqliteq

import (
	"cmp"
	"context"
	"slices"

	"github.com/taskhost/taskhost/queue"
)

// settleWork is one call of Settle.
type settleWork struct {
	s           *Store
	settlements []queue.Settlement
	refs        []parsedRef
	outcomes    []queue.SettleOutcome
	moves       []move
	done        chan error
}

// move is what one settlement does to its job.
type move struct {
	r     *running
	v     *queue.Settlement
	to    queue.State
	st    *state // after it
	front bool
	runAt int64
	kept  bool // of an end
}

// Settle implements queue.Queue. Tokens are checked by the writer, against memory and the marks of its group, so of two
// settlements of one reservation exactly one wins.
func (s *Store) Settle(ctx context.Context, settlements []queue.Settlement) ([]queue.SettleOutcome, error) {
	if err := s.enter(ctx); err != nil {
		return nil, err
	}
	w := &settleWork{s: s, settlements: settlements, refs: make([]parsedRef, len(settlements)),
		outcomes: make([]queue.SettleOutcome, len(settlements)), done: make(chan error, 1)}
	for i := range settlements {
		v := &settlements[i]
		if err := v.Validate(s.limits); err != nil {
			w.outcomes[i] = queue.SettleOutcome{Status: queue.SettleRejected, Err: err}
			continue
		}
		w.refs[i] = s.parseRef(v.Ref)
	}
	if err := s.do(ctx, w, w.done); err != nil {
		return nil, err
	}
	return w.outcomes, nil
}

func (w *settleWork) plan(g *group) error {
	w.moves = slices.Grow(w.moves[:0], len(w.settlements))
	if !w.claim() {
		return errNextGroup
	}
	return g.settle(w.moves)
}

// claim marks the jobs whose tokens are current; false when an other request of the group has one of them.
func (w *settleWork) claim() bool {
	w.s.mu.Lock()
	defer w.s.mu.Unlock()
	for _, ref := range w.refs {
		if r := w.s.held(ref); r != nil && r.busy {
			return false
		}
	}
	for i := range w.settlements {
		if w.outcomes[i].Status == queue.SettleRejected {
			continue
		}
		r := w.s.held(w.refs[i])
		if r == nil {
			w.outcomes[i] = queue.SettleOutcome{Status: queue.SettleLeaseLost}
			continue
		}
		m := w.s.decide(r, &w.settlements[i])
		w.moves = append(w.moves, m)
		w.outcomes[i] = queue.SettleOutcome{Status: queue.SettleOK, State: m.to}
	}
	return true
}

// decide applies the verb table of queue.Verb to a job that is held, and marks it; with s.mu held.
func (s *Store) decide(r *running, v *queue.Settlement) move {
	r.busy, r.settled = true, true
	r.b.settling++
	if v.Verb == queue.VerbAck {
		if age, forever := s.scheduling.Retention.Age(queue.StateSucceeded); age == 0 && !forever {
			return move{r: r, v: v, st: r.st, to: queue.StateSucceeded} // nothing of it is kept
		}
	}
	st := r.st.clone()
	m := move{r: r, v: v, st: st}
	cancelled := r.cancel && v.Verb != queue.VerbAck && v.Verb != queue.VerbDead
	note := attemptRecord(r, v)
	st.returns++
	st.startedAt = fromMillis(r.started)
	st.set(stateCancel, false)
	switch v.Verb {
	case queue.VerbAck:
		note.Outcome = queue.AttemptSucceeded
		st.attempt++
		m.to = queue.StateSucceeded
	case queue.VerbNack:
		note.Outcome, note.Error = queue.AttemptFailed, copyError(v.Error)
		st.attempt++
		m.to = queue.StateScheduled
		st.reason = queue.ReasonRetry
		if st.attempt >= queue.AttemptBudget(r.maxAttempts()) {
			m.to = queue.StateDead
		}
	case queue.VerbDead:
		note.Outcome, note.Error = queue.AttemptFailed, copyError(v.Error)
		st.attempt++
		m.to = queue.StateDead
	case queue.VerbDefer:
		note.Outcome = queue.AttemptDeferred
		m.to = queue.StateScheduled
		st.reason = queue.ReasonDefer
	case queue.VerbYield:
		note.Outcome = queue.AttemptDeferred
		m.to = queue.StateReady
	case queue.VerbRelease:
		note.Outcome = queue.AttemptInterrupted
		st.interruptions++
		m.to, m.front = queue.StateReady, true
	case queue.VerbCrash:
		note.Outcome, note.Error = queue.AttemptCrashed, copyError(v.Error)
		if note.Error == nil {
			note.Error = queue.LeaseRanOut()
		}
		st.crashes++
		m.to, m.front = queue.StateReady, true
	}
	if cancelled {
		note.Outcome = queue.AttemptCancelled
		m.to, m.front = queue.StateCancelled, false
	} else if note.Error != nil {
		st.lastError = copyError(note.Error)
	}
	if !cancelled && v.Verb == queue.VerbCrash && st.crashes >= s.scheduling.CrashBudget() {
		st.lastError = queue.CrashBudgetSpent(st.crashes, note.Error)
		m.to, m.front = queue.StateDead, false
	}
	st.attempts = queue.AppendAttempt(st.attempts, note)
	if v.Handler != (queue.Handler{}) {
		st.handler = v.Handler
	}
	if m.to == queue.StateScheduled && v.Delay <= 0 {
		m.to = queue.StateReady
	}
	if m.to != queue.StateScheduled {
		st.reason = queue.ReasonNone
	}
	return m
}

func (r *running) maxAttempts() int {
	sp, err := decodeRecord(r.record)
	if err != nil {
		return 1
	}
	return sp.job.MaxAttempts
}

// settle writes what became of jobs that were claimed. Those that go to the front go as a block, in the order of their
// reservation.
func (g *group) settle(moves []move) error {
	ended := make(map[*batch]struct{}, 1)
	front := 0
	for i := range moves {
		m := &moves[i]
		ended[m.r.b] = struct{}{}
		if m.front {
			front++
		}
		if m.to == queue.StateScheduled {
			m.runAt = queue.After(g.now, m.v.Delay).UnixMilli()
		}
		var err error
		switch {
		case m.to.Terminal():
			m.kept, err = g.finish(&endedJob{seq: m.r.seq, birth: m.r.birth, q: m.r.q, prio: m.r.prio, expires: m.r.expires,
				record: m.r.record, st: m.st, outcome: m.to, result: m.v.Result})
		case !m.front:
			err = g.exec(sqlJobEnter, g.tailPos(), orNull(m.runAt), m.st.encode(), m.r.seq)
		}
		if err != nil {
			return err
		}
	}
	g.countDown(ended)
	if front == 0 {
		return nil
	}
	slices.SortStableFunc(moves, func(a, b move) int { return cmp.Compare(a.frontOrder(), b.frontOrder()) })
	pos := g.frontPos(front)
	for i := range moves {
		if m := &moves[i]; m.front {
			if err := g.exec(sqlJobEnter, pos, nil, m.st.encode(), m.r.seq); err != nil {
				return err
			}
			pos++
		}
	}
	return nil
}

// frontOrder keeps moves that do not go to the front where they are, before the others.
func (m *move) frontOrder() int64 {
	if m.front {
		return m.r.order
	}
	return 0
}

// countDown notes the batches that are complete with this group.
func (g *group) countDown(ended map[*batch]struct{}) {
	g.s.mu.Lock()
	defer g.s.mu.Unlock()
	for b := range ended {
		if b.left == b.settling && b.row != 0 {
			g.batchesDone = append(g.batchesDone, b.row)
		}
	}
}

func (w *settleWork) apply(*group) {
	w.s.applyMoves(w.moves)
	if w.s.scheduling.ChargeByTime > 0 {
		w.s.correct(w.moves)
	}
}

func (w *settleWork) revert(*group)    { revertMoves(w.moves) }
func (w *settleWork) finish(err error) { w.done <- err }
func (w *settleWork) weight() int      { return len(w.settlements) }

func revertMoves(moves []move) {
	for i := range moves {
		moves[i].r.busy, moves[i].r.settled = false, false
		moves[i].r.b.settling--
	}
}

// applyMoves follows the commit; with s.mu held.
func (s *Store) applyMoves(moves []move) {
	for i := range moves {
		m := &moves[i]
		s.end(m.r)
		if m.to.Terminal() {
			m.r.letGo()
			s.afterEnd(m.r.q, m.r.seq, m.to, m.kept)
			continue
		}
		r := m.r
		l := s.lineOf(r.q, r.prio)
		if !r.q.settings.Paused {
			s.cache.put(r.seq, entry{birth: r.birth, record: r.record, payload: r.payload, checkpoint: r.checkpoint, st: m.st, expiresAt: r.expires})
		}
		switch {
		case m.to == queue.StateScheduled:
			r.q.scheduled++
			s.scheduled.push(due{at: m.runAt, seq: r.seq, l: l})
		case !m.front:
			s.ready(l, r.seq)
		}
		s.notify(r.seq)
		r.letGo()
	}
	for i := len(moves) - 1; i >= 0; i-- { // the last reserved goes in first
		if m := &moves[i]; m.front {
			s.readyFront(s.lineOf(m.r.q, m.r.prio), m.r.seq)
		}
	}
}

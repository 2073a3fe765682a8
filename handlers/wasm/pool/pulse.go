package pool

import (
	"context"
	"errors"
	"time"

	"github.com/taskhost/taskhost/abi/pluginpb"
)

// How often a runner is asked whether it is there, and how long it may take to answer.
const (
	pulseBusy    = 500 * time.Millisecond
	pulseIdle    = 10 * time.Second
	pulseTimeout = time.Second
)

// pulse asks a runner again and again whether it is there, until it is dead. One that does not answer gets no new attempts: a guest that
// computes without a pause may have stopped it altogether, for as long as its deadline allows. One that has nothing to do and
// does not answer either is killed.
func (p *Pool) pulse(r *runner) {
	api := pluginpb.NewHandlerClient(r.client)
	tick := time.NewTicker(pulseBusy)
	defer tick.Stop()
	silent, last := 0, time.Now()
	for {
		select {
		case <-tick.C:
		case <-r.dead:
			return
		case <-r.ctx.Done():
			return
		}
		if p.idle(r) && silent == 0 && time.Since(last) < pulseIdle {
			continue
		}
		ctx, cancel := context.WithTimeout(r.ctx, pulseTimeout)
		_, err := api.Describe(ctx, &pluginpb.DescribeRequest{Abi: pluginpb.ABI})
		cancel()
		last = time.Now()
		if silent++; err == nil {
			silent = 0
		}
		if busy := p.noteStall(r, err != nil); busy == 0 && silent >= silencesUntilKill {
			r.end(fateKilled, errSilent, true)
			return
		}
	}
}

func (p *Pool) idle(r *runner) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return r.slots.busy == 0
}

// silencesUntilKill is how many questions in a row an idle runner may leave without an answer.
const silencesUntilKill = 5

var errSilent = errors.New("an idle runner did not answer")

// noteStall notes whether a runner answers and returns how many attempts it has.
func (p *Pool) noteStall(r *runner, stalled bool) (busy int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if s := &r.slots; s.stalled != stalled {
		s.stalled = stalled
		if stalled {
			r.log.Warn("a runner does not answer; it gets no new attempts until it does", "attempts", s.busy)
		} else {
			r.log.Info("a runner answers again", "attempts", s.busy)
		}
		p.dispatch()
	}
	return r.slots.busy
}

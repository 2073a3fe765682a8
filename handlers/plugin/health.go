package plugin

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"time"

	"github.com/taskhost/taskhost/abi/pluginpb"
)

// asksPerSilence is how often a process is asked within the time that it may be silent.
const asksPerSilence = 4

// examine asks an instance again and again whether it is there, by a call and not by its number, until it is dead. One that leaves a question
// unanswered gets no new attempts; one that has been silent too long is killed, and so is one whose socket has vanished.
func (g *group) examine(i *instance) {
	every := max(g.spec.Silence/asksPerSilence, time.Millisecond)
	tick := time.NewTicker(every)
	defer tick.Stop()
	answered := time.Now()
	for {
		select {
		case <-tick.C:
		case <-i.dead:
			return
		case <-i.ctx.Done():
			return
		}
		if i.conn.socket != "" {
			if _, err := os.Lstat(i.conn.socket); errors.Is(err, fs.ErrNotExist) {
				i.end(fateLost, fmt.Errorf("its socket %s has vanished", i.conn.socket))
				return
			}
		}
		asked := time.Now()
		ctx, cancel := context.WithTimeout(i.ctx, every)
		_, err := i.conn.api.Describe(ctx, &pluginpb.DescribeRequest{Abi: pluginpb.ABI})
		cancel()
		if err == nil {
			answered = asked
		}
		g.noteStall(i, err != nil)
		if silent := time.Since(answered); silent > g.spec.Silence {
			i.end(fateSilent, fmt.Errorf("plugin did not answer for %s: stopped, blocked or overloaded", silent.Round(time.Millisecond)))
			return
		}
	}
}

func (g *group) noteStall(i *instance, stalled bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if i.slots.stalled == stalled {
		return
	}
	i.slots.stalled = stalled
	if stalled {
		i.log.Warn("a process of the plugin does not answer; it gets no new attempts until it does", "attempts", i.slots.busy)
	} else {
		i.log.Info("a process of the plugin answers again", "attempts", i.slots.busy)
	}
	g.dispatch()
}

// Counts since a plugin was set up.
type Counts struct {
	Started   uint64 // processes that became ready
	Failed    uint64 // processes that did not
	Crashed   uint64 // died by themselves
	Killed    uint64 // an attempt did not end
	Unhealthy uint64 // did not answer, or lost their socket
	Breaches  uint64 // killed for what they said
}

// State is how a plugin is.
type State struct {
	Plugin    string
	Types     []string
	SHA256    string // of the program that started last
	Processes []ProcessState
	Waiting   int // attempts that wait for a slot
	// Failures is how many processes in a row were of no use; with 3 and none running, attempts are refused.
	Failures int
	Broken   bool
	Error    string // of the last failure; empty when all is well since
	Counts   Counts
}

// ProcessState is the state of one process.
type ProcessState struct {
	PID     int
	Since   time.Time
	Busy    int
	Stalled bool
	Alone   bool
	Socket  string
}

func (g *group) state() State {
	g.mu.Lock()
	defer g.mu.Unlock()
	s := State{Plugin: g.spec.name(), Types: g.spec.Types, SHA256: g.sum, Waiting: g.waiters.Len(), Failures: g.failures, Broken: g.failures >= failuresUntilBreak, Counts: g.counts}
	if g.lastErr != nil {
		s.Error = g.lastErr.Error()
	}
	for i := range g.instances {
		s.Processes = append(s.Processes, ProcessState{PID: i.conn.proc.pid(), Since: i.since, Busy: i.slots.busy, Stalled: i.slots.stalled,
			Alone: i.slots.alone, Socket: i.conn.socket})
	}
	return s
}

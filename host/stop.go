package host

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/taskhost/taskhost/handlers"
)

// What a Stop goes through:
//
//	schedules               their lease is handed back, so that another host serves them during the drain
//	reserving ends          what a Reserve under way takes is given back
//	drain                   running jobs may finish, for Options.Drain
//	interrupt               the rest is stopped (handlers.ErrDraining) and given back to the front of its queue, as one batch in
//	                        the order in which it was reserved; no attempt is counted
//	settle                  everything that ended is settled; leases are kept until then
//	parts                   notes, leases, maintenance (its lease is handed back), the list of workers, operations, handlers
//
// Kill, or the end of Stop's context, goes to the interrupt at once, and leaves killGrace for the rest.
const (
	releaseWindow = 500 * time.Millisecond // in which stopped jobs gather for one batch
	stopGrace     = 10 * time.Second       // for runtimes to stop their handlers
	killGrace     = time.Second            // from Kill to the end of Stop
)

// StuckError says that jobs did not stop when they were told to. Their leases run out, and they run again elsewhere.
type StuckError struct {
	Jobs []string // at most 20
	Busy int      // all of them
}

func (e *StuckError) Error() string {
	return fmt.Sprintf("%d jobs did not stop, among them %s", e.Busy, strings.Join(e.Jobs, ", "))
}

// Stop drains the host and ends it. It returns nil when every job was settled or given back, and a *StuckError when some did not
// stop. The end of ctx has the effect of Kill. Safe to call twice and before Start.
func (h *Host) Stop(ctx context.Context) error {
	h.stopOnce.Do(func() { h.stopErr = h.stop(ctx) })
	return h.stopErr
}

// Kill cuts a drain short: running jobs are stopped and given back at once, and Stop returns within about a second whatever the
// store does. It is for the second signal. Kill alone does not end the host; Stop does.
func (h *Host) Kill() {
	h.killOnce.Do(func() {
		h.kill()
		time.AfterFunc(killGrace, func() {
			h.hardCancel()
			h.settle.Kill()
		})
		h.dispatch.Kill()
	})
}

func (h *Host) stop(ctx context.Context) error {
	defer context.AfterFunc(ctx, h.Kill)()
	started := time.Now()
	h.opening.Stop()
	h.schedules.Stop() // another host serves them from now on
	h.dispatch.StopReserving()
	h.o.Log.Info("draining", "running", h.dispatch.Busy(), "drain", h.o.Drain)

	drain, cancel := context.WithTimeout(h.killed, h.o.Drain)
	defer cancel()
	var stuck error
	if h.dispatch.WaitIdle(drain) != nil {
		stuck = h.interrupt()
	}
	if stuck == nil {
		h.dispatch.Stop()
	} else {
		h.dispatch.Abandon()
	}

	// After a lease without an answer the tokens are worthless; nothing is gained by waiting on.
	expiry := time.AfterFunc(h.o.Lease, h.settle.Kill)
	h.settle.Stop()
	expiry.Stop()
	h.notes.Stop()
	h.keeper.Stop()
	if h.maintain != nil {
		h.maintain.Stop()
	}
	h.workers.Stop()
	h.operations.Stop()
	h.catalog.Stop()
	h.kill()
	h.hardCancel()
	h.o.Log.Info("stopped", "took", time.Since(started).Round(time.Millisecond), "settled", h.settle.Stats().OK)
	return stuck
}

// interrupt stops what still runs and gives it back.
func (h *Host) interrupt() error {
	h.o.Log.Warn("drain is over; giving running jobs back", "running", h.dispatch.Busy())
	h.settle.HoldReleases()
	h.keeper.CancelAll(handlers.ErrDraining)
	window, cancel := context.WithTimeout(h.hard, releaseWindow)
	err := h.dispatch.WaitIdle(window)
	cancel()
	h.settle.FlushReleases()
	if err == nil {
		return nil
	}
	grace, cancel := context.WithTimeout(h.hard, stopGrace)
	defer cancel()
	if h.dispatch.WaitIdle(grace) == nil {
		return nil
	}
	e := &StuckError{Jobs: h.keeper.Running(20), Busy: h.dispatch.Busy()}
	h.o.Log.Error("jobs did not stop", "busy", e.Busy, "jobs", e.Jobs)
	return e
}

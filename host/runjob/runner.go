package runjob

import (
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/taskhost/taskhost/handlers"
	"github.com/taskhost/taskhost/host/dispatch"
	"github.com/taskhost/taskhost/host/lease"
	"github.com/taskhost/taskhost/host/notes"
	"github.com/taskhost/taskhost/host/settle"
	"github.com/taskhost/taskhost/queue"
)

// Options of a Runner. All are required.
type Options struct {
	Registry    *handlers.Registry
	Runtimes    map[string]handlers.Runtime // by Runtime.Name
	Keeper      *lease.Keeper
	Settle      *settle.Batcher
	Notes       *notes.Flusher
	Quarantine  Quarantine
	Limits      handlers.Limits // complete: the host's defaults
	Backoff     queue.Backoff   // of jobs that ask for none
	HandlerWait time.Duration   // how long a job may wait for a handler of its type
	Log         *slog.Logger
	Random      func() float64 // uniform in [0, 1)
}

// Quarantine keeps versions from running whose jobs bring down one process after the other; *catalog.Catalog is one. Its methods do not block.
type Quarantine interface {
	// Held reports whether the jobs of a tenant must not run with a version now.
	Held(tenant string, v *handlers.Version) bool
	// Crashed notes that a process died while it ran this job of a tenant and no other.
	Crashed(tenant, job string, v *handlers.Version, why string)
}

// Stats counts attempts by how they ended, since the start.
type Stats struct {
	Succeeded   int64
	Retried     int64 // failed, and asked for or left to another attempt; the store may have made it the last
	Permanent   int64
	Deferred    int64
	Interrupted int64 // given back
	Crashed     int64
	Unavailable int64 // could not be started
	NoHandler   int64 // no version serves the type here
	Quarantined int64 // put off because the version is quarantined
	NoMemory    int64 // put off because others had the memory budget
	Lost        int64 // ended without settling: the lease was gone
	Panics      int64 // of runtimes
}

// Runner makes and runs attempts; it is the dispatch.Runner of a host.
type Runner struct {
	o      Options
	counts struct {
		succeeded, retried, permanent, deferred, interrupted, crashed, unavailable, noHandler, quarantined, noMemory, lost, panics atomic.Int64
	}
}

var _ dispatch.Runner = (*Runner)(nil)

// New returns a Runner.
func New(o Options) *Runner { return &Runner{o: o} }

// Take puts the jobs of one Reserve under the lease keeper, in one step.
func (r *Runner) Take(jobs []*queue.Job, sent time.Time) []dispatch.Attempt {
	attempts := make([]dispatch.Attempt, len(jobs))
	entries := make([]*lease.Entry, len(jobs))
	for i, job := range jobs {
		a := &Attempt{r: r, job: job}
		a.Init(queue.Ref{ID: job.ID, Token: job.Token}, sent)
		attempts[i], entries[i] = a, &a.Entry
	}
	r.o.Keeper.Add(entries)
	return attempts
}

// Release gives attempts back that did not run. As one batch they keep their order.
func (r *Runner) Release(attempts []dispatch.Attempt) {
	items := make([]settle.Item, 0, len(attempts))
	for _, da := range attempts {
		a := da.(*Attempt)
		r.counts.interrupted.Add(1)
		if !a.Settling() {
			r.lost(a)
			continue
		}
		items = append(items, settle.Item{Settlement: queue.Settlement{Ref: a.Ref(), Verb: queue.VerbRelease}, Owner: a})
	}
	r.o.Settle.Submit(items...)
}

// lost ends an attempt that must not be settled.
func (r *Runner) lost(a *Attempt) {
	r.counts.lost.Add(1)
	r.o.Keeper.Remove(&a.Entry)
}

// Stats returns the counters.
func (r *Runner) Stats() Stats {
	c := &r.counts
	return Stats{Succeeded: c.succeeded.Load(), Retried: c.retried.Load(), Permanent: c.permanent.Load(), Deferred: c.deferred.Load(),
		Interrupted: c.interrupted.Load(), Crashed: c.crashed.Load(), Unavailable: c.unavailable.Load(), NoHandler: c.noHandler.Load(),
		Quarantined: c.quarantined.Load(), NoMemory: c.noMemory.Load(), Lost: c.lost.Load(), Panics: c.panics.Load()}
}

package runjob

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/taskhost/taskhost/abi"
	"github.com/taskhost/taskhost/handlers"
	"github.com/taskhost/taskhost/host/lease"
	"github.com/taskhost/taskhost/host/notes"
	"github.com/taskhost/taskhost/host/settle"
	"github.com/taskhost/taskhost/queue"
)

// Attempt is one attempt of one job: what the lease keeper holds, where the handler's reports go, and who learns what
// became of the settlement. It is one allocation, because there is one per job.
type Attempt struct {
	lease.Entry
	r        *Runner
	job      *queue.Job
	inv      handlers.Invocation
	sink     notes.Sink
	rejected bool // the store refused the settlement once
}

var _ settle.Owner = (*Attempt)(nil)

// Run takes the attempt from its start to the hand-over of its settlement.
func (a *Attempt) Run() {
	s, ran := a.end()
	if ran {
		a.sink.Close()
	}
	if !a.Settling() {
		a.r.lost(a)
		return
	}
	s.Ref = a.Ref()
	a.log(&s)
	a.r.o.Settle.Submit(settle.Item{Settlement: s, Owner: a})
}

// end runs the attempt and says how it is to be settled; ran is false when no handler was started.
func (a *Attempt) end() (s queue.Settlement, ran bool) {
	if a.Context().Err() != nil { // lost, cancelled or drained before it began
		return a.translate(handlers.Outcome{Kind: handlers.OutcomeInterrupted}), false
	}
	version, err := a.r.o.Registry.Resolve(a.job.Tenant, a.job.Type)
	if err != nil {
		return a.waitForHandler(), false
	}
	rt := a.r.o.Runtimes[version.Runtime]
	if rt == nil {
		return a.waitForRuntime(version, nil), false
	}
	if a.r.o.Quarantine.Held(a.job.Tenant, version) {
		return a.waitForRelease(version), false
	}
	if budget, ok := rt.(handlers.MemoryReserver); ok { // before its time begins
		release, err := budget.ReserveMemory(a.Context(), effectiveLimits(version.Limits, a.r.o.Limits, 0).MemoryBytes)
		if err != nil {
			return a.waitForMemory(version, err), false
		}
		defer release()
	}
	start := time.Now()
	a.plan(version, start)
	a.Started(a.inv.Deadline)
	out := a.invoke(rt)
	if out.Kind == handlers.OutcomeCrashed && a.inv.Alone {
		a.r.o.Quarantine.Crashed(a.job.Tenant, a.job.ID, version, jobError(out.Error, abi.KindCrash, true).Message)
	}
	if out.Duration <= 0 {
		out.Duration = time.Since(start)
	}
	return a.translate(out), true
}

// Settled learns the store's answer. It runs in the settle batcher and does not block.
func (a *Attempt) Settled(o queue.SettleOutcome) {
	switch o.Status {
	case queue.SettleOK:
	case queue.SettleLeaseLost:
		if errors.Is(o.Err, settle.ErrResent) {
			a.r.o.Log.Info("settlement sent twice; the store knows the lease no more", "job", a.job.ID, "tenant", a.job.Tenant, "type", a.job.Type)
			break
		}
		a.r.o.Log.Warn("lease lost before the job was settled; another attempt of it counts", "job", a.job.ID, "tenant", a.job.Tenant, "type", a.job.Type, "attempt", a.job.Attempt)
	case queue.SettleRejected:
		if a.refused(o.Err) {
			return
		}
	case queue.SettleUnknown:
		a.r.o.Log.Warn("job not settled: the host ended before the store answered", "job", a.job.ID, "tenant", a.job.Tenant, "type", a.job.Type)
	}
	a.r.o.Keeper.Remove(&a.Entry)
}

// refused makes a job dead whose settlement the store will not take, with the reason: otherwise it would run again and be
// refused again. It returns false when even that was refused.
func (a *Attempt) refused(err error) bool {
	if err == nil {
		err = errors.New("the store gave no reason")
	}
	if a.rejected {
		a.r.o.Log.Error("the store refuses every end of the job; its lease runs out", "job", a.job.ID, "tenant", a.job.Tenant, "type", a.job.Type, "error", err)
		return false
	}
	a.rejected = true
	a.r.o.Settle.Resubmit(settle.Item{Owner: a, Settlement: queue.Settlement{Ref: a.Ref(), Verb: queue.VerbDead, Error: refusedError(err), Handler: a.handler()}})
	return true
}

// handler names the version that ran, if one did.
func (a *Attempt) handler() queue.Handler {
	if a.inv.Version == nil {
		return queue.Handler{}
	}
	return queue.Handler{Runtime: a.inv.Version.Runtime, Version: a.inv.Version.Number}
}

func (a *Attempt) log(s *queue.Settlement) {
	ctx := context.Background()
	if !a.r.o.Log.Enabled(ctx, slog.LevelDebug) {
		return
	}
	attrs := []slog.Attr{slog.String("job", a.job.ID), slog.String("tenant", a.job.Tenant), slog.String("type", a.job.Type),
		slog.String("queue", a.job.Queue), slog.Int("attempt", a.job.Attempt), slog.String("settle", string(s.Verb)), slog.Duration("took", s.Duration)}
	if s.Error != nil {
		attrs = append(attrs, slog.String("kind", s.Error.Kind), slog.String("error", s.Error.Message))
	}
	a.r.o.Log.LogAttrs(ctx, slog.LevelDebug, "attempt ended", attrs...)
}

// Package workers keeps the registry of hosts in the store: each writes a record of itself every half minute and takes it away when
// it stops, so that an operator sees who works on a store, and who vanished.
package workers

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/taskhost/taskhost/host/lifecycle"
	"github.com/taskhost/taskhost/queue"
)

// Worker is one host as it last described itself.
type Worker struct {
	ID       string    `json:"id"`
	Since    time.Time `json:"since"`     // when it started, in store time
	LastSeen time.Time `json:"last_seen"` // in store time
	Queues   []string  `json:"queues"`    // it serves; none = all
	Slots    int       `json:"slots"`     // jobs at once at most; 0 = it runs none
	Running  int       `json:"running"`   // when it was last seen
	Version  string    `json:"version,omitempty"`
	Live     bool      `json:"-"` // seen within LiveFor; set by List
}

// How often a host tells that it is there, how long it counts as live after that, and how long one that vanished is listed.
const (
	Every     = 30 * time.Second
	LiveFor   = 75 * time.Second
	ForgetAge = 24 * time.Hour
)

const kind = "worker"

// askEvery is how often a host asks for the time of the store; in between its own clock goes on from there.
const askEvery = 10 * time.Minute

// Options of a Registry. All but Queues and Version are required.
type Options struct {
	Records queue.Records
	Now     func(ctx context.Context) (time.Time, error) // store time
	Log     *slog.Logger
	ID      string
	Queues  []string
	Slots   int
	Version string
	Busy    func() int // jobs that run now
}

// Registry describes one host and lists all. Make one with New.
type Registry struct {
	o     Options
	loop  lifecycle.Loop
	since time.Time

	asked, told time.Time // when the store was last asked for its time, here; and what it said
}

// New returns a registry that is not started.
func New(o Options) *Registry { return &Registry{o: o} }

// Start begins to describe this host. A store that does not answer is tried again half a minute later.
func (r *Registry) Start(ctx context.Context) error { return r.loop.Go(ctx, r.run) }

// Stop takes the description away, which takes a second at most.
func (r *Registry) Stop() { r.loop.Stop() }

func (r *Registry) run(ctx context.Context) {
	defer r.leave(ctx)
	tick := time.NewTicker(Every)
	defer tick.Stop()
	for failed := false; ; {
		err := r.describe(ctx)
		if ctx.Err() != nil || errors.Is(err, queue.ErrClosed) {
			return
		}
		if err != nil && !failed {
			r.o.Log.Warn("this host is not in the list of workers", "error", err)
		}
		failed = err != nil
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
	}
}

func (r *Registry) describe(ctx context.Context) error {
	now, err := r.now(ctx)
	if err != nil {
		return err
	}
	if r.since.IsZero() {
		r.since = now
	}
	value, err := json.Marshal(Worker{ID: r.o.ID, Since: r.since, LastSeen: now, Queues: r.o.Queues, Slots: r.o.Slots, Running: r.o.Busy(), Version: r.o.Version})
	if err != nil {
		return fmt.Errorf("describe worker %s: %w", r.o.ID, err)
	}
	_, err = r.o.Records.PutRecord(ctx, kind, r.o.ID, value, queue.AnyRevision)
	return err
}

// now is the time of the store, near enough to tell who lives.
func (r *Registry) now(ctx context.Context) (time.Time, error) {
	passed := time.Since(r.asked)
	if !r.asked.IsZero() && passed < askEvery {
		return r.told.Add(passed).Truncate(time.Millisecond), nil
	}
	now, err := r.o.Now(ctx)
	if err != nil {
		return time.Time{}, err
	}
	r.asked, r.told = time.Now(), now
	return now, nil
}

func (r *Registry) leave(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
	defer cancel()
	err := r.o.Records.DeleteRecord(ctx, kind, r.o.ID)
	if err != nil && !errors.Is(err, queue.ErrClosed) && !errors.Is(err, queue.ErrNotFound) {
		r.o.Log.Warn("this host stays in the list of workers", "error", err)
	}
}

// List returns all hosts by id, also those that vanished within ForgetAge; older ones are removed.
func (r *Registry) List(ctx context.Context) ([]Worker, error) {
	now, err := r.o.Now(ctx)
	if err != nil {
		return nil, err
	}
	const page = 500
	var list []Worker
	for after := ""; ; {
		records, err := r.o.Records.ListRecords(ctx, kind, "", after, page)
		if err != nil {
			return nil, err
		}
		for _, rec := range records {
			after = rec.Key
			var w Worker
			if err := json.Unmarshal(rec.Value, &w); err != nil {
				r.o.Log.Error("stored record cannot be read", "kind", kind, "key", rec.Key, "error", err)
				continue
			}
			if now.Sub(w.LastSeen) > ForgetAge {
				if err := r.o.Records.DeleteRecord(ctx, kind, rec.Key); err != nil {
					return nil, err
				}
				continue
			}
			w.Live = now.Sub(w.LastSeen) <= LiveFor
			list = append(list, w)
		}
		if len(records) < page {
			return list, nil
		}
	}
}

package redisq

import (
	"sync"
	"time"
)

// outage remembers that this host could not reach the store for a while, or that the store began anew: leases that ended in that
// time say nothing about their holders, and the next Maintain gives each once more (queue.AttemptInterrupted, not a crash).
type outage struct {
	mu    sync.Mutex
	since time.Time // of the first failure since the last answer; zero = none
	gap   time.Time // when a gap ended that no Maintain has dealt with; zero = none
	runID string
}

// gapMin is how long the store must have been away to count.
const gapMin = time.Second

// gapKept is how long a gap is remembered: on a host that has not the duty to maintain nobody asks.
const gapKept = time.Minute

func (o *outage) note() {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.since.IsZero() {
		o.since = time.Now()
	}
}

func (o *outage) over() {
	o.mu.Lock()
	defer o.mu.Unlock()
	if !o.since.IsZero() && time.Since(o.since) >= gapMin {
		o.gap = time.Now()
	}
	o.since = time.Time{}
}

// down is since when the store has not answered; zero when it does.
func (o *outage) down() time.Time {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.since
}

// late tells of a reply that came d later than it was due.
func (o *outage) late(d time.Duration) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if d >= gapMin {
		o.gap = time.Now()
	}
}

// met tells which run of the server a new connection reached. Maintain compares it with the run that the store last met.
func (o *outage) met(runID string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.runID = runID
}

func (o *outage) run() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.runID
}

// take returns whether there was a gap since the last call, and forgets it.
func (o *outage) take() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	gap := o.has()
	o.gap = time.Time{}
	return gap
}

// gapped returns whether there was a gap that no Maintain has dealt with.
func (o *outage) gapped() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.has()
}

func (o *outage) has() bool { return !o.gap.IsZero() && time.Since(o.gap) < gapKept }

// put brings a gap back that could not be dealt with.
func (o *outage) put() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.gap = time.Now()
}

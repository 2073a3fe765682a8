package memq

import (
	"cmp"
	"math/big"
	"slices"
	"time"

	"github.com/taskhost/taskhost/queue"
)

// running counts the reservations for which want is true.
func (s *Store) running(want func(j *queue.Job) bool) int {
	n := 0
	for _, r := range s.jobs {
		if r.job.State == queue.StateRunning && want(&r.job) {
			n++
		}
	}
	return n
}

func (s *Store) runningIn(key queueKey) int {
	return s.running(func(j *queue.Job) bool { return j.Tenant == key.tenant && j.Queue == key.queue })
}

func (s *Store) runningOf(tenant string) int {
	return s.running(func(j *queue.Job) bool { return j.Tenant == tenant })
}

func (s *Store) runningWith(key slotKey) int {
	return s.running(func(j *queue.Job) bool { return slotOf(j) == key })
}

// queueFull says whether a queue runs as many jobs as it may.
func (s *Store) queueFull(key queueKey) bool {
	limit := s.settings(key).MaxRunning
	return limit > 0 && s.runningIn(key) >= limit
}

// tenantFull says whether a tenant runs as many jobs as it may.
func (s *Store) tenantFull(tenant string) bool {
	limit := s.scheduling.TenantMaxRunning(tenant)
	return limit > 0 && s.runningOf(tenant) >= limit
}

// heldBack says whether a queue does not compete, whatever its jobs.
func (s *Store) heldBack(key queueKey, now time.Time) bool {
	return s.settings(key).Paused || s.queueFull(key) || now.Before(s.rateFrom(key))
}

// slotKey names a concurrency key of a queue; its key is "" for jobs without one.
type slotKey struct {
	queueKey
	key string
}

func slotOf(j *queue.Job) slotKey {
	return slotKey{queueKey{j.Tenant, j.Queue}, j.ConcurrencyKey}
}

// freeSlots is how many more jobs of a concurrency key may run.
func (s *Store) freeSlots(key slotKey) int {
	return s.settings(key.queueKey).MaxPerKey - s.runningWith(key)
}

// front is the first job of a line that is not passed over, nil when there is none.
func (s *Store) front(key lineKey) *record {
	for _, r := range s.lines[key] {
		if !r.aside {
			return r
		}
	}
	return nil
}

// bringBack lets jobs that stepped aside come back, as many as their keys have free slots.
func (s *Store) bringBack() {
	aside := map[slotKey][]*record{}
	back := map[slotKey]int{}
	for _, line := range s.lines { // any order: those of one line keep theirs
		for _, r := range line {
			if r.aside {
				aside[slotOf(&r.job)] = append(aside[slotOf(&r.job)], r)
			}
			if r.back {
				back[slotOf(&r.job)]++
			}
		}
	}
	for key, list := range aside {
		slices.SortStableFunc(list, func(a, b *record) int { return cmp.Compare(b.job.Priority, a.job.Priority) })
		come := max(0, s.freeSlots(key)-back[key])
		for _, r := range list[:min(come, len(list))] {
			r.aside, r.back = false, true
		}
	}
}

// bucket says when the rate of a queue will have forgotten all its reservations: full, in milliseconds since 1970.
type bucket struct {
	rate queue.Rate
	full *big.Rat
}

// followRates drops the buckets of rates that are not in force any more.
func (s *Store) followRates() {
	for key, b := range s.buckets {
		if b.rate != s.settings(key).Rate {
			delete(s.buckets, key)
		}
	}
}

// interval is the time between two jobs at a rate, in milliseconds.
func interval(r queue.Rate) *big.Rat { return big.NewRat(r.Per.Milliseconds(), int64(r.Count)) }

// rateFrom is from when the rate of a queue allows one more reservation; the zero time without a rate.
func (s *Store) rateFrom(key queueKey) time.Time {
	b := s.buckets[key]
	if b == nil {
		return time.Time{}
	}
	from := new(big.Rat).Sub(b.full, big.NewRat(queue.RateSlack.Milliseconds(), 1))
	ms := new(big.Int).Div(from.Num(), from.Denom()) // down
	if !from.IsInt() {
		ms.Add(ms, big.NewInt(1))
	}
	return time.UnixMilli(ms.Int64()).UTC()
}

// chargeRate counts one reservation.
func (s *Store) chargeRate(key queueKey, now time.Time) {
	rate := s.settings(key).Rate
	if rate.IsZero() {
		return
	}
	full := big.NewRat(now.UnixMilli(), 1)
	if b := s.buckets[key]; b != nil && b.full.Cmp(full) > 0 {
		full = b.full
	}
	s.buckets[key] = &bucket{rate: rate, full: new(big.Rat).Add(full, interval(rate))}
}

// nextRate says when a rate lets a queue of the view in that would compete but for it; false for never, as things stand.
func (s *Store) nextRate(v *view, now time.Time) (time.Time, bool) {
	var next time.Time
	found := false
	for key := range s.lines {
		from := s.rateFrom(key.queueKey)
		if v.includes(key.queue) && s.front(key) != nil && now.Before(from) && (!found || from.Before(next)) {
			next, found = from, true
		}
	}
	return next, found
}

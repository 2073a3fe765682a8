package attempt

import (
	"time"

	"github.com/taskhost/taskhost/handlers/wasm/meter"
)

// slice is what a guest is granted between two ticks, in units of fuel: some 30 µs of ordinary code, against which a tick is cheap. At most 16
// times as much runs between two of them (package meter): about 10 ms of divisions, or of reads that miss every cache.
const slice = 50_000

// Gauge is the counter in the guest that package meter has added. It falls as the guest runs.
type Gauge interface {
	Get() uint64
	Set(value uint64)
}

// fuel is the account of what the guest executes.
type fuel struct {
	gauge   Gauge // nil before the guest exists
	granted int64
	yielded time.Time     // when the guest last let others have the processor
	until   time.Duration // how long after that it does so again
}

// Fuel gives the guest its first fuel. It must be called before any of its code runs.
func (s *State) Fuel(g Gauge) {
	s.fuel = fuel{gauge: g}
	s.refuel()
}

// FuelUsed is what the guest has executed so far, in units of fuel. It depends on the module and its input only.
func (s *State) FuelUsed() int64 {
	if s.fuel.gauge == nil {
		return 0
	}
	return s.fuel.granted - s.left()
}

func (s *State) left() int64 { return int64(s.fuel.gauge.Get()) }

// Tick is where a guest comes when its fuel is used up. It unwinds the guest when that has to end, else refuels it. It being called is also what
// lets the Go runtime stop the guest for a moment, to collect garbage for one.
func (s *State) Tick() {
	now := time.Now()
	s.endIfDue(now)
	if now.Sub(s.fuel.yielded) >= s.fuel.until {
		yield()
		s.fuel.yielded = time.Now()
		s.fuel.until = untilNextYield(s.fuel.yielded.Sub(now))
	}
	s.refuel()
}

// yieldEvery is how long a guest computes until it yields the processor. What the kernel would let it run on for is several times as long, which
// is what jobs that have little to do would wait for beside it.
const yieldEvery = 200 * time.Microsecond

// yieldAtMost is about what the kernel lets a thread run on for when others wait.
const yieldAtMost = 5 * time.Millisecond

// untilNextYield is how long a guest computes after others had the processor for that long. Beside processes that never yield, one that
// always yielded early would get a small part of its share.
func untilNextYield(others time.Duration) time.Duration {
	return min(max(others, yieldEvery), yieldAtMost)
}

// callCost is what a host call costs besides the data that it moves, in units of fuel: about what it takes.
const callCost = 250

// ChargeCall lowers the fuel for a host call. The guest ticks, if it has to, once it goes on.
func (s *State) ChargeCall() { s.charge(callCost) }

// ChargeBytes lowers the fuel for bytes that a host call moves, as much as the guest's own operations cost.
func (s *State) ChargeBytes(n int) { s.charge(int64(n) / meter.BytesPerUnit) }

// ChargeItems lowers the fuel for items that a host call goes through.
func (s *State) ChargeItems(n uint32) { s.charge(int64(n) * 8) }

func (s *State) charge(units int64) {
	if s.fuel.gauge != nil {
		s.fuel.gauge.Set(uint64(s.left() - units))
	}
}

// refuel grants slices until there is something left, as an operation may cost many of them. With a limit it grants exactly that much, so
// that a guest ends at the same place whatever the size of a slice.
func (s *State) refuel() {
	left := s.left()
	for first := true; first || left < 0; first = false {
		grant := int64(slice)
		if limit := s.Limits.Fuel; limit > 0 {
			grant = min(grant, limit-s.fuel.granted)
		}
		if grant <= 0 {
			if left < 0 {
				s.Unwind(EndFuel, 0)
			}
			break
		}
		s.fuel.granted += grant
		left += grant
	}
	s.fuel.gauge.Set(uint64(left))
}

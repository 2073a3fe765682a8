package attempt

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
	s.endIfDue()
	s.refuel()
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

package fair

import "math"

// Tag says how far a competitor has been served: Base + N/Weight. The competitor with the smallest tag is next.
//
// N counts whole services, or whole milliseconds when time is charged (see Cost), so that nothing accumulates rounding: Value is one
// correctly rounded division and one correctly rounded sum, so for any |N| below 2⁵³ it is off by at most 2⁻⁵² (ErrorBound) of
// Base + |N|/Weight; of itself, that is, while N ≥ 0.
type Tag struct {
	Base   float64 // ≥ 0; where the competitor joined
	N      int64   // charged since then; negative when more than that was taken back
	Weight float64 // > 0
}

// ErrorBound is the largest error of Value, relative to Base + |N|/Weight: two roundings of at most 2⁻⁵³ each.
const ErrorBound = 0x1p-52

// Join is the tag of a competitor that begins to compete: at the virtual time v, but not below the tag it once left
// with, so that neither credit nor debt changes by being away.
func Join(v, parked, weight float64) Tag {
	return Tag{Base: math.Max(v, parked), Weight: weight}
}

// Value is the tag as a number.
func (t Tag) Value() float64 { return t.Base + float64(t.N)/t.Weight }

// Charge is the tag after a service that costs n ≥ 1; 1 unless time is charged.
func (t Tag) Charge(n int64) Tag {
	t.N += n
	return t
}

// Correct is the tag after by was added to what its competitor was charged, or taken back when it is negative. It ends at the
// virtual time v at the least: what was charged too much is no credit that could be saved up.
func (t Tag) Correct(by int64, v float64) Tag {
	t.N += by
	if t.Value() < v {
		return Tag{Base: v, Weight: t.Weight}
	}
	return t
}

// CorrectParked is Correct for a competitor that has left with a parked tag: what it would join with at the virtual time v is corrected.
func CorrectParked(parked, v float64, by int64, weight float64) float64 {
	return Join(v, parked, weight).Correct(by, v).Value()
}

// Reweigh is the tag under a new weight: its value stays, its rate changes.
func (t Tag) Reweigh(weight float64) Tag {
	return Tag{Base: t.Value(), Weight: weight}
}

// Advance is the virtual time after the competitor with this tag was chosen: it never falls.
func (t Tag) Advance(v float64) float64 { return math.Max(v, t.Value()) }

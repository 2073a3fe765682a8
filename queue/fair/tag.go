package fair

import "math"

// Tag says how far a competitor has been served: Base + N/Weight. The competitor with the smallest tag is next.
//
// N counts whole services, so that nothing accumulates rounding: Value is one correctly rounded division and one
// correctly rounded sum, of non-negative terms, so its relative error is at most 2⁻⁵² (ErrorBound) for any N below 2⁵³.
type Tag struct {
	Base   float64 // ≥ 0; where the competitor joined
	N      int64   // services since then
	Weight float64 // > 0
}

// ErrorBound is the largest relative error of Value: two roundings of at most 2⁻⁵³ each.
const ErrorBound = 0x1p-52

// Join is the tag of a competitor that begins to compete: at the virtual time v, but not below the tag it once left
// with, so that neither credit nor debt changes by being away.
func Join(v, parked, weight float64) Tag {
	return Tag{Base: math.Max(v, parked), Weight: weight}
}

// Value is the tag as a number.
func (t Tag) Value() float64 { return t.Base + float64(t.N)/t.Weight }

// Charge is the tag after one more service.
func (t Tag) Charge() Tag {
	t.N++
	return t
}

// Reweigh is the tag under a new weight: its value stays, its rate changes.
func (t Tag) Reweigh(weight float64) Tag {
	return Tag{Base: t.Value(), Weight: weight}
}

// Advance is the virtual time after the competitor with this tag was chosen: it never falls.
func (t Tag) Advance(v float64) float64 { return math.Max(v, t.Value()) }

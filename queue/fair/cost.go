package fair

// CostMost is the most that one service costs, in milliseconds: some 12 days. It keeps every sum far below 2⁵³.
const CostMost = 1 << 30

// Cost is what a service that was measured to take ms milliseconds costs: whole milliseconds, from 1 to CostMost. No service is free:
// what starting it costs is not measured.
func Cost(ms int64) int64 { return min(max(ms, 1), CostMost) }

// gain is what a measurement counts for in an Average: an eighth.
const gain = 8

// Average is the moving average of what the services of one queue cost, from which the cost of the next one is estimated. It is kept
// as gain times its value in an integer (V. Jacobson, "Congestion Avoidance and Control", SIGCOMM 1988, appendix A), so it does not
// drift: after equal measurements, however many, it stands at exactly their value. The zero Average knows of no service.
type Average struct {
	sum int64
}

// Estimate is what the next service is taken to cost, in milliseconds; first is the answer while no service was measured.
func (a Average) Estimate(first int64) int64 {
	if a.sum == 0 {
		return Cost(first)
	}
	return Cost(a.sum / gain)
}

// Learn is the average after n services that cost total milliseconds, in any order. The first ones, and gain or more at once, replace
// what was known.
func (a Average) Learn(total, n int64) Average {
	switch {
	case n < 1:
		return a
	case a.sum == 0 || n >= gain:
		return Average{sum: gain * total / n}
	}
	return Average{sum: a.sum + total - n*(a.sum/gain)}
}

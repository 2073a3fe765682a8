package attempt

// Write appends to the result and returns its new length. It returns false, and keeps nothing of p, when the result would go over its limit.
func (s *State) Write(p []byte) (int64, bool) {
	n := int64(len(s.result)) + int64(len(p))
	if n > int64(s.Limits.Result) {
		s.oversize = max(s.oversize, n)
		return n, false
	}
	s.result = append(s.result, p...)
	return n, true
}

// Result is what the guest wrote.
func (s *State) Result() []byte { return s.result }

// Oversize is how long the result would have become when it went over the limit; 0 = it did not.
func (s *State) Oversize() int64 { return s.oversize }

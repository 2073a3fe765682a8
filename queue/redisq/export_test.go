package redisq

// SetListBounds sets how many records a page of a list reads, and how many ready jobs are listed by id.
func (s *Store) SetListBounds(scan, ready int) { s.listScan, s.listReady = scan, ready }

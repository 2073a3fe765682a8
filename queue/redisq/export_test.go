package redisq

import "time"

// SetGuardDelay sets how long a woken host has to come and reserve; before the first Wait only.
func (s *Store) SetGuardDelay(d time.Duration) { s.guardDelay = d }

// SetListBounds sets how many records a page of a list reads, and how many ready jobs are listed by id.
func (s *Store) SetListBounds(scan, ready int) { s.listScan, s.listReady = scan, ready }

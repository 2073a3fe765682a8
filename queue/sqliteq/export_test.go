package sqliteq

import "time"

// SetListWork bounds what a page of a list looks at, per source.
func (s *Store) SetListWork(units int) { s.listWork = units }

// SetListNow replaces the clock by which pages of lists end.
func (s *Store) SetListNow(now func() time.Time) { s.listNow = now }

package sqliteq

// SetListWork bounds what a page of a list looks at, per source.
func (s *Store) SetListWork(units int) { s.listWork = units }

//go:build !linux

package runner

// setRlimits does nothing: only Linux counts what RLIMIT_DATA is meant to bound. The memory limit of each guest holds everywhere.
func setRlimits(uint64) error { return nil }

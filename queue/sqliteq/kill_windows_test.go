package sqliteq_test

// runChild: the tests that kill children run on unix.
func runChild() bool { return false }

package sqliteq_test

func runChild() bool { return false }

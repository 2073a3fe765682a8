// Package runjob is one job's life in the host, from reservation to settlement; each step is a file:
//
//	Take (runner.go)     lease kept, context made
//	resolve (plan.go)    handler version, pinned for the attempt; limits and deadline in force
//	run (invoke.go)      the runtime's Invoke; a panic in it is a crash of the attempt, not of the host
//	notes                logs, progress and checkpoints (package notes)
//	translate (outcome.go) the runtime's Outcome to a queue.Settlement: the one place where the two vocabularies meet
//	wait (waiting.go)    what happens to a job that nothing here can run
//	settled (attempt.go) the store's answer
//
// # Which setting wins
//
// The timeout of a job goes over that of the handler version, and that over the host's default; limits of the version go over
// the host's defaults.
package runjob

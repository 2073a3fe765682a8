// Package memq is the in-memory store: the model that the other engines are compared with, and a real store for tests
// and for hosts that may forget their jobs.
//
// It is written to be obviously right, not fast: one mutex, plain scans, no index that could disagree with what it
// indexes. Where a sentence of package queue, FAIRNESS.md or RULES.md has a counterpart here, it is one function. It
// therefore restates the fairness arithmetic rather than sharing queue/fair, which it judges.
package memq

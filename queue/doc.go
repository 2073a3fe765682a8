// Package queue holds the words and the one seam of queueing: what a job is, which states it passes through, and what a
// store must do with it. It imports the standard library only. Engines live in child packages (memq, sqliteq), the
// fairness arithmetic in fair, and the contract that every engine must pass in queuetest.
//
// # The states of a job
//
//	           Enqueue(delay)                 due
//	        ┌────────────────► scheduled ──────────────┐
//	        │                   ▲     │ cancel,expire  │
//	Enqueue ┤    nack,defer     │     ▼                ▼
//	        │   ┌───────────────┘  cancelled  ◄───── ready ──────► expired
//	        └───┼──────────────────  expired    cancel │ ▲
//	            │                                Reserve │ │ yield: tail
//	            │                                      ▼ │ release, crash: front
//	            └────────────────────────────────── running
//	                                                │ ack → succeeded
//	                                                │ dead, attempts or crashes spent → dead ──replay──► ready (run+1)
//	                                                └ cancel requested and stopped → cancelled
//
// succeeded, dead, cancelled and expired are terminal and absorbing; only replay leaves dead, and it starts a new run
// with fresh attempts. A job is always in exactly one state: ready + scheduled + running + terminal = enqueued.
//
// # Where a job enters its queue
//
// Inside a queue jobs of one priority are a line. A new, due, nacked (once due), deferred (once due), yielded or replayed
// job enters at the tail. A released job, and one whose lease ran out, enters at the front; a batch that is released
// or reaped together keeps its order.
//
// # Who is next
//
// FAIRNESS.md beside this file states the rule, RULES.md the small print of everything else.
package queue

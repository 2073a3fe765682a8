// Package schedules enqueues jobs at set times: cron specs with time zones, and fixed intervals. Exactly one job is enqueued per
// schedule and due time, whatever hosts die, pause or start meanwhile.
//
//	configured ─┐                        ┌─ leader: one timer to the next due time
//	            ├─► records in the store ┤     due ─► Enqueue (idempotency key of the due time) ─► state: last due
//	API, CLI ───┘                        └─ others: wait for the lease
//
// # Who fires
//
// Of the hosts of a store one fires, the holder of the named lease "schedules"; an embedded store needs none. Time is store time.
// The key of a job is its schedule and due time, so that a leader that was thought dead, or a successor that does not know how
// far the last one came, enqueues nothing twice: keys are remembered for queue.Limits.IdempotencyTTL (24 h). Only a job that was
// enqueued by a host that died before it could note so, in a store that then stood still for longer than that, may come twice.
//
// # Late and missed
//
// A due time that is served within LateMax is late, and nothing else: its job is enqueued, also by the next leader. When the
// first due time that was not served is longer ago, there was a downtime, and the schedule's catch-up decides about all due
// times up to now: none of them (the default), the latest one, or all (the newest CatchUpMax). A pause is no downtime: what
// falls into it is never caught up. Neither is what was due before the schedule, or its present spec, existed.
//
// # Changes of the clock
//
// Spec says how the days on which clocks change are served. When store time itself goes back, nothing is due again; when it
// jumps ahead, what was jumped over is late or missed as above.
//
// # Refusals
//
// When the store refuses a job (its unique key is held, it is over a limit that was lowered), the due time is spent, the refusal is
// kept with the schedule (last_error) and counted, and the schedule goes on.
package schedules

// Package fair is the arithmetic of FAIRNESS.md, beside package queue: who is served next. It does no input or output,
// holds no jobs and knows no engine.
//
// [Tag] is the arithmetic of one competitor; [Scheduler] applies it to the tenants, bands and queues of one view, with
// O(log n) work and no allocation per pick.
//
// The arithmetic is start-time fair queueing with unit cost (Goyal, Vin, Cheng: "Start-time Fair Queuing: A Scheduling
// Algorithm for Integrated Services Packet Switching Networks", SIGCOMM 1996).
package fair

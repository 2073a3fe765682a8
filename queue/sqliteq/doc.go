// Package sqliteq is the embedded, durable engine: one SQLite file, owned by one process.
//
// # How it works
//
// SQLite is the durable record, the rule of FAIRNESS.md runs in memory (package fair). One goroutine, the writer, makes
// every change: it takes all requests that wait, applies them in one transaction, commits with an fsync, changes memory,
// and answers; meanwhile the next group gathers. So a thousand producers cost one fsync, memory never knows more than the
// disk, and two settlements of one reservation cannot both win.
//
//	Enqueue, Settle, admin ──► writer: plan → SQL → COMMIT (fsync) → apply to memory → answer
//	Reserve, Extend ─────────► memory; a batch row follows un-awaited
//	Get, List ───────────────► reading connections, which see every commit
//
// Reserve never waits for the disk. The row that says what was reserved is written after it has answered, so that crash
// budgets survive the process; a kill between the two forgets to count one crash and loses nothing.
//
// # What is where
//
// writer.go and group.go are the transaction; enqueue.go, settle.go, reserve.go, maintain.go, jobs.go, … the steps of a job's life;
// line.go, view.go, limits.go, aside.go, timers.go, cache.go memory; record.go, state.go, batchrow.go what is stored, over codec.go; rebuild.go the
// way from disk to memory. Statements are files in queries, the schema is migrations. Job ids carry the job's number
// (idcodec.go), so nothing needs an index by id.
//
// # When the disk fails
//
// A commit that fails fails every request of its group with an error wrapping queue.ErrUnavailable, and nothing of it is
// stored. A full disk is tried again by the next request. An input/output error or damage is for good: see
// Options.Fatal.
package sqliteq

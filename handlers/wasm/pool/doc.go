// Package pool supervises runners: it starts them, spreads attempts over them, ends what does not end by itself, and starts them anew.
//
// A runner runs several attempts at once. Its process is the only thing that can be stopped for certain, so an attempt that does not end at its
// deadline takes its runner with it; the other attempts of that runner are interrupted, which counts nothing against them, and the
// host runs them again. An attempt that brought a process down asks to run alone next time.
//
//	          ┌──────────────┐ ready   ┌─────────┐ recycle after N jobs  ┌──────────┐
//	start ───►│   starting   ├────────►│ serving ├──────────────────────►│ draining │
//	          └──────┬───────┘         └────┬────┘                       └────┬─────┘
//	                 │ failed               │ killed (deadline, cancel,       │ last job
//	                 ▼                      ▼ violation), or died             ▼
//	          ┌──────────────┐         ┌─────────┐                       ┌──────────┐
//	          │   backoff    │◄────────┤  dead   │◄──────────────────────┤ stopping │
//	          └──────────────┘         └─────────┘                       └──────────┘
//
// What a runner says is treated as hostile: ids, lengths, states and order are checked, and any violation kills it.
package pool

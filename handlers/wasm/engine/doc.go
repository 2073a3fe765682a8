// Package engine is everything that touches wazero: it compiles a module ahead of time, loads what was compiled, and runs
// attempts, each in a fresh instance.
//
// Compile runs in the compile child only. Load and Run run in a runner only, and Load never compiles. Nothing here
// may be used in the supervisor: a guest loop in native code cannot be preempted by the Go runtime, so one garbage collection
// would stop every goroutine of the process until the guest returns.
//
// The child packages hold what a guest can call: wasi (WASI preview 1) and hostcall (module taskhost_v1). Both work on the state
// of the attempt (package attempt), which travels in the context of the call; host modules are shared by all attempts.
package engine

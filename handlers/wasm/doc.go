// Package wasm runs uploaded WebAssembly modules as handlers. It is the whole of the runtime as the host sees it (handlers.Runtime and
// handlers.Admitter); the parts are in folders:
//
//	admission  what a module may look like; a scanner of raw bytes
//	compile    the child process that checks and compiles an upload, and the service that starts it
//	meter      the rewriting that makes a module count what it executes and lets it be stopped; wasmbin is the binary format
//	srcline    source lines for the traces of traps
//	artifact   the signed store of what it made
//	engine     wazero: compiling, loading, running; engine/wasi and engine/hostcall are what guests can call
//	runner     the child process that runs jobs
//	pool       the supervisor of runners
//	link       the connection between the two
//
// No byte of a tenant is decoded, compiled or run in the process that uses this package.
package wasm
